"""HAProxy gets what it takes; whatever goes wrong, what was served is served on."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import socket
import socketserver
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io import haproxy
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.command import Follower
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.haproxy import Haproxy, HaproxyError
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.marathon import Account, Marathon
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.names import LIFETIME, Names
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.update import Gateway, Places
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.routes import Settings
from small_marathon import SmallMarathon

SETTINGS = Settings(("external",), "gate.example.org", (10000, 10100))


class Proxy:
    """Takes everything but what has a forbidden word, and remembers what it took."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.forbidden: list[str] = []
        self.together = 99
        self.up = True
        self.stubborn = False
        self.taken: list[str] = []

    def check(self, part: Path) -> None:
        text = part.read_text()
        if (
            any(word in text for word in self.forbidden)
            or text.count("backend ") - text.count("default_") > self.together
        ):
            raise HaproxyError("no")

    def runs(self) -> bool:
        return self.up

    def reload(self) -> None:
        if self.stubborn:
            raise HaproxyError("its new worker could not start")
        self.taken.append((self.folder / "apps.cfg").read_text())


def app(app_id: str, port: int, host: str = "10.0.0.1", **labels: str) -> dict[str, Any]:
    return {
        "id": app_id,
        "labels": {"HAPROXY_GROUP": "external"} | labels,
        "portDefinitions": [{"port": port}],
        "tasks": [{"id": "t", "host": host, "ports": [31001], "state": "TASK_RUNNING"}],
    }


class Setup:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.proxy = Proxy(folder)
        self.busy: set[int] = set()
        self.gateway = self.make()

    def make(self) -> Gateway:
        def ask(name: str) -> str:
            if name == "nowhere":
                raise OSError
            return "10.0.0.9"

        def taken(ports: Iterable[int]) -> list[int]:
            return sorted(self.busy & set(ports))

        return Gateway(
            SETTINGS, Places(self.folder, "/cert", "*:{port}"), self.proxy, Names(ask).addresses, taken
        )

    def served(self) -> str:
        return (self.folder / "apps.cfg").read_text()


@pytest.fixture
def setup(tmp_path: Path) -> Setup:
    return Setup(tmp_path)


def test_the_second_look_changes_nothing(setup: Setup) -> None:
    assert setup.gateway.update([app("/a", 10001)]).reloaded
    assert not setup.gateway.update([app("/a", 10001)]).reloaded
    assert setup.gateway.update([app("/a", 10001), app("/b", 10002)]).reloaded
    assert len(setup.proxy.taken) == 2


def test_after_a_restart_haproxy_is_given_the_files_once(setup: Setup) -> None:
    setup.gateway.update([app("/a", 10001)])
    again = setup.make()
    assert again.update([app("/a", 10001)]).reloaded and not again.update([app("/a", 10001)]).reloaded


def test_an_app_that_haproxy_does_not_take_is_left_out(setup: Setup) -> None:
    setup.proxy.forbidden = ["users_bad_0"]
    apps = [
        app(f"/users/{name}", 10001 + index) for index, name in enumerate(("anna", "bad", "carl", "dora"))
    ]
    report = setup.gateway.update(apps)
    assert [route.app for route in report.routes] == ["/users/anna", "/users/carl", "/users/dora"]
    assert report.problems == ["/users/bad, port 0 is not served: HAProxy does not take it."]
    assert "users_bad" not in setup.served()


def test_what_is_refused_as_a_whole_leaves_everything_as_it_was(setup: Setup) -> None:
    setup.gateway.update([app("/a", 10001)])
    before = setup.served()
    setup.proxy.together = 1
    with pytest.raises(HaproxyError, match="together"):
        setup.gateway.update([app("/a", 10001), app("/b", 10002)])
    assert setup.served() == before
    setup.proxy.together = 99
    assert setup.gateway.update([app("/a", 10001), app("/b", 10002)]).reloaded


def test_files_of_a_reload_that_failed_are_taken_back(setup: Setup) -> None:
    setup.gateway.update([app("/a", 10001)])
    before = setup.served()
    setup.proxy.stubborn = True
    with pytest.raises(HaproxyError):
        setup.gateway.update([app("/a", 10001, HAPROXY_0_VHOST="x.org")])
    assert setup.served() == before and (setup.folder / "routes.map").read_text() == ""
    assert json.loads((setup.folder / "holders.json").read_text()) == {"port 10001": "a_0"}


def test_a_port_of_another_program_is_left_out_before_haproxy_stumbles_over_it(setup: Setup) -> None:
    setup.busy = {10001}
    report = setup.gateway.update([app("/a", 10001), app("/b", 10002)])
    assert [route.app for route in report.routes] == ["/b"] and "another program" in report.problems[0]
    # Its own ports are HAProxy's, unless it is down.
    setup.busy = {10002}
    assert [route.app for route in setup.gateway.update([app("/b", 10002)]).routes] == ["/b"]
    setup.proxy.up = False
    assert setup.gateway.update([app("/b", 10002)]).routes == []


