"""Access tokens of the bench's identity provider: a person signs in as in a browser."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import secrets
import ssl

import httpx

from lab.errors import LabError
from lab.pages import parse

# Nobody answers there: the code is in the address to which the provider sends the browser.
BACK = "https://localhost/token"
SCOPES = "openid profile"


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


def _token(http: httpx.Client, user: str, password: str) -> str:
    known = http.get("/.well-known/openid-configuration").raise_for_status().json()
    about = {"client_name": "token", "redirect_uris": [BACK], "scope": SCOPES}
    client = http.post(known["registration_endpoint"], json=about).raise_for_status().json()
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
