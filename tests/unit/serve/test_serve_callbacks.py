# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks reach the hosts that the operator allows, whatever a user or a name server says."""

from __future__ import annotations

import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from doubles.issuer import certificate
from gpufarm.serve import outbox
from gpufarm.serve.callbacks import Poster
from gpufarm.serve.outbox import Outbox
from gpufarm.serve.settings import Settings
from serve_site import Site


@dataclass
class Dashboard:
    """A server of callbacks, with its certificate for localhost."""

    port: int
    ca_file: Path
    got: list[tuple[str, str, Any]] = field(default_factory=list)
    status: int = 200

    def url(self, host: str = "localhost") -> str:
        return f"https://{host}:{self.port}/callback"


@pytest.fixture
def dashboard(tmp_path: Path) -> Iterator[Dashboard]:
    public, private = certificate(tmp_path / "dashboard")

    class Handler(BaseHTTPRequestHandler):
        def log_message(self, *_what: Any) -> None:
            pass

        def do_GET(self) -> None:
            made.got.append(("GET", self.path, None))

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            made.got.append((self.headers["Host"], self.path, body))
            self.send_response(made.status)
            if 300 <= made.status < 400:
                self.send_header("Location", made.url())
            self.send_header("Content-Length", "0")
            self.end_headers()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    made = Dashboard(server.server_address[1], public)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield made
    server.shutdown()
    server.server_close()


def poster(dashboard: Dashboard, hosts: set[str], private: set[str]) -> Poster:
    settings: Any = Settings.__new__(Settings)
    for name, value in {
        "callback_hosts": frozenset(hosts),
        "callback_private": frozenset(private),
        "callback_ca_file": dashboard.ca_file,
    }.items():
        object.__setattr__(settings, name, value)
    return Poster(settings)


LOCAL = {"localhost"}


def test_an_allowed_host_gets_the_object(dashboard: Dashboard) -> None:
    assert poster(dashboard, LOCAL, LOCAL).post(dashboard.url(), {"uuid": "x"}) == ("", False)
    assert dashboard.got == [(f"localhost:{dashboard.port}", "/callback", {"uuid": "x"})]


def test_a_private_address_needs_to_be_listed(dashboard: Dashboard) -> None:
    failure, final = poster(dashboard, LOCAL, set()).post(dashboard.url(), {})
    assert "private" in failure and final
    assert dashboard.got == []


ADDRESSES = [
    *("127.0.0.1", "10.1.2.3", "172.16.0.1", "192.168.1.1", "169.254.169.254", "100.64.0.1", "0.0.0.0"),
    *("::1", "fe80::1%2", "fc00::1", "::ffff:127.0.0.1", "2002:7f00:1::", "224.0.0.1", "255.255.255.255"),
]


@pytest.mark.parametrize("address", ADDRESSES)
@pytest.mark.parametrize("beside", [[], ["93.184.215.14"]])
def test_a_name_that_leads_inside_is_refused(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch, address: str, beside: list[str]
) -> None:
    def found(_host: str, port: int, **_what: Any) -> list[Any]:
        return [(socket.AF_INET, 1, 6, "", (one, port)) for one in [*beside, address]]

    monkeypatch.setattr(socket, "getaddrinfo", found)
    failure, final = poster(dashboard, {"dashboard.example.org"}, set()).post(
        dashboard.url("dashboard.example.org"), {}
    )
    assert "private address" in failure and final


def test_the_address_that_was_checked_is_used(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    """A name server that answers differently the second time gains nothing."""
    asked = []
    real = socket.getaddrinfo

    def found(host: Any, *rest: Any, **more: Any) -> list[Any]:
        asked.append(host)
        return real("127.0.0.1" if host == "localhost" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", found)
    assert poster(dashboard, LOCAL, LOCAL).post(dashboard.url(), {}) == ("", False)
    assert asked.count("localhost") == 1


def test_the_certificate_is_that_of_the_name(dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch) -> None:
    real = socket.getaddrinfo

    def here(host: Any, *rest: Any, **more: Any) -> list[Any]:
        return real("127.0.0.1" if host == "other.example.org" else host, *rest, **more)

    monkeypatch.setattr(socket, "getaddrinfo", here)
    other = {"other.example.org"}
    failure, final = poster(dashboard, other, other).post(dashboard.url("other.example.org"), {})
    assert "CERTIFICATE_VERIFY_FAILED" in failure and not final
    assert dashboard.got == []


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:1/",
        "https://localhost.evil.example.org/",
        "https://localhost@evil.example.org/",
        "https://evil.example.org#localhost",
        "https://evil.example.org\\@localhost/",
        "file:///etc/passwd",
        "",
    ],
)
def test_other_hosts_are_not_asked(dashboard: Dashboard, url: str) -> None:
    failure, final = poster(dashboard, LOCAL, LOCAL).post(url, {})
    assert "not allowed" in failure and final


