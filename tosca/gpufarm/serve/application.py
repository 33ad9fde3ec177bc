# SPDX-License-Identifier: GPL-3.0-or-later
"""The application of ASGI: routes, errors in the form of the interface, limits and headers."""

from __future__ import annotations

import html
import importlib.metadata
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from gpufarm.errors import BadInput, GpufarmError, shortened
from gpufarm.serve import routes
from gpufarm.serve.database import Unavailable
from gpufarm.serve.limits import Rate, Sized
from gpufarm.serve.metrics import Metrics
from gpufarm.serve.refusals import NoAnswer, Refused, TooMany, Unauthorized
from gpufarm.serve.service import Service
from gpufarm.serve.web import pages
from gpufarm.serve.web.gate import stopped
from gpufarm.serve.web.links import owned
from gpufarm.serve.web.site import HEADERS as PAGE_HEADERS

LOG = logging.getLogger("gpufarm.serve")
# The answers are data: no browser may run, embed or keep them.
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "Strict-Transport-Security": "max-age=31536000",
    "X-Content-Type-Options": "nosniff",
}
_DEFECT = "the service has a defect; its operator finds the reason in the log"


def application(service: Service) -> FastAPI:
    """Make the application.

    Args:
        service: that carries out the requests.

    Returns:
        The application.
    """
    made = FastAPI(
        title="gpufarm",
        description="The REST interface of INDIGO's PaaS Orchestrator over the deployer gpufarm.",
        version=importlib.metadata.version("gpufarm"),
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        strict_content_type=False,
    )
    made.state.service = service
    made.state.users = Rate(service.settings.requests)
    made.state.strangers = Rate(service.settings.requests)
    made.state.sign_ins = Rate(service.settings.requests)
    made.state.metrics = Metrics(service.database)
    made.include_router(routes.public)
    made.include_router(routes.router)
    if service.settings.pages:
        pages.add(made, service, service.settings.pages)
    made.add_exception_handler(GpufarmError, _of_ours)
    made.add_exception_handler(RequestValidationError, _of_the_body)
    made.add_exception_handler(HTTPException, _of_http)
    largest = service.settings.body
    too_large = refusal(
        413, f"the request is larger than {largest // 1024} KiB; send less", {"Connection": "close"}
    )
    made.add_middleware(Sized, largest=largest, refused=too_large)
    made.middleware("http")(_signed_in)
    made.middleware("http")(_answered)
    return made


async def _signed_in(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
    """Read the body of a request only if a user sends it, who has requests left."""
    try:
        if _for_pages(request):
            answer = await run_in_threadpool(stopped, request)
            if answer:
                return answer
        elif request.scope["path"].startswith(("/deployments", "/hours")):
            request.state.user = await run_in_threadpool(routes.identified, request)
    except GpufarmError as error:
        return _of_ours(request, error)
    return await go_on(request)


def _for_pages(request: Request) -> bool:
    return request.app.state.service.settings.pages is not None and owned(request.scope["path"])


async def _answered(request: Request, go_on: Callable[[Request], Awaitable[Response]]) -> Response:
    """Count the request, add the headers, and tell nobody the reason of a defect."""
    began = time.monotonic()
    try:
        answer = await go_on(request)
    except Exception:
        LOG.exception("%s %s failed", request.method, request.url.path)
        answer = _refused(request, 500, _DEFECT)
    for name, value in (PAGE_HEADERS if _for_pages(request) else HEADERS).items():
        answer.headers[name] = value
    metrics: Metrics = request.app.state.metrics
    metrics.requests.labels(_method(request.method), answer.status_code).inc()
    metrics.seconds.observe(time.monotonic() - began)
    return answer


def _method(name: str) -> str:
    known = ("GET", "POST", "PUT", "PATCH", "DELETE")
    return name if name in known else "other"


def refusal(code: int, message: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Write an error as the interface has it.

    Args:
        code: status of HTTP.
        message: the sentence. The dashboard shows it as HTML, so it is escaped.
        headers: more headers.

    Returns:
        The answer.
    """
    body = {
        "code": code,
        "title": HTTPStatus(code).phrase,
        # it may repeat a text of the request that UTF-8 cannot encode
        "message": html.escape(shortened(message), quote=False).encode(errors="replace").decode(),
    }
    return JSONResponse(body, code, dict(headers or {}))


def _refused(request: Request, code: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """An error as the client wants it: a page, or an object of the interface."""
    if _for_pages(request):
        answer: Response = request.app.state.site.refusal(request, code, shortened(message), headers or {})
        return answer
    return refusal(code, message, headers)


def _of_ours(request: Request, error: Exception) -> Response:
    assert isinstance(error, GpufarmError)
    headers = {}
    if isinstance(error, Unauthorized) and not _for_pages(request):
        headers["WWW-Authenticate"] = "Bearer"
    if isinstance(error, Unavailable | NoAnswer | TooMany):
        headers["Retry-After"] = "10"
    if isinstance(error, Refused):
        return _refused(request, error.code, error.message, headers)
    if isinstance(error, Unavailable):
        LOG.error("%s", error.message)
        return _refused(request, 503, "the service is busy or out of order; try again later", headers)
    if isinstance(error, BadInput):
        return _refused(request, 400, error.message)
    LOG.error("%s", error.message)
    return _refused(request, 500, _DEFECT)


def _of_the_body(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = []
    for one in error.errors():
        place = ".".join(str(part) for part in one["loc"] if part not in ("body", "query", "path"))
        wrong.append(f"{place or 'the body'}: {one['msg']}")
    return _refused(request, 400, "\n".join(wrong))


def _of_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _refused(request, error.status_code, str(error.detail), error.headers)
