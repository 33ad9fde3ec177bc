# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plans and refusals for settings of a ZooKeeper ensemble, and answers of servers."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.filter.zookeeper_digest import zookeeper_digest
from ansible_collections.gpufarm.cluster.plugins.module_utils import _zookeeper
from ansible_collections.gpufarm.cluster.plugins.modules import zookeeper_info
from hypothesis import given
from hypothesis import strategies as st

ROLE = Path(__file__).resolve().parents[3] / "roles" / "zookeeper"
THREE = {"zk1": "10.0.0.1", "zk2": "10.0.0.2", "zk3": ""}


def role_settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("zookeeper_"): value for name, value in defaults.items()}
    return {**found, "hosts": THREE, "ids": {}, "current": "", "found": [], **changes}


def problems(**changes: Any) -> str:
    return " ".join(_zookeeper.plan(role_settings(**changes))["problems"])


def test_hosts_of_the_play_are_the_ensemble() -> None:
    plan = _zookeeper.plan(role_settings())
    assert [(one["id"], one["name"], one["address"]) for one in plan["servers"]] == [
        (1, "zk1", "10.0.0.1"),
        (2, "zk2", "10.0.0.2"),
        (3, "zk3", "zk3"),
    ]
    assert (plan["quorum"], plan["warning"], plan["left_out"]) == (2, "", [])


def test_a_machine_keeps_its_number_whatever_the_order() -> None:
    plan = _zookeeper.plan(role_settings(ids={"zk2": 1, "zk3": 7}))
    assert {one["name"]: one["id"] for one in plan["servers"]} == {"zk1": 2, "zk2": 1, "zk3": 7}


def test_the_number_of_a_machine_that_cannot_be_asked_is_known_to_the_others() -> None:
    current = "server.1=10.0.0.1:2888:3888\nserver.5=10.0.0.2:2888:3888\n"
    plan = _zookeeper.plan(role_settings(ids={"zk1": 1}, current=current))
    assert {one["name"]: one["id"] for one in plan["servers"]} == {"zk1": 1, "zk2": 5, "zk3": 2}


@pytest.mark.parametrize(
    ("servers", "change", "words"),
    [
        (1, {}, ""),
        (1, {"data_directory": "/srv/zk"}, "move /var/lib/zookeeper/version-2 to /srv/zk, and run again."),
        (1, {"log_directory": "/srv/log"}, "zookeeper_log_directory would be /srv/log, and the data are in"),
        (2, {"data_directory": "/srv/zk"}, "without which the server loses what its clients keep there"),
        (1, {"data_directory": "/srv/zk", "found": ["/srv/zk/version-2"]}, ""),
        (3, {"data_directory": "/srv/zk"}, ""),
    ],
)
def test_a_server_is_not_parted_from_its_data(servers: int, change: dict[str, Any], words: str) -> None:
    hosts = {name: THREE[name] for name in list(THREE)[:servers]}
    current = _zookeeper.plan(role_settings(hosts=hosts))["configuration"]
    # More servers at the same time have no data either.
    told = problems(hosts=THREE, current=current, **change)
    assert words in told and bool(told) == bool(words)


@given(st.permutations(list(THREE)), st.dictionaries(st.sampled_from(list(THREE)), st.integers(1, 255)))
def test_numbers_are_unique_and_stay(order: list[str], ids: dict[str, int]) -> None:
    settings = role_settings(hosts={name: THREE[name] for name in order}, ids=ids)
    servers = _zookeeper.ensemble(settings)
    if len(set(ids.values())) == len(ids):
        assert len({server.id for server in servers}) == 3
        again = _zookeeper.ensemble({**settings, "ids": {one.name: one.id for one in servers}})
        assert again == servers


def test_a_server_outside_of_the_play_is_missed() -> None:
    current = "server.1=10.0.0.1:2888:3888\nserver.4=[fd00::4]:2888:3888\n"
    assert _zookeeper.plan(role_settings(ids={"zk1": 1}, current=current))["left_out"] == ["fd00::4"]
    listed = [{"id": 1, "name": "zk1"}, {"id": 2, "name": "zk2"}, {"id": 3, "name": "zk3"}]
    assert _zookeeper.plan(role_settings(servers=listed, current=current))["left_out"] == []


