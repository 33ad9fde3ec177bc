# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option that the roles can render is one of Mesos 1.11.0, with a value of its type.

The lists under lab/mesos were taken from the source of Mesos; the fakes read their options by them.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import agent, master, options
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos import flags as mesos_flags

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "unit" / "plugins"))

import mesos_settings as given  # noqa: E402

TABLES = {"master": mesos_flags.MASTER, "agent": mesos_flags.AGENT}
OLD = {"master": mesos_flags.MASTER_OLD_NAMES, "agent": mesos_flags.AGENT_OLD_NAMES}
ADDED = {"master": mesos_flags.MASTER_CLUSTERD, "agent": mesos_flags.AGENT_CLUSTERD}
PROGRAMS = pytest.mark.parametrize("program", ["master", "agent"])


def listed(program: str) -> dict[str, dict[str, Any]]:
    return json.loads((ROOT / f"lab/mesos/fake/{program}_flags.json").read_text())["flags"]


@PROGRAMS
def test_the_tables_are_the_lists(program: str) -> None:
    flags = listed(program)
    assert set(TABLES[program]) == set(flags) - {"help"}
    assert {old: new for new, one in flags.items() if (old := one.get("deprecated_alias"))} == OLD[program]
    added = json.loads((ROOT / f"lab/mesos/fake/{program}_flags.json").read_text())["clusterd"]
    assert ADDED[program] == {name: one["type"] for name, one in added.items()}
    assert not set(added) & set(flags)


@PROGRAMS
def test_what_has_a_variable_is_an_option(program: str) -> None:
    own = {"master": master.OWN, "agent": agent.OWN}[program]
    assert set(own) <= set(listed(program))


def plans() -> list[Any]:
    tls = {"tls": "provided", "tls_certificate": "/a", "tls_key": "/b", "tls_ca": "/c"}
    rules = {"permissive": True, "run_tasks": [{"principals": {"type": "ANY"}, "users": {"type": "NONE"}}]}
    agents = (
        {},
        {"gpu_devices": [0, 1]},
        {"flags": {"launcher": "posix"}},
        {**tls, "attributes": {"a": "b"}},
    )
    return [
        *(
            ("master", master.plan(given.master(**one)))
            for one in ({}, {**tls, "acls": rules, "cluster": "a"})
        ),
        *(("agent", agent.plan(given.agent(**one))) for one in agents),
    ]


@pytest.mark.parametrize(("program", "plan"), plans())
def test_what_is_rendered_is_an_option_of_the_right_type(program: str, plan: dict[str, Any]) -> None:
    flags = listed(program)
    lines = dict(line.split("=", 1) for line in plan["environment"].splitlines()[1:])
    assert len(lines) >= 10
    for name, value in lines.items():
        if not name.startswith("MESOS_"):
            assert name.startswith("LIBPROCESS_SSL_")
            continue
        flag = flags[name.removeprefix("MESOS_").lower()]
        assert not flag.get("build_condition"), name
        kind = TABLES[program][name.removeprefix("MESOS_").lower()]
        form = options.FORMS.get(kind)
        assert form is None or re.fullmatch(form[1], value), (name, value)


@PROGRAMS
def test_defaults_of_the_lists_pass_the_checks_of_values(program: str) -> None:
    """The checks refuse nothing that Mesos itself has as a value."""
    for name, flag in listed(program).items():
        if name != "help" and flag.get("default") not in (None, ""):
            assert options.value_problem(TABLES[program][name], flag["default"]) == "", name
