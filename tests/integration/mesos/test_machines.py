# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows of maintenance on a real master: frameworks are told, a machine goes down and comes up."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import Connection
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from ansible_collections.gpufarm.cluster.plugins.modules import mesos_info, mesos_maintenance

from lab.mesos.real import Mesos
from lab.mesos.real.framework import Framework, until

HERE = ["127.0.0.1"]
WINDOW: dict[str, Any] = {"start": "2036-12-01T06:00:00Z", "duration": 7200}
PLANNED = {"hostname": "127.0.0.1", "ip": "127.0.0.1", "state": "scheduled", **WINDOW}


@pytest.fixture
def mesos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mesos]:
    with Mesos(tmp_path_factory.mktemp("machines") / "work", 2) as running:
        yield running


def listens(port: int) -> bool:
    with socket.socket() as link:
        return link.connect_ex(("127.0.0.1", port)) == 0


def test_frameworks_are_told_of_a_window(mesos: Mesos, run: Any) -> None:
    request = {"agents": HERE, "state": "scheduled", "window": WINDOW}
    foreseen = run(mesos_maintenance, check=True, **request)
    assert foreseen["changed"] and foreseen["machines"] == [PLANNED]
    assert mesos.call("GET_MAINTENANCE_SCHEDULE")["schedule"] == {}
    done = run(mesos_maintenance, **request)
    assert done["changed"] and done["machines"] == [PLANNED] and done["diff"] == foreseen["diff"]
    assert done["diff"]["after"] == "127.0.0.1: scheduled, from 2036-12-01T06:00:00Z for 7200 s\n"
    assert not run(mesos_maintenance, **request)["changed"]
    framework = Framework(mesos.port)
    told = {offer["unavailability"]["start"]["nanoseconds"] for offer in framework.offers()}
    assert told == {datetime.fromisoformat(WINDOW["start"]).timestamp() * 10**9}
    framework.stop()
    moved = {**request, "window": {"start": "2037-01-01T00:00:00Z"}}
    assert run(mesos_maintenance, **moved)["machines"][0]["duration"] is None
    back = {"agents": HERE, "state": "up"}
    assert run(mesos_maintenance, **back)["diff"]["after"] == "127.0.0.1: up\n"
    assert not run(mesos_maintenance, **back)["changed"]


def test_a_machine_goes_down_with_its_agents_and_comes_up(mesos: Mesos, run: Any) -> None:
    assert "has no window" in run(mesos_maintenance, agents=HERE, state="down")["msg"]
    run(mesos_maintenance, agents=HERE, state="scheduled", window=WINDOW)
    assert run(mesos_maintenance, agents=HERE, state="down")["machines"] == [{**PLANNED, "state": "down"}]
    # its agents have gone, and it is still known by its name
    until(lambda: run(mesos_info)["agents"] == [])
    assert not run(mesos_maintenance, agents=HERE, state="down")["changed"]
    anew = run(mesos_maintenance, agents=HERE, state="scheduled", window=WINDOW)
    assert "is down already; bring it up" in anew["msg"]
    up = run(mesos_maintenance, agents=HERE, state="up")
    assert up["changed"] and up["machines"][0]["state"] == "up"
    assert mesos.call("GET_MAINTENANCE_SCHEDULE")["schedule"] == {}


def test_a_window_outlives_the_master(mesos: Mesos, run: Any) -> None:
    run(mesos_maintenance, agents=HERE, state="scheduled", window=WINDOW)
    mesos.stop()
    mesos.start()
    assert not run(mesos_maintenance, agents=HERE, state="scheduled", window=WINDOW)["changed"]


def test_a_master_that_starts_is_waited_for(mesos: Mesos) -> None:
    client = MesosClient(Connection((mesos.url,), patience=60))
    before = client.call("GET_VERSION")
    mesos.stop()
    with ThreadPoolExecutor() as pool:
        started = pool.submit(mesos.start)
        # As soon as it has its port, it says that it does not know its paths.
        until(lambda: listens(mesos.port), pause=0.001)
        assert client.call("GET_VERSION") == before
        started.result()


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        ({"state": "scheduled"}, "needs a window"),
        ({"state": "scheduled", "window": {"start": "tomorrow"}}, "give the time in UTC"),
        ({"state": "scheduled", "window": {**WINDOW, "duration": 0}}, "give more than 0"),
        ({"state": "up", "agents": ["gone"]}, "knows no machine gone"),
    ],
)
def test_a_window_that_cannot_be_is_refused(run: Any, wanted: dict[str, Any], words: str) -> None:
    found = run(mesos_maintenance, **{"agents": HERE, **wanted})
    assert found["failed"] and words in found["msg"]
