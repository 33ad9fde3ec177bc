# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to services of several servers, over real sockets: leaders, pauses, credentials, TLS."""

from __future__ import annotations

import base64
import datetime
import ipaddress
import json
import ssl
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.doc_fragments.cluster_http import ModuleDocFragment
from ansible_collections.gpufarm.cluster.plugins.module_utils._cluster.io.http import (
    CONNECTION_OPTIONS,
    ClusterClient,
    ClusterError,
    Connection,
    Refused,
    Unreachable,
    connection_problem,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.io.client import MesosClient
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from yaml import safe_load

Reply = tuple[int, dict[str, str], str]
CLOSED = "http://127.0.0.1:1"  # tcpmux: nobody listens there


class Server:
    """A server of a service that answers as it is told and remembers what it was asked."""

    def __init__(
        self, reply: Callable[[BaseHTTPRequestHandler], Reply], context: ssl.SSLContext | None
    ) -> None:
        server = self
        self.asked: list[tuple[str, str, str, dict[str, str]]] = []

        class Handler(BaseHTTPRequestHandler):
            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
                headers = {name.lower(): value for name, value in self.headers.items()}
                server.asked.append((self.command, self.path, body, headers))
                status, more, text = reply(self)
                self.send_response(status)
                for name, value in more.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            do_GET = do_POST = do_PUT = do_DELETE = answer

            def log_message(self, *_words: Any) -> None:
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if context:
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.address = f"127.0.0.1:{self.http.server_port}"
        self.url = f"{'https' if context else 'http'}://{self.address}"
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()


Serve = Callable[..., Server]


@pytest.fixture
def serve() -> Iterator[Serve]:
    made: list[Server] = []

    def make(reply: Callable[[Any], Reply] | Reply, context: ssl.SSLContext | None = None) -> Server:
        made.append(Server(reply if callable(reply) else lambda _handler: reply, context))
        return made[-1]

    yield make
    for server in made:
        server.http.shutdown()
        server.http.server_close()


class Time:
    """A clock that only pauses move."""

    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def client(*urls: str, **options: Any) -> tuple[ClusterClient, Time]:
    time = Time()
    return (
        ClusterClient(Connection(urls, **options), "Mesos", sleep=time.sleep, clock=lambda: time.now),
        time,
    )


def test_an_answer_is_json(serve: Serve) -> None:
    server = serve((200, {}, '{"leader": "a"}'))
    found = client(server.url)[0].request("POST", "/api/v1", {"type": "GET_MASTER"})
    assert found.json() == {"leader": "a"}
    method, path, body, headers = server.asked[0]
    assert (method, path, json.loads(body)) == ("POST", "/api/v1", {"type": "GET_MASTER"})
    assert headers["accept"] == headers["content-type"] == "application/json"
    assert "authorization" not in headers


def test_a_page_in_place_of_json_is_told(serve: Serve) -> None:
    with pytest.raises(ClusterError, match="no JSON"):
        client(serve((200, {}, "<html>")).url)[0].request("GET", "/").json()


def test_a_standby_sends_on_to_the_leader_who_is_asked_first_from_then_on(serve: Serve) -> None:
    leader = serve((200, {}, "{}"))
    # Mesos names the leader without a scheme
    standby = serve((307, {"Location": f"//{leader.address}/master/api/v1"}, ""))
    one, _time = client(standby.url, username="operator", password="p:w")
    for _number in range(2):
        one.request("POST", "/master/api/v1", {"type": "X"})
    assert len(standby.asked) == 1 and len(leader.asked) == 2
    method, path, body, headers = leader.asked[0]
    assert (method, path, body) == ("POST", "/master/api/v1", '{"type": "X"}')
    assert base64.b64decode(headers["authorization"].removeprefix("Basic ")) == b"operator:p:w"


def test_a_new_leader_is_found_when_the_old_one_is_gone(serve: Serve) -> None:
    first = serve((200, {}, '"first"'))
    second = serve((200, {}, '"second"'))
    one, time = client(first.url, second.url)
    assert one.request("GET", "/").json() == "first"
    first.http.shutdown()
    first.http.server_close()
    assert one.request("GET", "/").json() == "second"
    assert time.pauses == []


def test_it_waits_longer_and_longer_for_a_leader(serve: Serve) -> None:
    left = [503, 503, 503]
    server = serve(lambda _handler: (left.pop(), {}, "no leader") if left else (200, {}, "{}"))
    one, time = client(server.url)
    assert one.request("GET", "/").status == 200
    assert time.pauses == [0.25, 0.5, 1.0]


def test_a_master_that_has_its_port_before_its_paths_is_waited_for(serve: Serve) -> None:
    left = [503, 404]
    server = serve(lambda _handler: (left.pop(), {}, "404 Not Found.") if left else (200, {}, "{}"))
    time = Time()
    one = MesosClient(Connection((server.url,)), sleep=time.sleep, clock=lambda: time.now)
    assert one.call("GET_AGENTS") == {}
    assert time.pauses == [0.25, 0.5]


def test_redirects_in_a_circle_are_an_election(serve: Serve) -> None:
    left = [True] * 4

    def reply(handler: BaseHTTPRequestHandler) -> Reply:
        return (307, {"Location": handler.path}, "") if left and left.pop() else (200, {}, "{}")

    one, time = client(serve(reply).url)
    assert one.request("GET", "/").status == 200
    assert time.pauses == [0.25]


def test_nobody_answers(serve: Serve) -> None:
    server = serve((503, {}, "No leader elected"))
    one, time = client(CLOSED, server.url, patience=10)
    with pytest.raises(Unreachable) as caught:
        one.request("GET", "/")
    assert "Connection refused" in str(caught.value) and "No leader elected" in str(caught.value)
    assert max(time.pauses) == 4.0 and time.now <= 10


@pytest.mark.parametrize(("status", "asked"), [(503, 2), (504, 1)])
def test_what_must_not_happen_twice_is_sent_again_only_if_it_was_not_begun(
    serve: Serve, status: int, asked: int
) -> None:
    left = [status]
    server = serve(lambda _handler: (left.pop(), {}, "") if left else (200, {}, "{}"))
    one, _time = client(CLOSED, server.url)
    if status == 504:
        with pytest.raises(Unreachable):
            one.request("POST", "/", {}, repeatable=False)
    else:
        one.request("POST", "/", {}, repeatable=False)
    assert len(server.asked) == asked


@pytest.mark.parametrize(
    ("status", "text", "words"),
    [
        (401, "", "does not accept these credentials"),
        (403, "ACL", "does not allow it to operator"),
        (400, '{"message": "is not\\n valid."}', "refuses: is not valid (HTTP status 400)."),
        (409, "locked", "refuses: locked (HTTP status 409)."),
    ],
)
def test_a_refusal_says_why_and_is_not_asked_again(serve: Serve, status: int, text: str, words: str) -> None:
    server = serve((status, {}, text))
    with pytest.raises(Refused) as caught:
        client(server.url, username="operator", password="secret-word")[0].request("GET", "/")
    assert words in str(caught.value) and "secret-word" not in str(caught.value)
    assert caught.value.status == status and len(server.asked) == 1


def test_a_status_that_is_expected_is_an_answer(serve: Serve) -> None:
    assert client(serve((404, {}, "")).url)[0].request("GET", "/", expect=(200, 404)).status == 404


def test_a_token_is_sent_in_place_of_a_user(serve: Serve) -> None:
    server = serve((200, {}, ""))
    client(server.url, token="abc", token_scheme="token")[0].request("GET", "/")
    assert server.asked[0][3]["authorization"] == "token abc"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"urls": []}, "no address"),
        ({"urls": ["master1:5050"]}, "is no address"),
        ({"urls": ["http://m:99999"]}, "is no address"),
        ({"urls": ["http://u:p@m:5050"]}, "give username and password apart"),
        ({"urls": ["http://m:5050/?x=1"]}, "has a query"),
        ({"urls": ["http://m"], "token": "t", "username": "u", "password": "p"}, "a token and a user"),
        ({"urls": ["http://m"], "username": "u"}, "belong together"),
        ({"urls": ["http://m", "https://n"]}, "some https"),
    ],
)
def test_a_connection_that_cannot_work_is_refused(options: dict[str, Any], words: str) -> None:
    assert words in connection_problem(Connection(**options))


