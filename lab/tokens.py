"""Clients and access tokens of the bench's identity provider: a person signs in as in a browser."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import secrets
import ssl
from pathlib import Path
from typing import Any

import httpx

from lab.errors import LabError
from lab.pages import parse
from lab.system import write_atomically

# Nobody answers there: the code is in the address to which the provider sends the browser.
BACK = "https://localhost/token"
SCOPES = "openid profile email"


def access_token(iam: str, context: ssl.SSLContext, user: str, password: str) -> str:
    """Sign in, and get an access token (OpenID Connect Core 1.0, section 3.1).

    Args:
        iam: address of the provider.
        context: trusts its certificate.
        user: name of the person.
        password: of that person.

    Returns:
        The token, which is valid for an hour.

    Raises:
        LabError: the provider does not take the password, or does not answer.
    """
    try:
        with httpx.Client(base_url=iam, verify=context, trust_env=False, timeout=60) as http:
            return _token(http, user, password)
    except (httpx.HTTPError, KeyError, ValueError) as error:
        raise LabError(f"{iam} gives {user} no access token: {error!r}") from error


def client_of(iam: str, context: ssl.SSLContext, file: Path, name: str, back: str) -> dict[str, Any]:
    """Register a service at the provider, unless that was done before.

    Args:
        iam: address of the provider.
        context: trusts its certificate.
        file: what is remembered of the client, with its secret; gets 0600.
        name: that users read when they approve.
        back: address to which the provider sends browsers.

    Returns:
        The client, with ``client_id`` and ``client_secret`` (OpenID Connect Dynamic Client Registration 1.0).

    Raises:
        LabError: the provider does not answer, or registers no clients.
    """
    try:
        with httpx.Client(base_url=iam, verify=context, trust_env=False, timeout=60) as http:
            if file.exists():
                known = json.loads(file.read_text())
                own = {"Authorization": f"Bearer {known['registration_access_token']}"}
                place = known["registration_client_uri"]
                if place.startswith(iam) and http.get(place, headers=own).is_success:
                    return known
            client = _registered(http, _discovered(http), name, back)
    except (httpx.HTTPError, KeyError, ValueError) as error:
        raise LabError(f"{iam} registers no client: {error!r}") from error
    write_atomically(file, json.dumps(client), 0o600)
    return client


def _discovered(http: httpx.Client) -> dict[str, Any]:
    return http.get("/.well-known/openid-configuration").raise_for_status().json()


def _registered(http: httpx.Client, known: dict[str, Any], name: str, back: str) -> dict[str, Any]:
    about = {"client_name": name, "redirect_uris": [back], "scope": SCOPES}
    return http.post(known["registration_endpoint"], json=about).raise_for_status().json()


def _token(http: httpx.Client, user: str, password: str) -> str:
    known = _discovered(http)
    client = _registered(http, known, "token", BACK)
    asked = {
        "client_id": client["client_id"],
        "redirect_uri": BACK,
        "response_type": "code",
        "scope": SCOPES,
        "state": secrets.token_urlsafe(),
    }
    page = http.get(known["authorization_endpoint"], params=asked)
    back: httpx.URL | None = None
    for _ in range(10):
        if page.has_redirect_location:
            target = page.url.join(page.headers["Location"])
            if str(target).startswith(BACK):
                back = target
                break
            page = http.get(target)
            continue
        found = parse(page.raise_for_status().text)
        form = found.form("login") or found.form("approve")
        if form is None or found.messages:
            raise ValueError(" ".join(found.messages) or "no form")
        given = {"username": user, "password": password} if form.id == "login" else {}
        page = http.post(page.url.join(form.action), data={**form.values, **given})
    if back is None or back.params.get("state") != asked["state"]:
        raise ValueError("it never sent the browser back")
    code = {"grant_type": "authorization_code", "code": back.params["code"], "redirect_uri": BACK}
    login = (client["client_id"], client["client_secret"])
    answer = http.post(known["token_endpoint"], data=code, auth=login).raise_for_status().json()
    return str(answer["access_token"])
