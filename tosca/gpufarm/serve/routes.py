# SPDX-License-Identifier: GPL-3.0-or-later
"""The routes of INDIGO's PaaS Orchestrator."""

from __future__ import annotations

import html
import importlib.metadata
import ipaddress
import json
import time
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse, RedirectResponse

from gpufarm.serve import bodies, hours, models, pages
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Conflict, Forbidden, Missing, Unauthorized
from gpufarm.serve.service import Service
from gpufarm.serve.tables import Deployment
from gpufarm.serve.web.links import ROOT

NAME = "gpufarm: services on machines of a pool"


def service(request: Request) -> Service:
    """Give the service of this application."""
    found: Service = request.app.state.service
    return found


def identified(request: Request) -> User:
    """Tell who sends the request, and count it.

    Args:
        request: of which nothing but the headers is read.

    Returns:
        The user.

    Raises:
        Refused: the request has no valid token, or there were too many.
    """
    state, identity = request.app.state, service(request).identity
    address = request.client.host if request.client else ""
    authorization = request.headers.get("authorization")
    user = identity.known(authorization)
    if user is None:  # guesses from an address lock out no user who was there a moment ago
        state.strangers.check(address)
        try:
            user = identity.user(authorization)
        except Unauthorized:
            state.strangers.take(address)
            raise
    state.users.take(f"{user.issuer} {user.subject}")
    return user


def signed_in(request: Request) -> User:
    """Give the user that `identified` found before the body of the request was read."""
    found: User = request.state.user
    return found


Serving = Annotated[Service, Depends(service)]
Caller = Annotated[User, Depends(signed_in)]
Uuid = Annotated[str, Path(max_length=64)]
Number = Annotated[int, Query(ge=0, le=1_000_000)]
Size = Annotated[int, Query(ge=1, le=pages.LARGEST)]
Month = Annotated[str | None, Query(pattern=r"^[0-9]{4}-(0[1-9]|1[0-2])$")]
Field = Literal["month", "user", "group", "project", "machine", "source", "profile"]
_CONFLICT: dict[int | str, dict[str, Any]] = {409: {"description": "The status does not allow this."}}

public = APIRouter()
router = APIRouter(
    responses={
        400: {"description": "The request is wrong."},
        401: {"description": "The request has no valid access token."},
        403: {"description": "The user may not do this, or a quota is exhausted."},
        404: {"description": "There is no such deployment that the user may see."},
        413: {"description": "The request is too large."},
        429: {"description": "There were too many requests."},
        503: {"description": "The database or the issuer does not answer."},
    }
)


@public.get("/", response_class=PlainTextResponse)
def root(request: Request, serving: Serving) -> Response:
    """Return the name of this service; people are led to its pages, if it has any."""
    if serving.settings.pages and "text/html" in request.headers.get("accept", ""):
        return RedirectResponse(f"{urlsplit(serving.settings.url).path}{ROOT}", 303)
    return PlainTextResponse(NAME)


@public.get("/info")
def info() -> dict[str, Any]:
    """Return the version."""
    return {"build": {"name": "gpufarm", "version": importlib.metadata.version("gpufarm")}}


@public.get("/configuration")
def configuration(serving: Serving) -> dict[str, str]:
    """Return the URLs of other services."""
    return dict(serving.settings.configuration)


@public.get("/metrics", response_class=PlainTextResponse, include_in_schema=False)
def metrics(request: Request, serving: Serving) -> Response:
    """Return numbers for Prometheus, to the networks of the settings."""
    try:
        address = ipaddress.ip_address(request.client.host if request.client else "")
    except ValueError:
        address = None
    if not address or not any(address in network for network in serving.settings.metrics):
        raise Forbidden("metrics may not be read from this address; add it to metrics_from of the settings")
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


@router.get("/deployments")
@router.get("/deployments/", include_in_schema=False)
def deployments(
    serving: Serving,
    user: Caller,
    createdBy: Annotated[str | None, Query(max_length=1024)] = None,
    userGroup: Annotated[str | None, Query(max_length=256)] = None,
    excludedStatus: Annotated[str | None, Query(max_length=1024)] = None,
    page: Number = 0,
    size: Size = pages.SIZE,
    sort: Annotated[str | None, Query(pattern="^createdAt,desc$")] = None,
) -> dict[str, Any]:
    """List deployments, the newest first."""
    chosen = serving.chosen(serving.owner(user, createdBy), userGroup, excludedStatus)
    found, total = serving.deployments.page(user, chosen, page, size)
    base = serving.settings.url
    asked = {"createdBy": createdBy, "userGroup": userGroup, "excludedStatus": excludedStatus, "sort": sort}
    query = {name: value for name, value in asked.items() if value is not None}
    content = [bodies.deployment(one, base) for one in found]
    return pages.page(content, total, page, size, f"{base}/deployments", query)


@router.post("/deployments", status_code=201)
@router.post("/deployments/", status_code=201, include_in_schema=False)
def create(serving: Serving, user: Caller, body: models.Create) -> dict[str, Any]:
    """Make a deployment."""
    return bodies.deployment(serving.create(user, body), serving.settings.url)


@router.get("/deployments/{uuid}")
def read(serving: Serving, user: Caller, uuid: Uuid) -> dict[str, Any]:
    """Return a deployment."""
    return bodies.deployment(serving.deployments.find(user, uuid), serving.settings.url)


