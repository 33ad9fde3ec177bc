"""Masters that join an ensemble begin when the others have the larger quorum."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from harness import CASES
from harness.recording import Call
from harness.run import Run
from harness.stubs import encoded, has

FIND = "Service | Find files newer than the start of the master"


def run(quorum: int, old: list[str], new: list[str], *, running: bool = True) -> Run:
    """Run the role on masters that have a log with a quorum, and on others."""

    def environment(call: Call) -> Mapping[str, Any]:
        return encoded(f"MESOS_QUORUM={quorum}\n" if call.host in old else "")

    def log(call: Call) -> Mapping[str, Any]:
        return has(*(["/var/lib/mesos/master/replicated_log"] if call.host in old else []))(call)

    def newer(call: Call) -> Mapping[str, Any]:
        started = running and call.host in old
        return {"rc": 0, "stdout": "/etc/mesos-master/environment"} if started else {"rc": 1, "stdout": ""}

    case = CASES["mesos_master"].with_answers(
        {"Validate | Read the current options": environment, "gpufarm.cluster.path_info": log, FIND: newer}
    )
    return replace(case, hosts={name: {} for name in [*old, *new]}, elsewhere={}).run("mesos_master")


def told(one: Run) -> list[str]:
    """Return what was done to masters, in order."""
    return [
        f"{call.args['state']} {call.host}"
        for call in one.calls
        if call.args.get("name") == "mesos-master" and call.args.get("state") in ("started", "restarted")
    ]


def test_masters_that_join_start_after_all_others_have_the_new_quorum() -> None:
    one = run(2, ["m1", "m2", "m3"], ["m4", "m5"])
    assert not one.failed, one.refusal
    assert sorted(told(one)[:3]) == [f"restarted m{number}" for number in (1, 2, 3)]
    assert sorted(told(one)[3:]) == ["started m4", "started m5"]


def test_a_master_that_was_down_starts_before_others_are_restarted() -> None:
    one = run(2, ["m1", "m2", "m3"], [], running=False)
    assert not one.failed, one.refusal
    assert sorted(told(one)) == ["started m1", "started m2", "started m3"]


def test_masters_of_a_new_cluster_start_together() -> None:
    one = run(0, [], ["m1", "m2", "m3"])
    assert not one.failed, one.refusal
    assert sorted(told(one)) == ["started m1", "started m2", "started m3"]


def test_the_only_master_does_not_lose_its_log() -> None:
    one = run(1, ["m1"], ["m2", "m3"])
    assert "m1 was the only master, and the log of one master cannot grow" in one.refusal
    assert not [call for call in one.calls if not call.asks]