STATUSES = [(302, True), (307, True), (404, True), (429, False), (500, False)]


@pytest.mark.parametrize(("status", "final"), STATUSES)
def test_redirects_are_not_followed_and_failures_are_told(
    dashboard: Dashboard, status: int, final: bool
) -> None:
    dashboard.status = status
    answer = poster(dashboard, LOCAL, LOCAL).post(dashboard.url(), {})
    assert answer == (f"localhost answers with status {status}", final)
    assert len(dashboard.got) == 1


def test_a_host_that_is_down_is_told(dashboard: Dashboard) -> None:
    failure, final = poster(dashboard, LOCAL, LOCAL).post("https://localhost:9/", {})
    assert "does not answer" in failure and not final


def waiting(paas: Site) -> Outbox:
    client = paas.user()
    body = {"template": paas.template, "callback": "https://dashboard.example.org/callback"}
    own = client.post("/deployments", json=body).json()["uuid"]
    client.delete(f"/deployments/{own}")
    return Outbox(paas.service.database)


def test_each_final_status_is_posted_once(paas: Site) -> None:
    box = waiting(paas)
    message = box.take()
    assert message and message.body["status"] == "DELETE_COMPLETE"
    assert {"uuid", "status", "task", "outputs", "updateTime"} <= message.body.keys()
    assert box.take() is None  # while it is under way
    box.settled(message)
    assert box.take() is None


class Statuses:
    """A deployment of which final statuses are posted, with a clock that does not go by itself.

    Attributes:
        late: seconds by which the clock is late.
    """

    def __init__(self, paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
        self.box, self.late = Outbox(paas.service.database), 0.0
        self._paas, self._client, now = paas, paas.user(), time.time()
        monkeypatch.setattr(outbox.time, "time", lambda: now + self.late)
        body = {"template": paas.template, "callback": "https://dashboard.example.org/callback"}
        self.here = f"/deployments/{self._client.post('/deployments', json=body).json()['uuid']}"
        paas.work()

    def update(self, **changes: str) -> None:
        text = self._paas.template
        answer = self._client.put(
            self.here, json={"template": text, "parameters": {"text": "two"}, **changes}
        )
        assert answer.status_code == 202, answer.text
        self._paas.work()

    def delete(self) -> None:
        assert self._client.delete(self.here).status_code == 204
        self._paas.work()

    def take(self) -> tuple[str, outbox.Message | None]:
        message = self.box.take()
        return message.body["status"] if message else "", message

    def sent(self, failure: str = "") -> list[str]:
        """Try all that is due, and tell what was posted."""
        found = []
        while message := self.box.take():
            found.append(message.body["status"])
            self.box.settled(message, failure)
        return found


def test_an_older_status_is_never_posted_after_a_newer_one(
    database_paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Statuses(database_paas, monkeypatch)
    assert told.sent("status 503") == ["CREATE_COMPLETE"]
    told.delete()
    assert told.sent() == []
    told.late = outbox.PAUSE + 1
    assert told.sent() == ["CREATE_COMPLETE", "DELETE_COMPLETE"]


def test_a_status_waits_for_the_older_one_that_is_under_way(
    paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Statuses(paas, monkeypatch)
    first, message = told.take()
    told.delete()
    assert message and first == "CREATE_COMPLETE" and told.take() == ("", None)
    told.box.settled(message)
    assert told.sent() == ["DELETE_COMPLETE"]


def test_an_address_that_is_dead_holds_up_neither_another_one_nor_the_last_status(
    paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Statuses(paas, monkeypatch)
    assert told.sent("status 503") == ["CREATE_COMPLETE"]
    told.update(callback="https://dashboard.example.org/other")
    assert told.sent() == ["UPDATE_COMPLETE"]
    told.update(callback="https://dashboard.example.org/callback")
    tries = []
    while "UPDATE_COMPLETE" not in tries:
        told.late += 3600
        tries += told.sent("status 503")
        assert len(tries) <= outbox.ATTEMPTS
    assert tries == ["CREATE_COMPLETE"] * (outbox.ATTEMPTS - 1) + ["UPDATE_COMPLETE"]


def test_attempts_end(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "PAUSE", 0.0)
    box = waiting(paas)
    attempts = 0
    while message := box.take():
        attempts += 1
        box.settled(message, "no answer")
    assert attempts == outbox.ATTEMPTS
