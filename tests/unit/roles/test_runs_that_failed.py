"""A step that has to follow a change is made up for by the run after one that failed before that step."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import copy
from typing import Any

import pytest
from harness.cases import FABRIC
from harness.host import Host, Unit
from harness.life import new, on
from harness.recording import Answer
from harness.run import Run

CONNECTED = {"fabric_rails": [{"name": "compute", "device": "ib0", "mode": "connected"}]}


def run(host: Host, role: str, given: dict[str, Any], answers: dict[str, Answer]) -> Run:
    return on(host, role).with_answers(answers).run(role, given)


def steps(one: Run) -> set[str]:
    return {call.name.rpartition(" : ")[2] for call in one.calls}


def ipoib(mode: str) -> dict[str, Answer]:
    """A machine whose interface of InfiniBand is in a mode."""
    machine = copy.deepcopy(FABRIC)
    machine["interfaces"][1]["mode"] = mode
    return {"gpufarm.cluster.fabric_info": machine}


@pytest.mark.parametrize(
    ("role", "given", "failing", "due"),
    [
        ("mig", {}, "Service | Enable the unit", "Service | Restart units that use partitions"),
        (
            "monitoring",
            {"monitoring_grafana": True},
            "Grafana | Restart the unit",
            "Grafana | Restart the unit",
        ),
        (
            "monitoring",
            {"monitoring_grafana": True},
            "Grafana | Write the data source",
            "Grafana | Restart the unit",
        ),
        ("shared_home", {}, "Service | Enable the PAM profile", "Service | Enable the PAM profile"),
    ],
)
def test_a_step_that_a_failure_left_out_is_made_up_for(
    role: str, given: dict[str, Any], failing: str, due: str
) -> None:
    host = new(role)
    failed = run(host, role, given, {failing: {"failed": True, "rc": 1, "msg": "out of order"}})
    assert failed.failed
    then = run(host, role, given, {})
    assert not then.failed, then.refusal
    assert due in steps(then)
    assert due not in steps(run(host, role, given, {}))


def test_interfaces_get_their_mode_from_the_run_after_one_that_failed() -> None:
    step, host = "Configure | Set the modes of IPoIB", Host()
    failed = run(host, "fabric", CONNECTED, {**ipoib("datagram"), step: {"failed": True, "msg": "no udev"}})
    assert failed.failed
    assert step in steps(run(host, "fabric", CONNECTED, ipoib("datagram")))
    assert step not in steps(run(host, "fabric", CONNECTED, ipoib("connected")))


@pytest.mark.parametrize(
    ("role", "given", "step", "unit"),
    [
        ("slurm_accounting", {}, "Configure | Run the database", "mariadb"),
        ("fabric", {"fabric_subnet_manager": True}, "Service | Run the subnet manager", "opensm.service"),
    ],
)
def test_a_unit_is_started_anew_by_the_run_after_one_that_failed(
    role: str, given: dict[str, Any], step: str, unit: str
) -> None:
    def states(one: Run) -> list[str]:
        return [call.args["state"] for call in one.calls if call.args.get("name") == unit]

    host = Host()
    host.units["mariadb.service"] = Unit(running=True)  # its package starts it
    assert run(host, role, given, {step: {"failed": True, "msg": "out of order"}}).failed
    assert states(run(host, role, given, {})) == ["restarted"]
    assert states(run(host, role, given, {})) == ["started"]
