# SPDX-License-Identifier: GPL-3.0-or-later
"""The sign-in, and the end of it."""

from __future__ import annotations

import logging
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from gpufarm.serve.people import User
from gpufarm.serve.refusals import Missing, NoAnswer, TooMany, Unauthorized
from gpufarm.serve.web import gate
from gpufarm.serve.web.gate import Entered, Posted, Showing
from gpufarm.serve.web.links import HOME, ROOT, place
from gpufarm.serve.web.passwords import REMEMBERED
from gpufarm.serve.web.signing_in import PATIENCE
from gpufarm.serve.web.site import COOKIE, COOKIE_AT_SIGN_IN, COOKIE_OF_KNOWN, Site

LOG = logging.getLogger("gpufarm.serve")
router = APIRouter(prefix=ROOT, include_in_schema=False)


def _with_cookie(answer: Response, name: str, value: str, seconds: int | None = None) -> Response:
    answer.set_cookie(name, value, seconds, path="/", secure=True, httponly=True, samesite="lax")
    return answer


def _of_sign_in(state: str) -> str:
    """The cookie of one sign-in: several tabs may have begun one each."""
    return f"{COOKIE_AT_SIGN_IN}-{re.sub('[^A-Za-z0-9_-]', '', state)[:16]}"


def _without_cookie(answer: Response, name: str) -> Response:
    answer.delete_cookie(name, path="/", secure=True, httponly=True, samesite="lax")
    return answer


@router.get("")
@router.get("/")
def home(site: Showing) -> Response:
    """Lead to the deployments of the user."""
    return site.to(HOME)


@router.get("/sign-in")
def sign_in(request: Request, site: Showing, next: Annotated[str, Query(max_length=1024)] = HOME) -> Response:
    """Send the browser to the issuer, or ask for the password that a directory knows."""
    if site.passwords:
        return site.page(request, "sign_in", next=place(next), person="", wrong="")
    url, state, cookie = site.signing_in.begin(next)
    return _with_cookie(RedirectResponse(url, 303), _of_sign_in(state), cookie, PATIENCE)


@router.post("/sign-in")
def sign_in_with_password(request: Request, site: Showing, sent: Entered) -> Response:
    """Have the directory check name and password."""
    if not site.passwords:
        raise Missing("users of this service sign in at their issuer; open the page again")
    name, wanted = sent.get("name", ""), place(sent.get("next", ""))
    mark = request.cookies.get(COOKIE_OF_KNOWN, "")
    try:
        claims = site.passwords.claims(name, sent.get("password", ""), gate.address(request), mark)
    except (Unauthorized, TooMany, NoAnswer) as error:
        LOG.warning("a sign-in was refused: %s", error.message)
        words = {"next": wanted, "person": name, "wrong": error.message}
        return site.page(request, "sign_in", error.code, **words)
    answer = _opened(request, site, site.service.identity.remembered(site.issuer, claims), wanted)
    return _with_cookie(answer, COOKIE_OF_KNOWN, site.passwords.mark(name), REMEMBERED)


def _opened(request: Request, site: Site, user: User, wanted: str) -> Response:
    """Begin a login, and end the one that the browser had."""
    if request.state.user:
        site.logins.close(request.state.login)
    return _with_cookie(site.to(wanted), COOKIE, site.logins.open(user))


@router.get("/signed-in")
def signed_in(request: Request, site: Showing) -> Response:
    """Take the browser back from the issuer."""
    if site.passwords:
        raise Missing("users of this service sign in with a password; open the page again")
    strangers, where = request.app.state.strangers, gate.address(request)
    strangers.check(where)
    name = _of_sign_in(request.query_params.get("state", ""))
    try:
        user, wanted = site.signing_in.finish(request.query_params, request.cookies.get(name, ""))
    except Unauthorized as error:
        strangers.take(where)
        LOG.warning("a sign-in was refused: %s", error.message)
        return _without_cookie(site.refusal(request, error.code, error.message, {}), name)
    return _without_cookie(_opened(request, site, user, wanted), name)


@router.post("/sign-out")
def sign_out(request: Request, site: Showing, _sent: Posted) -> Response:
    """End the login."""
    site.logins.close(request.state.login)
    return _without_cookie(site.to(gate.SIGNED_OUT), COOKIE)


@router.get("/signed-out")
def signed_out(request: Request, site: Showing) -> Response:
    """Say that the login has ended."""
    return site.page(request, "signed_out")