def test_the_configuration_keeps_strangers_out() -> None:
    text = _zookeeper.plan(role_settings(settings={"tickTime": 1000, "syncEnabled": True}))["configuration"]
    lines = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)
    assert lines["quorum.auth.serverRequireSasl"] == lines["quorum.auth.learnerRequireSasl"] == "true"
    assert lines["admin.enableServer"] == "false"
    assert lines["4lw.commands.whitelist"] == "mntr, ruok, srvr"
    assert lines["autopurge.purgeInterval"] == "24"
    assert (lines["tickTime"], lines["syncEnabled"]) == ("1000", "true")
    assert lines["server.1"] == "10.0.0.1:2888:3888"
    assert _zookeeper.configured_servers(text) == {1: "10.0.0.1", 2: "10.0.0.2", 3: "zk3"}


def test_a_server_alone_has_no_quorum_to_guard() -> None:
    text = _zookeeper.plan(role_settings(hosts={"zk1": "fd00::1"}))["configuration"]
    assert "quorum.auth" not in text and "server.1=[fd00::1]:2888:3888" in text


def test_places_and_addresses_are_the_ones_that_are_given() -> None:
    given = {"data_directory": "/srv/data", "log_directory": "/srv/log", "listen_address": "10.0.0.9"}
    text = _zookeeper.plan(role_settings(**given))["configuration"]
    assert {"dataDir=/srv/data", "dataLogDir=/srv/log", "clientPortAddress=10.0.0.9"} <= set(text.split())


def test_an_even_number_is_explained() -> None:
    words = _zookeeper.plan(role_settings(hosts={**THREE, "zk4": ""}))["warning"]
    assert "3 of 4 have to run, so 1 may be lost, as with 3 servers" in words


def test_everything_is_refused_at_once() -> None:
    words = problems(
        servers=[{"id": 1, "name": "zk1"}, {"id": 1, "name": "zk2"}],
        client_port=2888,
        data_directory="/tmp/zk",
        snapshots_kept=1,
        purge_interval=0,
        commands=["srvr", "kill"],
        heap_mb=1,
        settings={"tickTme": 1, "dataDir": "/x", "server.9": "x", "initLimit": "5\nskipACL=yes"},
    )
    for part in (
        "The id 1 belongs to 2 servers of the ensemble (zk1, zk2)",
        "zk3 is not in zookeeper_servers",
        "are not three different ones",
        "is /tmp/zk, which the system empties",
        "zookeeper_snapshots_kept is 1",
        "zookeeper_purge_interval is 0",
        "has 'kill', which may not be allowed",
        "lacks mntr",
        "zookeeper_heap_mb is 1",
        "tickTme, which ZooKeeper does not know; did you mean tickTime?",
        "set zookeeper_data_directory in its place",
        "server.9, which this role decides",
        "zookeeper_settings.initLimit is no plain value",
    ):
        assert part in words, part


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"servers": [{"id": 1}]}, "each entry needs id and name"),
        ({"servers": [{"id": 0, "name": "zk1"}]}, "choose a number from 1 to 255"),
        ({"servers": [{"id": "two", "name": "zk1"}]}, "choose a number from 1 to 255"),
        ({"hosts": {"zk1": "10.0.0.1:2181"}}, "neither a host name nor an IP address"),
        ({"hosts": {"zk1": "10.0.0.1", "zk2": "10.0.0.1"}}, "The address 10.0.0.1 belongs to 2 servers"),
        ({"servers": [{"id": 2, "name": "zk1"}], "hosts": {"zk1": ""}, "ids": {"zk1": 1}}, "should get 2"),
        ({"client_port": 0}, "a port is a number from 1 to 65535"),
    ],
)
def test_what_cannot_work_is_refused(changes: dict[str, Any], words: str) -> None:
    assert words in problems(**changes)


def test_no_setting_has_two_ways() -> None:
    assert not _zookeeper.SETTINGS & (set(_zookeeper.OWN) | set(_zookeeper.FIXED))
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    assert set(_zookeeper.OWN.values()) <= set(defaults)


