# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's container outlives its agent, as the fake of Marathon has it: the same app on another one."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._container_request import (
    plan as container_request_plan,
)
from test_container_request import REQUEST, SSH

from lab.marathon.state import Marathon

AGENTS = [
    {"host": host, "cpus": 8, "mem": 65536, "disk": 100000, "gpus": 1, "attributes": {}}
    for host in ("gpu1", "gpu2")
]


class Cluster:
    """A Marathon with two agents, one GPU each, whose time the test moves on."""

    def __init__(self) -> None:
        self.now = 1_000_000.0
        self.marathon = Marathon(lambda: self.now, AGENTS, gpu_feature=True, enforce_new=True)

    def places(self, seconds: float) -> list[tuple[str, str]]:
        """Let time go by, and return where the container is and what its task does."""
        for _step in range(10):
            self.now += seconds / 10
            self.marathon.advance()
        return [(task["host"], task["state"]) for task in self.marathon.tasks("/ada/lab")]


@pytest.mark.parametrize("request_", [REQUEST, SSH], ids=["notebook", "ssh"])
def test_it_starts_elsewhere_after_a_minute_under_the_same_address(request_: dict[str, Any]) -> None:
    app = container_request_plan(request_)["app"]
    cluster = Cluster()
    cluster.marathon.put_apps([app], force=False)
    assert cluster.places(5) == [("gpu1", "TASK_RUNNING")]
    before = cluster.marathon.show_app("/ada/lab")

    cluster.marathon.meet(AGENTS[1:], alive=["gpu2"])
    assert cluster.places(50) == [("gpu1", "TASK_UNREACHABLE")], "a short absence moves nothing"
    assert cluster.places(20)[-1] == ("gpu2", "TASK_RUNNING")
    after = cluster.marathon.show_app("/ada/lab")
    for name in ("portDefinitions", "labels", "env", "container", "version"):
        assert after[name] == before[name], name


def test_without_a_free_agent_it_waits_for_one() -> None:
    cluster = Cluster()
    cluster.marathon.put_apps([container_request_plan(REQUEST)["app"]], force=False)
    cluster.places(5)
    cluster.marathon.meet([], alive=[])
    assert ("gpu1", "TASK_RUNNING") not in cluster.places(100)
    [item] = cluster.marathon.queue()
    assert item["app"]["id"] == "/ada/lab" and item["count"] == 1
    cluster.marathon.meet(AGENTS[1:], alive=["gpu2"])
    assert cluster.places(5) == [("gpu2", "TASK_RUNNING")]
