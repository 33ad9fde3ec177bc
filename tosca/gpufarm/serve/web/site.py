# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of a service: what all requests for pages share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import HTMLResponse, RedirectResponse
from markupsafe import Markup

from gpufarm.serve.directory import Directory
from gpufarm.serve.overview import Overview
from gpufarm.serve.people import User
from gpufarm.serve.service import Service
from gpufarm.serve.settings import Pages
from gpufarm.serve.web import links, logins, render
from gpufarm.serve.web.passwords import Passwords
from gpufarm.serve.web.signing_in import SigningIn

# Pages run nothing but the scripts of this service, load nothing from elsewhere, and are in no frame.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "same-origin",  # with a stricter one browsers send forms without their origin
    "Strict-Transport-Security": "max-age=31536000",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
# Browsers take such cookies from this host only, over TLS only, and for all of its paths.
COOKIE = "__Host-gpufarm"
COOKIE_AT_SIGN_IN = "__Host-gpufarm-sign-in"
COOKIE_OF_KNOWN = "__Host-gpufarm-known"
_FIELD = Markup('<input type="hidden" name="token" value="{}">')


class Site:
    """The pages.

    Attributes:
        service: that carries out the requests.
        forms: of the templates, by name.
        signing_in: the way to the issuer and back; not used with a directory.
        passwords: checks of passwords by a directory; None with another issuer.
        logins: browsers that are signed in.
        issuer: at which users sign in.
        overview: lists for administrators.
        origin: of the pages, as browsers name it.
        base: path of the public address; empty for none.
    """

    def __init__(self, service: Service, settings: Pages) -> None:
        """Read the forms.

        Args:
            service: that carries out the requests.
            settings: of the pages.

        Raises:
            BadInput: a form is wrong.
        """
        identity, url = service.identity, service.settings.url
        self.service = service
        self.forms = service.forms
        claims = {claim for one in self.forms.values() for claim in one.claims()}
        self.signing_in = SigningIn(settings, identity, url, {*claims, logins.NAMES[0]})
        issuer = identity.settings(settings.issuer)
        self.passwords = Passwords(Directory(issuer), service.key) if issuer.directory else None
        self.logins = logins.Logins(service.database, identity, settings.issuer, claims)
        self.overview = Overview(service.database)
        self.origin = links.origin(url)
        self.base = urlsplit(url).path
        self._templates = render.environment(self.base)
        self._templates.globals["keeps_hours"] = service.settings.hours_minutes > 0
        self.issuer = settings.issuer

    def page(self, request: Request, name: str, status_code: int = 200, **more: Any) -> HTMLResponse:
        """Write a page.

        Args:
            request: of the user.
            name: of the page's template.
            status_code: of HTTP.
            more: what the template needs.

        Returns:
            The answer.
        """
        state = request.state
        user = getattr(state, "user", None)
        text = self._templates.get_template(f"{name}.html").render(
            user=user,
            named=_name(user) if user else "",
            proof=_FIELD.format(logins.token(state.login)) if user else "",
            issuer="" if self.passwords else urlsplit(self.issuer).netloc,
            here=request.scope["path"],
            **more,
        )
        return HTMLResponse(text, status_code)

    def to(self, path: str) -> RedirectResponse:
        """Lead to another page.

        Args:
            path: of the page.

        Returns:
            The answer.
        """
        return RedirectResponse(self.base + path, 303)

    def refusal(self, request: Request, code: int, message: str, headers: Mapping[str, str]) -> HTMLResponse:
        """Write a page that says why a request is refused.

        Args:
            request: of the user.
            code: status of HTTP.
            message: the sentences.
            headers: more headers.

        Returns:
            The answer.
        """
        answer = self.page(request, "refusal", code, code=code, lines=message.split("\n"))
        answer.headers.update(headers)
        return answer


def _name(user: User) -> str:
    """The name that the issuer gives to a user."""
    found = (user.claims.get(claim) for claim in logins.NAMES)
    return next((name for name in found if isinstance(name, str) and name), user.subject)