@pytest.mark.parametrize(
    ("modes", "serves"),
    [
        (["standalone"], True),
        (["leader", "follower", "stopped"], True),
        (["leader", "stopped", "stopped"], False),
        (["electing", "electing", "electing"], False),
        (["standalone", "stopped", "stopped"], False),
        (["leader", "leader", "follower"], False),
    ],
)
def test_a_quorum_serves(modes: list[str], serves: bool) -> None:
    assert _zookeeper.serving(modes) is serves


def state(mode: str, reason: str = "", address: str = "zk1:2181") -> dict[str, Any]:
    return {"address": address, "mode": mode, "reason": reason}


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ([state("follower"), state("unreachable", "no answer within 5 seconds")], ""),
        ([state("unknown")], ""),
        ([], ""),
        ([state("electing"), state("stopped", address="zk2")], "zk1:2181 is electing, zk2 is stopped; check"),
        (
            [state("leader"), state("unreachable", _zookeeper.UNRESOLVED, "zk9:2181")],
            "the name of zk9:2181 cannot be resolved; correct it.",
        ),
    ],
)
def test_a_client_needs_one_that_serves_and_names_that_exist(
    states: list[dict[str, Any]], words: str
) -> None:
    problem = _zookeeper.client_problem(states)
    assert problem.startswith(words) if words else problem == ""


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("zk1", "zk1", 2181),
        ("zk1:99", "zk1", 99),
        ("fd00::1", "fd00::1", 2181),
        ("[fd00::1]:99", "fd00::1", 99),
        ("[fd00::1]", "fd00::1", 2181),
    ],
)
def test_an_address_may_have_a_port(address: str, host: str, port: int) -> None:
    assert _zookeeper.place(address, 2181) == (host, port)


def test_the_digest_is_that_of_zookeeper() -> None:
    # documented in ZooKeeper's programmer's guide and printed by its own generator for super:admin
    assert zookeeper_digest("super:admin") == "xQJmxLMiHGwaqBvst5y6rkB6HQs="


class Listener:
    """A server that answers every connection with the same text."""

    def __init__(self, text: bytes) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.text = text
        threading.Thread(target=self.run, daemon=True).start()

    def run(self) -> None:
        while True:
            try:
                link = self.socket.accept()[0]
            except OSError:
                return
            with link:
                link.recv(4)
                link.sendall(self.text)


STATUS = b"""Zookeeper version: 3.8.0-${mvngit.commit.id}, built on 2024-12-29 17:54 UTC
Latency min/avg/max: 0/0.0/0
Received: 2
Sent: 1
Connections: 3
Outstanding: 0
Zxid: 0x100000002
Mode: follower
Node count: 5
"""


@pytest.fixture
def listen() -> Iterator[Any]:
    made: list[Listener] = []

    def make(text: bytes) -> int:
        made.append(Listener(text))
        return made[-1].port

    yield make
    for one in made:
        one.socket.close()


def test_a_server_tells_its_state(listen: Any) -> None:
    assert zookeeper_info.ask("127.0.0.1", listen(STATUS), 5) == {
        "address": "127.0.0.1",
        "mode": "follower",
        "reason": "",
        "version": "3.8.0",
        "connections": 3,
        "zxid": "0x100000002",
        "nodes": 5,
    }


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        (b"This ZooKeeper instance is not currently serving requests\n", "electing"),
        (b"srvr is not executed because it is not in the whitelist.\n", "unknown"),
        (b"HTTP/1.0 400 Bad request\r\n\r\n", "unknown"),
    ],
)
def test_a_server_that_does_not_serve_says_so(listen: Any, text: bytes, mode: str) -> None:
    assert zookeeper_info.ask("127.0.0.1", listen(text), 5)["mode"] == mode


def test_nobody_answers() -> None:
    assert zookeeper_info.ask("127.0.0.1", 1, 5)["mode"] == "stopped"
    gone = zookeeper_info.ask("gone.invalid", 2181, 5)
    assert (gone["mode"], gone["reason"]) == ("unreachable", "its name cannot be resolved")