def test_a_name_stays_with_its_app_over_a_restart(setup: Setup) -> None:
    first, thief = app("/z", 10001, HAPROXY_0_VHOST="x.org"), app("/a", 10002, HAPROXY_0_VHOST="x.org")
    setup.gateway.update([first])
    report = setup.make().update([thief, first])
    assert [route.app for route in report.routes] == [
        "/z"
    ] and "x.org is taken by backend z_0" in report.problems[0]


def test_machines_without_an_address_get_no_requests_and_stop_nothing(setup: Setup) -> None:
    report = setup.gateway.update([app("/a", 10001, "nowhere"), app("/b", 10002, "agent1")])
    assert len(report.routes) == 2 and "nowhere has no address" in report.problems[0]
    assert "nowhere" not in setup.served() and "agent1:31001 10.0.0.9:31001" in setup.served()


def test_haproxy_that_is_down_finds_the_files_when_it_starts(setup: Setup) -> None:
    setup.proxy.up = False
    assert setup.gateway.update([app("/a", 10001)]).reloaded
    assert setup.proxy.taken == [] and "a_0" in setup.served()


def test_a_damaged_memory_is_forgotten(setup: Setup) -> None:
    (setup.folder / "holders.json").write_text("[")
    assert setup.make().update([app("/a", 10001)]).routes


def test_the_follower_tells_how_things_are(
    setup: Setup, marathon: SmallMarathon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marathon.apps = [app("/a", 10001), app("/b", 22)]
    status = tmp_path / "status.json"
    follower = Follower(Marathon([marathon.url], Account()), setup.gateway, status)
    assert follower.look() == "" and follower.look() == ""
    document = json.loads(status.read_text())
    assert [route["app"] for route in document["routes"]] == ["/a"] and document["failure"] == ""
    assert "/b, port 0 is not served" in document["problems"][0]
    assert capsys.readouterr().out.count("/b, port 0") == 1
    marathon.status = 503
    assert "The routes stay as they are" in follower.look()
    document = json.loads(status.read_text())
    assert "503" in document["failure"] and len(document["routes"]) == 1
    assert len(setup.proxy.taken) == 1


def test_addresses_are_asked_for_again_and_kept_when_there_is_none() -> None:
    asked: list[str] = []
    answers = iter(["10.0.0.1", None, "10.0.0.2"])
    now = [0.0]

    def ask(name: str) -> str:
        asked.append(name)
        answer = next(answers)
        if answer is None:
            raise OSError
        return answer

    names = Names(ask, lambda: now[0])
    found = []
    for moment in (0, LIFETIME - 1, LIFETIME, 2 * LIFETIME):
        now[0] = moment
        found.append(names.addresses(["agent1", "fe80::1"]))
    assert [one["agent1"] for one in found] == ["10.0.0.1", "10.0.0.1", "10.0.0.1", "10.0.0.2"]
    assert found[0]["fe80::1"] == "fe80::1" and len(asked) == 3


class Master(socketserver.ThreadingUnixStreamServer):
    """Answers as HAProxy 2.6's master process does, which waits for the next command until there is none."""

    daemon_threads = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _MasterHandler)
        self.reloads, self.failed, self.broken, self.deaf = 4, 0, False, False


class _MasterHandler(socketserver.StreamRequestHandler):
    server: Master

    def handle(self) -> None:
        command = self.rfile.readline().decode().strip()
        if command == "reload" and not self.server.deaf:
            self.server.reloads += 1
            self.server.failed = self.server.failed + 1 if self.server.broken else 0
        if command == "show proc":
            text = (
                "#<PID>          <type>          <reloads>       <uptime>        <version>      \n"
                f"3483            master          {self.server.reloads} [failed: {self.server.failed}]"
                "   0d00h00m31s     2.6.12\n"
                "# workers\n4793            worker          1               0d00h00m03s     2.6.12\n"
            )
            self.wfile.write(text.encode())
        self.rfile.read()


@pytest.fixture
def master(tmp_path: Path) -> Iterator[Master]:
    server = Master(tmp_path / "master.sock")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_reload_is_over_when_the_new_worker_runs(master: Master, tmp_path: Path) -> None:
    proxy = Haproxy(tmp_path / "base.cfg", tmp_path / "master.sock", patience=2)
    assert proxy.runs()
    proxy.reload()
    assert master.reloads == 5
    master.broken = True
    with pytest.raises(HaproxyError, match="could not start"):
        proxy.reload()
    master.broken, master.deaf = False, True
    with pytest.raises(HaproxyError, match="has not taken"):
        proxy.reload()


def test_nobody_at_the_socket_is_a_haproxy_that_does_not_run(tmp_path: Path) -> None:
    assert not Haproxy(tmp_path / "base.cfg", tmp_path / "master.sock").runs()


def test_the_first_complaint_is_told(tmp_path: Path) -> None:
    program = tmp_path / "haproxy"
    program.write_text("#!/bin/sh\necho '[NOTICE] hm' >&2; echo '[ALERT] no such word' >&2; exit 1\n")
    program.chmod(0o755)
    proxy = Haproxy(tmp_path / "base.cfg", tmp_path / "master.sock", str(program))
    with pytest.raises(HaproxyError, match="no such word"):
        proxy.check(tmp_path / "x.cfg")


def test_ports_on_which_others_listen_are_found() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert haproxy.taken([port]) == [port]
    assert haproxy.taken([port]) == []
