# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules against a real master: what they set is there, what they tell is so, once is enough."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.modules import (
    mesos_info,
    mesos_maintenance,
    mesos_quota,
    mesos_weights,
)

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, amounts


def test_info_tells_what_there_is(mesos: Mesos, run: Any) -> None:
    found = run(mesos_info)
    assert found["version"] == "1.11.0" and found["leader"] == mesos.url
    assert [one["state"] for one in found["agents"]] == ["active", "active"]
    assert found["total"] == {"cpus": 16, "mem": 32768, "disk": 40000, "gpus": 8} == found["free"]


def test_a_quota_limits_what_is_offered(mesos: Mesos, run: Any) -> None:
    request = [{"role": "alice", "limits": {"gpus": 3, "cpus": 4}}, {"role": "bob", "limits": {"gpus": 0}}]
    foreseen = run(mesos_quota, check=True, quotas=request)
    assert foreseen["changed"] and run(mesos_info)["quotas"] == []
    done = run(mesos_quota, quotas=request)
    assert done["changed"] and done["diff"]["before"] == "alice: none\nbob: none\n"
    assert done["diff"]["after"] == "alice: limit cpus 4, limit gpus 3\nbob: limit gpus 0\n"
    assert not run(mesos_quota, quotas=request)["changed"]
    for role, gpus in (("alice", 3), ("bob", 0)):
        framework = Framework(mesos.port, role)
        assert amounts(framework.offers(), "gpus") == gpus
        framework.stop()


def test_what_a_role_consumes_is_told(mesos: Mesos, run: Any) -> None:
    run(mesos_quota, quotas=[{"role": "carol", "limits": {"gpus": 3}}])
    framework = Framework(mesos.port, "carol")
    offer = next(one for one in framework.offers() if amounts([one], "gpus") >= 2)
    framework.launch(offer, "sleep 600", gpus=2)
    framework.wait("TASK_RUNNING")
    found = run(mesos_info)
    quota = next(one for one in found["quotas"] if one["role"] == "carol")
    assert quota["consumed"]["gpus"] == 2 and found["free"]["gpus"] == 6
    lower = run(mesos_quota, quotas=[{"role": "carol", "limits": {"gpus": 1}}])
    assert lower["failed"] and "already consuming" in lower["msg"]
    assert run(mesos_quota, quotas=[{"role": "carol", "limits": {"gpus": 1}}], force=True)["changed"]
    framework.stop()


def test_a_quota_is_taken_away(mesos: Mesos, run: Any) -> None:
    run(mesos_quota, quotas=[{"role": "dora", "limits": {"gpus": 1}}])
    gone = [{"role": "dora", "state": "absent"}]
    assert run(mesos_quota, quotas=gone)["changed"]
    assert not run(mesos_quota, quotas=gone)["changed"]
    assert "dora" not in {one["role"] for one in run(mesos_info)["quotas"]}


@pytest.mark.parametrize(
    ("quota", "words"),
    [
        ({"role": "eve", "guarantees": {"cpus": 1000}}, "refuses: "),
        ({"role": "eve", "guarantees": {"cpus": 2}, "limits": {"cpus": 1}}, "its limit is 1"),
        ({"role": "a/b", "limits": {"cpus": 1}}, "is nested"),
        ({"role": "-eve", "limits": {"cpus": 1}}, "is no role"),
        ({"role": "eve", "limits": {"gpus": -1}}, "give a number, 0 for none"),
        ({"role": "eve"}, "names no amount"),
    ],
)
def test_what_cannot_be_is_refused(run: Any, quota: dict[str, Any], words: str) -> None:
    found = run(mesos_quota, quotas=[quota])
    assert found["failed"] and words in found["msg"]


def test_weights_are_set(run: Any) -> None:
    assert run(mesos_weights, weights={"alice": 2.5, "bob": 1})["diff"]["after"] == "alice: 2.5\n"
    assert not run(mesos_weights, weights={"alice": 2.5, "bob": 1})["changed"]
    assert run(mesos_info)["weights"] == {"alice": 2.5}
    assert run(mesos_weights, weights={"alice": 1})["changed"]
    assert "above 0" in run(mesos_weights, weights={"alice": 0})["msg"]


def test_an_agent_is_drained_and_taken_back(mesos: Mesos, run: Any) -> None:
    framework = Framework(mesos.port, "frida")
    offer = framework.offers()[0]
    framework.launch(offer, "trap '' TERM; while :; do sleep 1; done")
    framework.wait("TASK_RUNNING")
    request = {"agents": [offer["agent_id"]["value"]], "state": "drained", "max_grace_period": 1.5}
    assert run(mesos_maintenance, check=True, **request)["changed"]
    done = run(mesos_maintenance, **request)
    assert done["changed"] and done["agents"][0]["state"] == "drained"
    assert done["diff"] == {"before": "127.0.0.1: active\n", "after": "127.0.0.1: drained\n"}
    assert framework.wait("TASK_KILLED")["reason"] == "REASON_AGENT_DRAINING"
    assert not run(mesos_maintenance, **request)["changed"]
    assert run(mesos_info)["total"]["gpus"] == 4
    back = run(mesos_maintenance, agents=request["agents"], state="active")
    assert back["changed"] and back["agents"][0]["state"] == "active"
    assert not run(mesos_maintenance, agents=request["agents"], state="active")["changed"]
    framework.stop()


def test_an_agent_that_does_not_come_to_an_end_is_told(mesos: Mesos, run: Any) -> None:
    framework = Framework(mesos.port, "gina")
    offer = framework.offers()[0]
    framework.launch(offer, "trap '' TERM; while :; do sleep 1; done")
    framework.wait("TASK_RUNNING")
    agent = [offer["agent_id"]["value"]]
    late = run(mesos_maintenance, agents=agent, state="drained", max_grace_period=15, wait_timeout=1)
    assert late["failed"] and "still has tasks after 1 seconds" in late["msg"]
    # it goes on draining, and the next run waits for it
    assert not run(mesos_maintenance, agents=agent, state="drained")["changed"]
    run(mesos_maintenance, agents=agent, state="active")
    framework.stop()


def test_agents_are_named_clearly(run: Any) -> None:
    assert "127.0.0.1 has 2 agents" in run(mesos_maintenance, agents=["127.0.0.1"], state="active")["msg"]
    assert "knows no agent gone" in run(mesos_maintenance, agents=["gone"], state="active")["msg"]
