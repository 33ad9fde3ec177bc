# SPDX-License-Identifier: GPL-3.0-or-later
"""The deployments of a user, and the quotas."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response
from fastapi.responses import PlainTextResponse

from gpufarm.serve.deployments import Filter
from gpufarm.serve.people import Person
from gpufarm.serve.refusals import Refused
from gpufarm.serve.statuses import FINAL, UNDELETABLE, UPDATABLE, Status
from gpufarm.serve.tables import Deployment
from gpufarm.serve.web.gate import Caller, Posted, Showing
from gpufarm.serve.web.links import HOME, ROOT
from gpufarm.serve.web.site import Site

# Deployments on a page, and lines of a log.
SIZE = 20
LINES = 200

Uuid = Annotated[str, Path(max_length=64)]
TaskId = Annotated[str, Query(max_length=4096)]
Number = Annotated[int, Query(ge=1, le=100_000)]
router = APIRouter(prefix=ROOT, include_in_schema=False)


@router.get("/deployments")
def deployments(request: Request, site: Showing, user: Caller, page: Number = 1) -> Response:
    """List the deployments of the user."""
    return _list(request, site, user, user, page)


@router.get("/all")
def of_all(request: Request, site: Showing, user: Caller, page: Number = 1) -> Response:
    """List the deployments of all users, for administrators."""
    return _list(request, site, user, None, page)


def _list(request: Request, site: Site, user: Caller, owner: Person | None, page: int) -> Response:
    gone = (Status.DELETE_COMPLETE,)
    chosen = Filter(owner, without=gone)
    found, total = site.service.deployments.page(user, chosen, page - 1, SIZE)
    pages = max(1, -(-total // SIZE))
    return site.page(request, "deployments", found=found, total=total, number=page, pages=pages, **_rules())


def _rules() -> dict[str, Any]:
    return {"updatable": UPDATABLE, "undeletable": UNDELETABLE, "final": FINAL}


def described(site: Site, found: Deployment) -> dict[str, Any]:
    """Collect what pages show of a deployment.

    Args:
        site: the pages.
        found: the deployment.

    Returns:
        Its inputs without secrets and its outputs, each with its label, and its machines.
    """
    form = site.forms.get(found.template)
    labels = {field.name: field.label for field in form.fields} if form else {}
    secret = {field.name for field in form.fields if field.widget == "password"} if form else set()
    return {
        "inputs": [
            (labels.get(name, name), value)
            for name, value in found.parameters.items()
            if name not in secret and value not in ("", [], {}, None)
        ],
        "outputs": [
            ((form.outputs if form else {}).get(name, name), value)
            for name, value in found.outputs.items()
            if value not in ("", [], {}, None)
        ],
        "machines": [entry for entry in found.resources if "host" in entry],
    }


@router.get("/deployments/{uuid}")
def details(
    request: Request, site: Showing, user: Caller, uuid: Uuid, task: TaskId = "", node: TaskId = ""
) -> Response:
    """Show a deployment, with the output of one of its tasks."""
    service, consoles = site.service.deployments, site.service.consoles
    found = service.find(user, uuid)
    printed = consoles.show(found) if consoles.has(found) else None
    lines, cut = service.last_lines(found.uuid, LINES)
    return site.page(
        request,
        "details",
        found=found,
        log="\n".join(lines),
        cut=cut,
        # each look of an administrator is in the audit, so the page of another user does not look by itself
        live=found.subject == user.subject and (found.status not in FINAL or bool(printed and printed.waits)),
        printed=printed,
        chosen=printed.task(task, node) if printed else None,
        **described(site, found),
        **_rules(),
    )


@router.post("/deployments/{uuid}/console")
def ask_for_console(site: Showing, user: Caller, uuid: Uuid, _sent: Posted) -> Response:
    """Have a worker read the output of the tasks."""
    found = site.service.deployments.find(user, uuid, "read console")
    site.service.consoles.ask(found)
    return site.to(f"{HOME}/{uuid}#console-title")


@router.get("/deployments/{uuid}/log", response_class=PlainTextResponse)
def log(site: Showing, user: Caller, uuid: Uuid) -> str:
    """Return the progress of the runs."""
    found = site.service.deployments.find(user, uuid, "read log")
    return site.service.deployments.log(found.uuid).encode(errors="replace").decode()


@router.get("/deployments/{uuid}/delete")
def ask_before_deletion(request: Request, site: Showing, user: Caller, uuid: Uuid) -> Response:
    """Say what a removal takes away."""
    found = site.service.deployments.find(user, uuid, "look before delete")
    return site.page(request, "delete", found=found, **described(site, found), **_rules())


@router.post("/deployments/{uuid}/delete")
def delete(site: Showing, user: Caller, uuid: Uuid, sent: Posted) -> Response:
    """Remove a deployment."""
    if sent.get("sure") != "yes":
        raise Refused("nothing was removed; confirm the removal on its page")
    site.service.deployments.delete(user, uuid)
    return site.to(f"{HOME}/{uuid}")


@router.post("/deployments/{uuid}/reset")
def reset(site: Showing, user: Caller, uuid: Uuid, _sent: Posted) -> Response:
    """Give up a removal that does not end."""
    site.service.deployments.reset(user, uuid)
    return site.to(f"{HOME}/{uuid}")


@router.get("/quotas")
def quotas(request: Request, site: Showing, user: Caller) -> Response:
    """Show how much the user and the groups of the user have, and may have."""
    return site.page(request, "quotas", uses=site.service.deployments.use(user))
