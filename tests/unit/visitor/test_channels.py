"""The visitor's web socket: one thread, and what the other side says or does not say."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import http
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from websockets.asyncio.server import Request, Response, ServerConnection, serve
from websockets.exceptions import ConnectionClosed, InvalidStatus

from lab.channels import Channels
from lab.iam.certificates import ensure_certificates
from lab.patience import PATIENCE

HEADERS = {"Cookie": "session=42"}


async def talk(connection: ServerConnection) -> None:
    assert connection.request and connection.request.headers["Cookie"] == "session=42"
    async for message in connection:
        if message == "go away":
            return
        if message != "say nothing":
            await connection.send(f"you said {message}")


async def check(connection: ServerConnection, request: Request) -> Response | None:
    if request.path == "/forbidden":
        return connection.respond(http.HTTPStatus.FORBIDDEN, "not you")
    if request.path == "/slow":
        await asyncio.sleep(2 * PATIENCE)
    return None


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Certificates of a server and its client."""
    folder = tmp_path_factory.mktemp("certificates")
    authority, certificate, key = ensure_certificates(folder, "127.0.0.1")
    (folder / "server.pem").write_text(certificate + key)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "server.pem")
    return server, ssl.create_default_context(cafile=authority)


@pytest.fixture(scope="module")
def address(context: tuple[ssl.SSLContext, ssl.SSLContext]) -> Iterator[str]:
    """A server in a process-wide thread of its own."""
    loop, started = asyncio.new_event_loop(), threading.Event()
    port = 0

    async def run() -> None:
        nonlocal port
        async with serve(talk, "127.0.0.1", 0, ssl=context[0], process_request=check) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            started.set()
            await stop

    stop = loop.create_future()
    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), daemon=True)
    thread.start()
    assert started.wait(PATIENCE)
    yield f"wss://127.0.0.1:{port}"
    loop.call_soon_threadsafe(stop.set_result, None)
    thread.join(PATIENCE)


def test_it_talks_in_one_thread(address, context):
    before = threading.active_count()
    with Channels(f"{address}/", context[1], HEADERS, open_timeout=PATIENCE) as channels:
        for word in ("one", "two"):
            channels.send(word)
            assert channels.recv(PATIENCE) == f"you said {word}"
        assert threading.active_count() == before, "two threads must not share a TLS connection"


def test_silence_ends_and_does_no_harm(address, context):
    with Channels(f"{address}/", context[1], HEADERS, open_timeout=PATIENCE) as channels:
        channels.send("say nothing")
        with pytest.raises(TimeoutError):
            channels.recv(0.1)
        channels.send("again")
        assert channels.recv(PATIENCE) == "you said again"


def test_a_server_that_goes_is_noticed(address, context):
    with Channels(f"{address}/", context[1], HEADERS, open_timeout=PATIENCE) as channels:
        channels.send("go away")
        with pytest.raises(ConnectionClosed):
            channels.recv(PATIENCE)


def test_a_refusal_tells_its_status(address, context):
    with pytest.raises(InvalidStatus) as no:
        Channels(f"{address}/forbidden", context[1], HEADERS, open_timeout=PATIENCE)
    assert no.value.response.status_code == 403


def test_a_server_that_does_not_answer_is_left(address, context):
    with pytest.raises(TimeoutError):
        Channels(f"{address}/slow", context[1], HEADERS, open_timeout=0.2)


def test_a_stranger_is_not_trusted(address: str, tmp_path: Path):
    with pytest.raises(ssl.SSLCertVerificationError):
        Channels(f"{address}/", ssl.create_default_context(), HEADERS, open_timeout=PATIENCE)
