# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets a request for a page pass before its body is read: who sends it, and from which page."""

from __future__ import annotations

import hmac
from typing import Annotated
from urllib.parse import parse_qsl, quote

from fastapi import Depends, Request, Response
from fastapi.responses import RedirectResponse

from gpufarm.serve.people import User
from gpufarm.serve.refusals import Forbidden, Refused, Unauthorized
from gpufarm.serve.web import logins
from gpufarm.serve.web.links import ROOT
from gpufarm.serve.web.site import COOKIE, Site

SIGN_IN, SIGNED_IN, SIGNED_OUT = (f"{ROOT}/{name}" for name in ("sign-in", "signed-in", "signed-out"))
STATIC = f"{ROOT}/static"
_PUBLIC = (SIGN_IN, SIGNED_IN, SIGNED_OUT)
_READING = ("GET", "HEAD")
# Fields of a form.
MOST = 1000


def site(request: Request) -> Site:
    """Give the pages of this application."""
    found: Site = request.app.state.site
    return found


def address(request: Request) -> str:
    """Tell from which address a request is."""
    return request.client.host if request.client else ""


def stopped(request: Request) -> Response | None:
    """Find out who sends a request, count it, and stop it where it needs a login or another page has made it.

    Args:
        request: of which nothing but the headers is read.

    Returns:
        The way to the sign-in, if the page needs one; None if the request may go on.

    Raises:
        Refused: a page of another site has made it, it changes something without a login, or there were
            too many.
    """
    state, path = request.app.state, request.scope["path"]
    secret = request.cookies.get(COOKIE, "")
    request.state.login, request.state.user = secret, None
    if request.method not in _READING and request.headers.get("origin") != site(request).origin:
        raise Forbidden("a page of another site has sent this request; open the page of this service")
    if path.startswith(f"{STATIC}/"):
        return None
    user = site(request).logins.find(secret) if secret else None
    if user:
        request.state.user = user
        state.users.take(f"{user.issuer} {user.subject}")
        return None
    if secret:
        state.strangers.take(address(request))
    if path == SIGN_IN:  # no guess: many users may sign in from one address
        state.sign_ins.take(address(request))
    if path in _PUBLIC:
        return None
    if request.method not in _READING:
        raise Unauthorized("you are not signed in any more; sign in and send the form again")
    query = f"?{request.url.query}" if request.url.query else ""
    return RedirectResponse(f"{site(request).base}{SIGN_IN}?next={quote(path + query)}", 303)


def signed_in(request: Request) -> User:
    """Give the user that `stopped` found."""
    found: User = request.state.user
    return found


async def entered(request: Request) -> dict[str, str]:
    """Read a form, of a page of this service as its origin tells.

    Args:
        request: of the user.

    Returns:
        The fields; of one that is there twice, the last.

    Raises:
        Refused: it is no form.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/x-www-form-urlencoded":
        raise Refused("the request is no form; use the page of this service")
    try:
        text = (await request.body()).decode("ascii")
        return dict(parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MOST))
    except ValueError as error:
        raise Refused("the form cannot be read; send fewer fields, in UTF-8") from error


async def posted(request: Request) -> dict[str, str]:
    """Read a form that a page of this login has sent.

    Args:
        request: of the user.

    Returns:
        The fields; of one that is there twice, the last.

    Raises:
        Refused: it is no form, or not from a page of this login.
    """
    sent = await entered(request)
    proof = sent.pop("token", "").encode(errors="replace")
    if not hmac.compare_digest(proof, logins.token(request.state.login).encode()):
        raise Forbidden("the form is not from a page of this login; load the page again")
    return sent


Showing = Annotated[Site, Depends(site)]
Caller = Annotated[User, Depends(signed_in)]
Entered = Annotated[dict[str, str], Depends(entered)]
Posted = Annotated[dict[str, str], Depends(posted)]
