# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of clients, checked and carried out, without anything of HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from gpufarm import values
from gpufarm.errors import BadInput
from gpufarm.key import Key
from gpufarm.serve import forms
from gpufarm.serve.consoles import Consoles
from gpufarm.serve.database import Database
from gpufarm.serve.deployments import Deployments, Filter, Wanted
from gpufarm.serve.fields import https
from gpufarm.serve.hours import Hours
from gpufarm.serve.identity import Identity
from gpufarm.serve.models import Create, Update
from gpufarm.serve.offers import Offered, Offers
from gpufarm.serve.people import Person, User
from gpufarm.serve.refusals import Forbidden, Refused
from gpufarm.serve.settings import Settings
from gpufarm.serve.statuses import Status
from gpufarm.serve.tables import Deployment
from gpufarm.serve.web import form


class Service:
    """The service of some settings."""

    def __init__(self, settings: Settings) -> None:
        """Read the catalogue, and bring the database up to date.

        Args:
            settings: of the service.

        Raises:
            BadInput: a template or the database is wrong.
            Unavailable: the database does not answer.
        """
        self.settings = settings
        self.offers = Offers(settings.offers)
        self.forms = {one.offer.name: form.read(one) for one in self.offers.all()}
        self.identity = Identity(
            settings.issuers, {claim for one in self.forms.values() for claim in one.people.values()}
        )
        settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.key = Key(settings.folder / "key")
        self.database = Database(settings.database)
        self.database.upgrade()
        self.deployments = Deployments(self.database, settings.quotas, settings.url)
        self.hours = Hours(self.database, settings)
        self.consoles = Consoles(self.database, self.offers)

    def create(self, user: User, body: Create) -> Deployment:
        """Reserve a new deployment.

        Args:
            user: its owner.
            body: of the request.

        Returns:
            The deployment.

        Raises:
            GpufarmError: the request is refused; the sentence says why.
        """
        group = body.userGroup or ""
        if group and group not in user.groups:
            raise Forbidden(f"you are not in group {group}; choose one of your groups")
        limited = sorted(name for name in user.groups if self.settings.quotas.limits(name))
        if limited and not group:
            raise Forbidden(f"userGroup is missing; choose one of your groups, such as {limited[0]}")
        offered = self._offered(body, user)
        if group and offered.offer.groups and group not in offered.offer.groups:
            raise Forbidden(f"template {offered.offer.name} is not for group {group}; choose another group")
        given = self._given(offered, body, {})
        given |= self._hidden(offered) | self.forms[offered.offer.name].of_person(user)
        return self.deployments.create(user, self._wanted(offered, body, given, {}, group))

    def update(self, user: User, uuid: str, body: Update) -> None:
        """Change values of a deployment.

        Args:
            user: the user.
            uuid: of the deployment.
            body: of the request.

        Raises:
            GpufarmError: the request is refused; the sentence says why.
        """
        seen = self.deployments.find(user, uuid, "look before update")
        offered = self._offered(body, user, seen)
        if offered.offer.name != seen.template:
            raise Refused(f"deployment {uuid} has template {seen.template}; an update cannot replace it")
        public, secrets = offered.known(seen.parameters), offered.known(self.secrets(seen))
        # inputs that identify a person stay those of the owner
        given = {**public, **self._given(offered, body, {**public, **secrets})}
        wanted = self._wanted(offered, body, given, secrets, seen.user_group)
        self._keeps_names(offered, {**secrets, **public}, {**secrets, **given})
        if body.timeoutMins is None:
            wanted = replace(wanted, timeout=seen.timeout)
        if body.callback is None:
            wanted = replace(wanted, callback=seen.callback)
        self.deployments.update(user, seen, wanted)

    def secrets(self, found: Deployment) -> dict[str, Any]:
        """Open the secrets of a deployment.

        Args:
            found: the deployment.

        Returns:
            The values by the names of the inputs.
        """
        return self.key.unseal(found.secrets) if found.secrets else {}

    def owner(self, user: User, created_by: str | None) -> Person | None:
        """Read the filter by owner.

        Args:
            user: the user.
            created_by: ``me`` or ``subject@issuer``; None for all users.

        Returns:
            The owner; None for all users.

        Raises:
            Refused: it is neither.
            Forbidden: it is of an unknown issuer.
        """
        if created_by is not None and values.unfit(created_by):
            raise Refused("createdBy is no text of a name; correct it")
        if created_by is None or created_by == "me":
            return user if created_by else None
        subject, at, named = created_by.rpartition("@")
        if not at or not subject:
            raise Refused("createdBy has to be me or SUBJECT@ISSUER; correct it")
        issuer = self.identity.issuer(named)
        if issuer is None:
            raise Forbidden("createdBy names an issuer that this service does not accept; correct it")
        return Person(issuer, subject)

    def chosen(self, owner: Person | None, group: str | None, without: str | None) -> Filter:
        """Read the filters of a list.

        Args:
            owner: as `owner` returned it.
            group: active group; None for any.
            without: statuses to leave out, with commas between them.

        Returns:
            The filter.

        Raises:
            Refused: there is no such status.
        """
        if group is not None and values.unfit(group):
            raise Refused("userGroup is no text of a name; correct it")
        statuses = [word for word in (without or "").split(",") if word]
        for word in statuses:
            if word not in Status.__members__:
                raise Refused(f"excludedStatus has {word[:64]}; write one of {', '.join(Status)}")
        return Filter(owner, group, statuses)

    def _offered(self, body: Update, user: User, seen: Deployment | None = None) -> Offered:
        if forms.too_deep(body.parameters):
            raise Refused(f"the parameters have more than {forms.DEEPEST} levels; send fewer")
        wrong = values.unfit(body.template) or values.unfit(body.parameters or {})
        if wrong:
            raise BadInput(f"the request {wrong}")
        if body.providerTimeoutMins and body.timeoutMins and body.providerTimeoutMins > body.timeoutMins:
            raise Refused("providerTimeoutMins may not be longer than timeoutMins; correct one of them")
        if seen and body.template == seen.text:
            # Clients send what they read there, also when the operator has a newer release of the template.
            return self.offers.admitting(self.offers.named(seen.template), user)
        return self.offers.sent(body.template, user)

    def _hidden(self, offered: Offered) -> dict[str, Any]:
        """Values of inputs that the form hides, but no defaults of the template: the pool may have others."""
        own = forms.given(offered, self.forms[offered.offer.name].hidden())
        inputs = offered.topology.inputs
        return {name: value for name, value in own.items() if value != inputs[name].default}

    def _given(self, offered: Offered, body: Update, before: Mapping[str, Any]) -> dict[str, Any]:
        """The values of a request, without those that the form hides: they are the operator's.

        Else an address of a user would get the operator's password. The dashboard sends the defaults back.
        """
        asked = self.forms[offered.offer.name]
        given = forms.given(offered, body.parameters or {}, asked.people)
        hidden = asked.hidden()
        own = forms.given(offered, hidden)
        for name in hidden.keys() & given.keys():
            if given.pop(name) not in ([], {}, own.get(name), before.get(name)):
                raise BadInput(f"input {name}: the operator of this service sets it; leave it out")
        return given

    def _wanted(
        self,
        offered: Offered,
        body: Update,
        given: Mapping[str, Any],
        secrets: Mapping[str, Any],
        group: str,
    ) -> Wanted:
        machines = offered.machines({**secrets, **given})
        public, secret = offered.separated(given)
        sealed = {name: value for name, value in secrets.items() if name not in given} | secret
        return Wanted(
            template=offered.offer.name,
            text=body.template,
            machines=machines,
            timeout=min(body.timeoutMins or self.settings.timeout, self.settings.timeout),
            parameters=public,
            secrets=self.key.seal(sealed) if sealed else "",
            user_group=group,
            callback=self._callback(body.callback),
        )

    @staticmethod
    def _keeps_names(offered: Offered, before: Mapping[str, Any], after: Mapping[str, Any]) -> None:
        try:
            former = offered.names(before)
        except BadInput:  # values for an older release of the template
            return
        new = offered.names(after)
        changed = {path for step, named in former.items() for path in named if named[path] != new[step][path]}
        if changed:
            raise Refused(
                f"an update cannot change {' and '.join(sorted(changed))}, as what has the former name would "
                "stay; make another deployment with the new one"
            )

    def _callback(self, url: str | None) -> str:
        if not url:
            return ""
        # the same check as before each post, of which the settings may be others
        if not https(url) or (urlsplit(url).hostname or "") not in self.settings.callback_hosts:
            raise Refused("callback has to be an https URL on a host that the operator allows; leave it out")
        return url