@router.put("/deployments/{uuid}", status_code=202, responses=_CONFLICT)
def update(serving: Serving, user: Caller, uuid: Uuid, body: models.Update) -> dict[str, Any]:
    """Change values of a deployment. INDIGO's answer is empty, which `orchent` takes for a failure."""
    serving.update(user, uuid, body)
    return bodies.deployment(serving.deployments.find(user, uuid), serving.settings.url)


@router.patch("/deployments/{uuid}", status_code=204, responses=_CONFLICT)
def reset(serving: Serving, user: Caller, uuid: Uuid, body: models.Reset) -> Response:
    """Give up a removal that does not end."""
    serving.deployments.reset(user, uuid)
    return Response(status_code=204)


@router.delete("/deployments/{uuid}", status_code=204, responses=_CONFLICT)
def delete(serving: Serving, user: Caller, uuid: Uuid, force: bool = False) -> Response:
    """Remove a deployment; with `force` of an administrator, give up machines that the pool lacks."""
    serving.deployments.delete(user, uuid, force=force)
    return Response(status_code=204)


@router.get("/deployments/{uuid}/template", response_class=PlainTextResponse)
def template(serving: Serving, user: Caller, uuid: Uuid) -> str:
    """Return the template as it was sent."""
    return serving.deployments.find(user, uuid, "read template").text


@router.get("/deployments/{uuid}/log", response_class=PlainTextResponse)
def log(serving: Serving, user: Caller, uuid: Uuid) -> str:
    """Return the progress of the runs; the dashboard shows it as HTML, so it is escaped."""
    found = serving.deployments.find(user, uuid, "read log")
    return html.escape(serving.deployments.log(found.uuid), quote=False)


@router.get("/deployments/{uuid}/console")
def console(serving: Serving, user: Caller, uuid: Uuid, output: bool = True) -> dict[str, Any]:
    """Return how the containers and jobs of a deployment went, and what they printed, as it was read last."""
    found = serving.deployments.find(user, uuid, "read console")
    return bodies.console(serving.consoles.show(found), output=output)


@router.post("/deployments/{uuid}/console", status_code=202, responses=_CONFLICT)
def ask_for_console(serving: Serving, user: Caller, uuid: Uuid) -> Response:
    """Have a worker read what containers and jobs have printed; ask for it again until it no longer waits."""
    serving.consoles.ask(serving.deployments.find(user, uuid, "read console"))
    return Response(status_code=202)


@router.get("/deployments/{uuid}/extrainfo", response_class=PlainTextResponse)
def extra_info(serving: Serving, user: Caller, uuid: Uuid) -> str:
    """Return the properties of the machines, as a text that holds JSON."""
    found = serving.deployments.find(user, uuid, "read machines")
    told = (entry.get("metadata", {}).get("VirtualMachineInfo") for entry in found.resources)
    return json.dumps([json.loads(text) for text in told if text])


@router.get("/deployments/{uuid}/resources")
def resources(
    serving: Serving,
    user: Caller,
    uuid: Uuid,
    type: Annotated[str | None, Query(max_length=256)] = None,
    page: Number = 0,
    size: Size = pages.SIZE,
) -> dict[str, Any]:
    """List the nodes of a deployment."""
    found = serving.deployments.find(user, uuid, "read resources")
    base = serving.settings.url
    chosen = [entry for entry in found.resources if type in (None, entry["type"])]
    content = [bodies.resource(entry, found, base) for entry in chosen[page * size : (page + 1) * size]]
    query = {} if type is None else {"type": type}
    return pages.page(content, len(chosen), page, size, f"{base}/deployments/{uuid}/resources", query)


def _resource(found: Deployment, resource: str) -> dict[str, Any]:
    for entry in found.resources:
        if bodies.resource_id(found.uuid, entry["node"]) == resource:
            return entry
    raise Missing(f"deployment {found.uuid} has no resource {resource}")


@router.get("/deployments/{uuid}/resources/{resource}")
def one_resource(serving: Serving, user: Caller, uuid: Uuid, resource: Uuid) -> dict[str, Any]:
    """Return a node of a deployment."""
    found = serving.deployments.find(user, uuid, "read resource")
    return bodies.resource(_resource(found, resource), found, serving.settings.url)


@router.post(
    "/deployments/{uuid}/resources/{resource}/actions",
    status_code=202,
    responses=_CONFLICT,
)
def act(serving: Serving, user: Caller, uuid: Uuid, resource: Uuid, body: models.Action) -> Response:
    """Refuse to start or stop a machine: those of the pool are always on."""
    _resource(serving.deployments.find(user, uuid, f"try to {body.type}"), resource)
    raise Conflict("machines of the pool are not started and stopped by this service; ask its operator")


@router.get("/hours")
def used(
    serving: Serving,
    user: Caller,
    of: Literal["me", "all"] | None = None,
    since: Month = None,
    before: Month = None,
    by: Annotated[list[Field] | None, Query()] = None,
) -> dict[str, Any]:
    """Return hours of slices, GPUs, CPUs and memory: those of the user; for administrators, of all."""
    asked = hours.wanted(since, before, by or ("month", "user", "group", "profile"), time.time())
    everybody = of == "all" or (of is None and user.administrator)
    report = (serving.hours.all if everybody else serving.hours.own)(user, asked)
    if not everybody and report.login is None:
        raise Missing("this service does not know the name of your account on machines; ask its operator")
    return hours.as_json(report, reasons=everybody)
