"""Machines that share a tree of modules know what others declare for it, also of those with nothing to do."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from harness import CASES, Call
from harness.host import Host
from harness.life import run
from harness.stubs import ALL_IS_WELL

ROLE = "environment_modules"
INFO = f"gpufarm.cluster.{ROLE}_info"
RECORD = "gpufarm.cluster.role_record"


def recorded(shared: bool) -> dict[str, Any]:
    """Return what a machine with the modules of the case has in its record."""
    well = ALL_IS_WELL[INFO]
    assert not callable(well)
    machine = {**well, "tree": {**well["tree"], "shared": shared}}
    calls = CASES[ROLE].with_answers({INFO: machine}).run(ROLE).calls
    [result] = [call.args["result"] for call in calls if call.args.get("step") == "record"]
    return dict(result)


@pytest.mark.parametrize("by", ["the playbook", "the role"])
@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("version", ["13.2", "14.1"])
def test_a_machine_with_nothing_to_do_still_counts(by: str, shared: bool, version: str) -> None:
    done = {ROLE: recorded(shared)}

    def record(call: Call) -> Mapping[str, Any]:
        if call.host == "host1":
            return {"run": "present", "made": False, "before": {}, "done": {}}
        return {"run": "", "done": done if by == "the role" else {}}

    left_out = {"gpufarm_record": {"done": done}} if by == "the playbook" else {}
    case = replace(CASES[ROLE].with_answers({RECORD: record}), hosts={"host1": {}, "host2": left_out})
    modules = [{"name": "gcc", "version": version, "prefix": "/opt/gcc"}]
    one = case.run(ROLE, {f"{ROLE}_modules": modules})
    assert bool(one.failed) == (shared and version == "14.1")
    if one.failed:
        assert "host1 and host2 share" in one.refusal


def test_the_record_asks_the_program_that_the_role_installs() -> None:
    host = Host()
    assert not run(ROLE, host).failed
    [question] = host.made[ROLE]["outputs"]
    assert question.split()[0] in host.files
