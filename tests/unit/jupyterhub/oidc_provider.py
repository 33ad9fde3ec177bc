"""An OpenID provider in the process of the tests, and what a hub must know of it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import hashlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

OWNER = "1b4e28ba-2fa1-11d2-883f-0016d3cca427"
# Secrets that only the provider and the hub share.
TOKEN, REFRESH, SECRET = "access-5f1c", "refresh-83ab", "secret-d07e"


class Provider(http.server.ThreadingHTTPServer):
    """An OpenID provider that lets everybody in as whom the test says.

    Attributes:
        claims: claims of the next user who logs in.
        failure: HTTP status that it answers every question of the hub with; 0 for none.
        expired: whether access tokens that it gave are over.
        disabled: whether it gives no more for refresh tokens.
        broken: whether it fails when it is asked for tokens.
        asked: parameters of the last authorization request.
    """

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        self.claims: dict[str, Any] = {}
        self.failure = 0
        self.expired = self.disabled = self.broken = False
        self.asked: dict[str, str] = {}


class Handler(http.server.BaseHTTPRequestHandler):
    server: Provider

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:  # /userinfo
        if self.server.expired:
            self._answer({"error": "invalid_token"}, 401)
        else:
            self._answer(self.server.claims)

    def do_POST(self) -> None:  # /token
        sent = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        if sent["grant_type"] == ["refresh_token"]:
            refused = self.server.disabled
        else:
            digest = hashlib.sha256(sent["code_verifier"][0].encode()).digest()
            challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
            refused = challenge != self.server.asked["code_challenge"]  # RFC 7636, section 4.6
        if self.server.broken:
            self._answer({"error": "server_error"}, 500)
        elif refused:
            self._answer({"error": "invalid_grant"}, 400)
        else:
            self._answer({"access_token": TOKEN, "token_type": "Bearer", "refresh_token": REFRESH})

    def _answer(self, content: dict[str, Any], status: int = 200) -> None:
        body = json.dumps({"error": "server_error"} if self.server.failure else content).encode()
        self.send_response(self.server.failure or status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve() -> Iterator[Provider]:
    """Serve as long as a fixture lives."""
    server = Provider()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def settings(provider: Provider, folder: Path) -> dict[str, Any]:
    """Return the settings' part about the login of a hub with this folder."""
    client = folder / "client.json"
    client.write_text(json.dumps({"client_id": "hub", "client_secret": SECRET}))
    return {
        "kind": "oidc",
        "issuer": provider.url,
        "authorization_endpoint": f"{provider.url}/authorize",
        "token_endpoint": f"{provider.url}/token",
        "userinfo_endpoint": f"{provider.url}/userinfo",
        "end_session_endpoint": f"{provider.url}/logout?ui=web",
        "scopes": ["openid", "profile"],
        "client_file": str(client),
        "ca_file": "",
        "owner": OWNER,
        "groups": ["physics/gpu"],
        "admin_groups": ["operators"],
        "username_claim": "preferred_username",
        "groups_claim": "realm_access.roles",
    }


def come_back(browser: httpx.Client, provider: Provider, state: str = "") -> httpx.Response:
    """Go to the provider and come back as it would send the user back."""
    away = browser.get("/hub/oauth_login", params={"next": "/hub/home"})
    asked = parse_qs(urlsplit(away.headers["location"]).query)
    provider.asked = {name: values[0] for name, values in asked.items()}
    return browser.get("/hub/oauth_callback", params={"code": "c", "state": state or provider.asked["state"]})


def claims(name: str, *groups: str, subject: str = "") -> dict[str, Any]:
    return {
        "sub": subject or f"subject of {name}",
        "preferred_username": name,
        "realm_access": {"roles": list(groups)},
    }
