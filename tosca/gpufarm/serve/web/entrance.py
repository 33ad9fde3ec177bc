# SPDX-License-Identifier: GPL-3.0-or-later
"""The sign-in, and the end of it."""

from __future__ import annotations

import logging
import re
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import RedirectResponse

from gpufarm.serve.refusals import Unauthorized
from gpufarm.serve.web import gate
from gpufarm.serve.web.gate import Posted, Showing
from gpufarm.serve.web.links import HOME, ROOT
from gpufarm.serve.web.signing_in import PATIENCE
from gpufarm.serve.web.site import COOKIE, COOKIE_AT_SIGN_IN

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
def sign_in(site: Showing, next: Annotated[str, Query(max_length=1024)] = HOME) -> Response:
    """Send the browser to the issuer."""
    url, state, cookie = site.signing_in.begin(next)
    return _with_cookie(RedirectResponse(url, 303), _of_sign_in(state), cookie, PATIENCE)


@router.get("/signed-in")
def signed_in(request: Request, site: Showing) -> Response:
    """Take the browser back from the issuer."""
    strangers, where = request.app.state.strangers, gate.address(request)
    strangers.check(where)
    name = _of_sign_in(request.query_params.get("state", ""))
    try:
        user, place = site.signing_in.finish(request.query_params, request.cookies.get(name, ""))
    except Unauthorized as error:
        strangers.take(where)
        LOG.warning("a sign-in was refused: %s", error.message)
        return _without_cookie(site.refusal(request, error.code, error.message, {}), name)
    if request.state.user:
        site.logins.close(request.state.login)
    answer = _with_cookie(site.to(place), COOKIE, site.logins.open(user))
    return _without_cookie(answer, name)


@router.post("/sign-out")
def sign_out(request: Request, site: Showing, _sent: Posted) -> Response:
    """End the login."""
    site.logins.close(request.state.login)
    return _without_cookie(site.to(gate.SIGNED_OUT), COOKIE)


@router.get("/signed-out")
def signed_out(request: Request, site: Showing) -> Response:
    """Say that the login has ended."""
    return site.page(request, "signed_out")
