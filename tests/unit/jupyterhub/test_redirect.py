"""From HTTP to HTTPS, and the answers that certificate authorities look for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest
from gpufarm_hub.upkeep import redirect
from tornado import httpclient
from tornado.testing import bind_unused_port

Ask = Callable[..., httpclient.HTTPResponse]


@pytest.fixture
def ask(tmp_path: Path) -> Ask:
    folder = tmp_path / "webroot" / ".well-known" / "acme-challenge"
    folder.mkdir(parents=True)
    (folder / "the-token").write_text("the-token.of-the-account")
    (tmp_path / "secret").write_text("secret")

    async def fetch(path: str, method: str, body: str, headers: dict[str, str]) -> httpclient.HTTPResponse:
        socket, port = bind_unused_port()
        server = redirect.server("https://hub:8888", tmp_path / "webroot")
        server.add_sockets([socket])
        try:
            return await httpclient.AsyncHTTPClient().fetch(
                f"http://127.0.0.1:{port}{path}",
                method=method,
                headers=headers,
                body=body if method == "POST" else None,
                follow_redirects=False,
                raise_error=False,
            )
        finally:
            server.stop()

    return lambda path, method="GET", body="", **headers: asyncio.run(fetch(path, method, body, headers))


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/hub/login?next=%2Fhub", "//evil.example.org/", "/.well-known/other"])
def test_everything_is_led_to_the_hub_and_nowhere_else(ask: Ask, path: str, method: str) -> None:
    answer = ask(path, method, Host="evil.example.org")
    assert (answer.code, answer.headers["Location"]) == (302, f"https://hub:8888{path}")
    assert "Server" not in answer.headers


@pytest.mark.parametrize("target", ["@evil.example.org/", ".evil.example.org/", "http://evil.example.org/"])
def test_what_is_no_path_leads_nowhere(tmp_path: Path, target: str) -> None:
    async def talk() -> bytes:
        socket, port = bind_unused_port()
        server = redirect.server("https://hub", tmp_path)
        server.add_sockets([socket])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(f"GET {target} HTTP/1.1\r\nHost: hub\r\nConnection: close\r\n\r\n".encode())
        answer = await reader.read()
        writer.close()
        server.stop()
        return answer

    answer = asyncio.run(talk())
    assert answer.startswith(b"HTTP/1.1 404 ") and b"Location" not in answer


def test_what_was_sent_in_the_clear_is_refused(ask: Ask) -> None:
    assert ask("/hub/login", "POST", body="password=x").code == 405
    assert ask("/hub/login", "POST", body="x" * 100_000).code in (400, 599)


def test_challenges_are_answered_from_their_folder_only(ask: Ask) -> None:
    prefix = "/.well-known/acme-challenge"
    assert ask(f"{prefix}/the-token").body == b"the-token.of-the-account"
    assert ask(f"{prefix}/another").code == 404
    for path in (f"{prefix}/../../../secret", f"{prefix}/..%2F..%2F..%2Fsecret", f"{prefix}/"):
        assert ask(path).body != b"secret"