def test_the_options_are_those_that_are_documented() -> None:
    documented = safe_load(ModuleDocFragment.DOCUMENTATION)["options"]
    assert documented.keys() == CONNECTION_OPTIONS.keys() == set(Connection._fields)
    for name, option in CONNECTION_OPTIONS.items():
        assert documented[name].get("default") == option.get("default"), name
        assert documented[name]["type"] == option["type"], name


def certificate(folder: Path) -> tuple[Path, ssl.SSLContext]:
    """A certificate for 127.0.0.1 that signs itself, and what a server needs to show it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "master")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), False
        )
        .add_extension(x509.BasicConstraints(True, None), True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "master.pem", folder / "master.key"
    public.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return public, context


def test_tls_is_verified(serve: Serve, tmp_path: Path) -> None:
    authority, context = certificate(tmp_path)
    leader = serve((200, {}, "{}"), context)
    standby = serve((307, {"Location": f"//{leader.address}/"}, ""), context)
    assert client(standby.url, ca_path=str(authority))[0].request("GET", "/").status == 200
    one, time = client(standby.url)
    with pytest.raises(Unreachable, match="certificate cannot be verified"):
        one.request("GET", "/")
    assert time.pauses == [], "asking again does not help"
    assert len(standby.asked) == 1


def test_credentials_are_not_sent_on_without_tls(serve: Serve, tmp_path: Path) -> None:
    authority, context = certificate(tmp_path)
    plain = serve((200, {}, "{}"))
    standby = serve((307, {"Location": plain.url}, ""), context)
    with pytest.raises(ClusterError, match="which is not https"):
        client(standby.url, ca_path=str(authority), token="t")[0].request("GET", "/")
    assert plain.asked == []
