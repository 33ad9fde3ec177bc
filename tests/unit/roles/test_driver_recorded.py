"""The record of the driver tells when the role has to run again."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from harness import CASES
from harness.host import Host
from harness.life import run

ROLE = "nvidia_driver"
BUILD = "gpufarm.cluster.nvidia_driver_build"


def recorded(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> tuple[Host, list[Any]]:
    """Run the role on a machine on which the driver runs; return the machine and what is asked of records."""
    built = CASES[ROLE].answers[BUILD]
    assert isinstance(built, dict)
    running = CASES[ROLE].with_answers({BUILD: {**built, "loaded_version": built["version"]}})
    monkeypatch.setitem(CASES, ROLE, running)
    host = Host()
    given = {"source": "distribution", **changed}
    one = run(ROLE, host, {f"{ROLE}_{name}": value for name, value in given.items()})
    assert not one.failed, one.refusal
    calls = [call.args for call in one.calls if call.action == "gpufarm.cluster.role_record"]
    return host, [call.get("alone", True) for call in calls if call["step"] in ("compare", "record")]


def test_a_package_that_somebody_changes_makes_the_role_run(monkeypatch: pytest.MonkeyPatch) -> None:
    host, _ = recorded(monkeypatch)
    assert host.packages.keys() <= {*host.made[ROLE]["packages"]}


def test_newer_versions_are_looked_for_in_each_run_where_they_are_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert recorded(monkeypatch)[1] == [True, True]
    assert recorded(monkeypatch, upgrade=True)[1] == [False, False]
    assert recorded(monkeypatch, upgrade=True, source="preinstalled")[1] == [True, True]
