"""The HTTP side of the fakes: basic authentication, TLS from a keystore, standbys that send on to the
leader.

Sources: mesosphere/chaos, HttpModule.scala (one account for all paths, the keystore); mesosphere/marathon,
LeaderProxyFilter.scala (a standby proxies and names the leader in X-Marathon-Leader, sends /v2/events on to
it by redirect, and answers 503 "Could not determine the current leader" when there is none).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import hmac
import json
import os
import ssl
import subprocess
import tempfile
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple
from urllib.parse import parse_qs, unquote, urlsplit

from .store import Store

NO_LEADER = "Could not determine the current leader"
VIA = "X-Fake-Via"  # set on what a standby proxies, so that it goes round no more than once


class Request(NamedTuple):
    """Request of a client; the query has a list of values for each name."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    body: bytes
    headers: Mapping[str, str]

    def flag(self, name: str, default: bool = False) -> bool:
        """Return a value of the query that is true or false."""
        return self.query.get(name, [str(default)])[-1].lower() == "true"

    def json(self) -> Any:
        """Return the body.

        :raises ValueError: it is no JSON
        """
        return json.loads(self.body or b"null")


class Response(NamedTuple):
    """Response to a client: JSON, text, or a stream of texts."""

    status: int
    content: Any = None
    headers: Mapping[str, str] = {}
    stream: Iterator[str] | None = None


class Service(NamedTuple):
    """Routes of a fake.

    :ivar store: knows the leader
    :ivar name: `host:port` of this instance, as it stands for election
    :ivar answer: answers what the leader is asked
    :ivar local: paths that every instance answers by itself
    :ivar redirected: beginnings of paths that a standby redirects instead of proxying
    :ivar credentials: `user:password` that every request needs; empty for none
    """

    store: Store
    name: str
    answer: Callable[[Request], Response]
    local: tuple[str, ...] = ("/ping", "/metrics")
    redirected: tuple[str, ...] = ()
    credentials: str = ""
    https: bool = False


class Handler(BaseHTTPRequestHandler):
    """One request."""

    service: Service
    protocol_version = "HTTP/1.1"

    def _handle(self) -> None:
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        query = parse_qs(parts.query, keep_blank_values=True)
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, unquote(parts.path), query, self.rfile.read(size), headers)
        self._send(self._answer(request))

    do_GET = do_PUT = do_POST = do_PATCH = do_DELETE = _handle

    def _answer(self, request: Request) -> Response:
        service = self.service
        if not self._allowed(request):
            return Response(401, "Unauthorized", {"WWW-Authenticate": 'Basic realm="Mesosphere"'})
        if request.path in service.local:
            return service.answer(request)
        leader = service.store.leader()
        if not leader:
            return Response(503, NO_LEADER)
        if leader == service.name:
            return service.answer(request)
        address = f"{'https' if service.https else 'http'}://{leader}{self.path}"
        if request.path.startswith(service.redirected or ("\0",)):
            return Response(302, headers={"Location": address})
        if VIA in self.headers:
            return Response(502, "Prevented proxying loop.")
        return self._proxy(address, leader, request)

    def _allowed(self, request: Request) -> bool:
        wanted = self.service.credentials
        if not wanted:
            return True
        sent = request.headers.get("authorization", "").partition(" ")[2]
        return hmac.compare_digest(sent, base64.b64encode(wanted.encode()).decode())

    def _proxy(self, address: str, leader: str, request: Request) -> Response:
        passed = {
            name: value
            for name, value in self.headers.items()
            if name.lower() not in ("host", "content-length")
        }
        asked = urllib.request.Request(  # noqa: S310 - the address is that of another instance
            address, request.body or None, {**passed, VIA: self.service.name}, method=request.method
        )
        # The instances of one cluster share a certificate that only their clients verify.
        context = ssl._create_unverified_context() if self.service.https else None  # noqa: S323
        try:
            with urllib.request.urlopen(asked, timeout=10, context=context) as answer:  # noqa: S310
                status, text = answer.status, answer.read().decode()
                kept = answer.headers
        except urllib.error.HTTPError as error:
            status, text, kept = error.code, error.read().decode(), error.headers
        except OSError as error:
            return Response(502, f"Error while proxying to the leader: {error}")
        headers = {"X-Marathon-Leader": leader, "Content-Type": kept.get("Content-Type", "text/plain")}
        return Response(status, text, headers)

    def _send(self, response: Response) -> None:
        content, kind = response.content, "text/plain"
        if not isinstance(content, str) and content is not None:
            content, kind = json.dumps(content), "application/json"
        data = (content or "").encode()
        self.send_response(response.status)
        for name, value in {"Content-Type": kind, **response.headers}.items():
            self.send_header(name, value)
        if response.stream is None:
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)
            return
        self.send_header("Connection", "close")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        try:
            for text in response.stream:
                data = text.encode()
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
        except OSError:
            pass  # the client has gone

    def log_message(self, format: str, *args: Any) -> None:
        """Say what was asked, without secrets."""
        print(f"{self.service.name} {self.address_string()} {format % args}", flush=True)


def keystore_context(path: str, password: str) -> ssl.SSLContext:
    """Return how to serve TLS with a keystore, which Java reads in the form of PKCS 12.

    :raises subprocess.CalledProcessError: the password is wrong, or there is no key
    """
    pem = subprocess.run(
        ["openssl", "pkcs12", "-in", path, "-nodes", "-passin", "env:KEYSTORE_PASSWORD"],
        env=os.environ | {"KEYSTORE_PASSWORD": password},
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.NamedTemporaryFile() as file:
        file.write(pem)
        file.flush()
        context.load_cert_chain(file.name)
    return context


def listen(
    service: Service, address: str, port: int, context: ssl.SSLContext | None = None
) -> ThreadingHTTPServer:
    """Serve at a port, in threads of its own.

    :param port: 0 for any that is free
    """
    handler = type("ServiceHandler", (Handler,), {"service": service})
    server = ThreadingHTTPServer((address, port), handler)
    server.daemon_threads = True
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    return server
