# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue, and the forms of new deployments and of updates."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

from fastapi import APIRouter, Path, Request, Response
from pydantic import ValidationError

from gpufarm.errors import BadInput, GpufarmError
from gpufarm.serve.models import Create, Update
from gpufarm.serve.offers import Offered
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Conflict, Missing, Refused
from gpufarm.serve.tables import Deployment
from gpufarm.serve.web import entered
from gpufarm.serve.web.form import Form
from gpufarm.serve.web.gate import Caller, Posted, Showing
from gpufarm.serve.web.links import HOME, ROOT
from gpufarm.serve.web.site import Site
from gpufarm.serve.web.views import Uuid

Name = Annotated[str, Path(max_length=128)]
router = APIRouter(prefix=ROOT, include_in_schema=False)
# Refusals that are about what the user has entered.
_OF_THE_FORM = (400, 403, 409)


@router.get("/catalogue")
def catalogue(request: Request, site: Showing, user: Caller) -> Response:
    """List the templates that the user may deploy."""
    return site.page(request, "catalogue", offered=site.service.offers.admitted(user))


def _offered(site: Site, user: User, name: str) -> Offered:
    for one in site.service.offers.admitted(user):
        if one.offer.name == name:
            return one
    raise Missing(f"there is no template {name[:64]} for you; choose one of the catalogue")


def _groups(site: Site, user: User, offered: Offered) -> tuple[list[str], bool]:
    """Groups that may be the active one, and whether one has to be."""
    found = sorted(user.groups & offered.offer.groups) if offered.offer.groups else sorted(user.groups)
    return found, any(site.service.settings.quotas.limits(name) for name in user.groups)


@dataclass(frozen=True)
class _Wrong:
    """Why a form is shown again: a sentence for each field, other sentences, and the status of HTTP."""

    beside: dict[str, str] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)
    code: int = 200


def _asked(
    request: Request,
    site: Site,
    offered: Offered,
    form: Form,
    texts: dict[str, str],
    wrong: _Wrong,
    **more: Any,
) -> Response:
    words = {"texts": texts, "wrong": wrong.beside, "lines": wrong.others, **more}
    return site.page(request, "form", wrong.code, offered=offered, tabs=form.tabs(), **words)


def _refused(error: Exception, form: Form) -> _Wrong:
    code = error.code if isinstance(error, Refused) else 400
    if code not in _OF_THE_FORM:
        raise error
    message = error.message if isinstance(error, GpufarmError) else "a value is too long; shorten it"
    return _Wrong(*entered.sorted_out(message, form), code)


@router.get("/catalogue/{name}")
def ask(request: Request, site: Showing, user: Caller, name: Name) -> Response:
    """Show the form of a template."""
    offered = _offered(site, user, name)
    groups, needed = _groups(site, user, offered)
    form, group = site.forms[name], groups[0] if needed and groups else ""
    more = {"groups": groups, "needed": needed, "group": group, "found": None}
    return _asked(request, site, offered, form, entered.begun(form), _Wrong(), **more)


@router.post("/catalogue/{name}")
def deploy(request: Request, site: Showing, user: Caller, name: Name, sent: Posted) -> Response:
    """Make a deployment."""
    offered, form = _offered(site, user, name), site.forms[name]
    given, wrong = entered.parameters(form, sent, user)
    group = sent.get("group", "")
    if not wrong:
        try:
            body = Create(template=offered.topology.text, parameters=given, userGroup=group or None)
            made = site.service.create(user, body)
            return site.to(f"{HOME}/{made.uuid}")
        except (BadInput, Refused, ValidationError) as error:
            why = _refused(error, form)
    else:
        why = _Wrong(wrong, code=400)
    groups, needed = _groups(site, user, offered)
    more = {"groups": groups, "needed": needed, "group": group, "found": None}
    return _asked(request, site, offered, form, entered.repeated(form, sent), why, **more)


def _of(site: Site, found: Deployment) -> tuple[Offered, Form]:
    """The template of a deployment, and its form for an update."""
    offered = site.service.offers.named(found.template)
    defaults = {name: one.default for name, one in offered.topology.inputs.items()}
    sealed = site.service.secrets(found)
    return offered, entered.updating(site.forms[found.template], defaults | found.parameters, sealed.keys())


@router.get("/deployments/{uuid}/update")
def ask_for_update(request: Request, site: Showing, user: Caller, uuid: Uuid) -> Response:
    """Show the form of a deployment, with its values."""
    found = site.service.deployments.find(user, uuid, "look before update")
    offered, form = _of(site, found)
    return _asked(
        request, site, offered, form, entered.begun(form), _Wrong(), found=found, seen=repr(found.updated)
    )


@router.post("/deployments/{uuid}/update")
def update(request: Request, site: Showing, user: Caller, uuid: Uuid, sent: Posted) -> Response:
    """Change values of a deployment."""
    found = site.service.deployments.find(user, uuid, "look before update")
    offered, form = _of(site, found)
    if sent.get("seen") != repr(found.updated):
        raise Conflict(f"deployment {found.uuid} was changed meanwhile; open the form again")
    given, wrong = entered.changes(form, sent)
    if not wrong:
        try:
            site.service.update(user, uuid, Update(template=offered.topology.text, parameters=given))
            return site.to(f"{HOME}/{uuid}")
        except (BadInput, Refused, ValidationError) as error:
            why = _refused(error, form)
    else:
        why = _Wrong(wrong, code=400)
    texts = entered.repeated(form, sent)
    return _asked(request, site, offered, form, texts, why, found=found, seen=sent["seen"])
