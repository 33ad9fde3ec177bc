# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue: templates that the operator offers. A request names one by its content."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufarm import asking, collection, document, evaluated, instances, plan
from gpufarm import inputs as values
from gpufarm import template as templates
from gpufarm.catalogue import Catalogue
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.functions import Scope
from gpufarm.library import Library
from gpufarm.problems import near
from gpufarm.secrecy import holds_secret
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Forbidden, Refused
from gpufarm.serve.settings import Offer
from gpufarm.topology import DEPLOY, Topology

# Times by which a text, and the number of its values, may be larger than the largest of the catalogue:
# programs write the same data with other layout and comments.
LONGER = 2


@dataclass(frozen=True)
class Offered:
    """A template of the catalogue, read and checked.

    Attributes:
        offer: its settings.
        path: the file that is deployed.
        library: its types.
        topology: the template.
        data_types: definitions of data types that its inputs may have.
    """

    offer: Offer
    path: Path
    library: Library
    topology: Topology
    data_types: Mapping[str, Any]

    def admits(self, user: User) -> bool:
        """Tell whether a user may deploy it.

        Args:
            user: the user.

        Returns:
            True if it is for users of the issuer, and for everybody or one of the user's groups.
        """
        if self.offer.issuers and user.issuer not in self.offer.issuers:
            return False
        return not self.offer.groups or bool(self.offer.groups & user.groups)

    def known(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """Leave out what the template has no more, such as after a new release of it.

        Args:
            given: values by name, as they were remembered.

        Returns:
            Those of its inputs.
        """
        return {name: value for name, value in given.items() if name in self.topology.inputs}

    def separated(self, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Take the secrets out of values.

        Args:
            given: values by name.

        Returns:
            The public values, and the secret ones.
        """
        secret = {
            name: value
            for name, value in given.items()
            if self.topology.inputs[name].secret or holds_secret(value)
        }
        return {name: value for name, value in given.items() if name not in secret}, secret

    def machines(self, given: Mapping[str, Any]) -> int:
        """Check values, and count the machines.

        Args:
            given: values by name.

        Returns:
            The number of machines of a deployment with these values.

        Raises:
            BadInput: values are missing or wrong; all of them are told.
        """
        full = values.known(self.topology, given, self.data_types)
        missing = [
            entry.name
            for entry in self.topology.inputs.values()
            if entry.required and full.get(entry.name) is None
        ]
        if missing:
            raise BadInput("\n".join(f"input {name}: there is no value; it needs one" for name in missing))
        try:
            evaluated.examine(Scope(self.topology, full), self.library)
        except BadTemplate as error:  # its places are files of this server
            raise BadInput("\n".join(problem.text for problem in error.problems)) from error
        return sum(instances.counts(self.topology, full, {}).values())

    def names(self, given: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
        """Tell the names of what a deployment makes, where an update cannot change them.

        Args:
            given: values by name that `machines` has accepted.

        Returns:
            Names by variable, of each step.
        """
        scope = Scope(self.topology, values.known(self.topology, given, self.data_types))
        return {
            f"{node.name}.{name}": plan.names(node, operation, scope)
            for node in self.topology.nodes.values()
            for name, operation in node.operations.items()
            if name in DEPLOY
        }


class Offers:
    """All templates of the catalogue."""

    def __init__(self, offers: Iterable[Offer]) -> None:
        """Read them.

        Args:
            offers: of the settings.

        Raises:
            BadInput: a template is wrong, is there twice, or has no such input.
        """
        self._named: dict[str, Offered] = {}
        self._known: dict[str, Offered] = {}
        self._letters = self._values = 0
        for offer in offers:
            library, topology = templates.read(asking.located(offer.template))
            made = Offered(offer, topology.path, library, topology, Catalogue(library).names("data_types"))
            for name in offer.people or {}:
                if name not in topology.inputs:
                    raise BadInput(
                        f"template {offer.name}: people names the input {name}, which it lacks; "
                        f"{near(name, topology.inputs)}"
                    )
            self._named[offer.name] = made
            for path in _texts(topology.path):
                found = document.read(path)
                self._letters = max(self._letters, LONGER * len(found.text))
                self._values = max(self._values, LONGER * _number(found.data, document.MAX_NODES))
                own = _fingerprint(found.data)
                other = self._known.setdefault(own, made)
                if other is not made:
                    raise BadInput(
                        f"templates {other.offer.name} and {offer.name} are the same; remove one of them"
                    )

    def named(self, name: str) -> Offered:
        """Find a template by its name.

        Args:
            name: in the settings.

        Returns:
            The template.

        Raises:
            Refused: the operator offers it no more.
        """
        if name not in self._named:
            raise Refused(f"template {name} is offered no more; ask the operator of this service")
        return self._named[name]

    def sent(self, text: str, user: User) -> Offered:
        """Find the template that a client sent.

        Args:
            text: the template, perhaps written again by another program.
            user: the user.

        Returns:
            The template of the catalogue with the same data.

        Raises:
            BadInput: it is no YAML.
            Refused: it is none of the catalogue.
            Forbidden: it is for other groups, or users of other issuers.
        """
        found = None
        if len(text) <= self._letters:  # a text takes time to read, and aliases make little text to much data
            data = document.value(text)
            if _number(data, self._values) <= self._values:
                found = self._known.get(_fingerprint(data))
        if found is None:
            offered = ", ".join(one.offer.name for one in self.admitted(user)) or "none"
            raise Refused(
                f"the template is not in the catalogue, or was changed; use one of these unchanged: {offered}"
            )
        return self.admitting(found, user)

    @staticmethod
    def admitting(found: Offered, user: User) -> Offered:
        """Refuse a template that a user may not deploy.

        Args:
            found: the template.
            user: the user.

        Returns:
            The template.

        Raises:
            Forbidden: it is for other groups, or users of other issuers.
        """
        if not found.admits(user):
            groups, issuers = (
                ", ".join(sorted(names)) for names in (found.offer.groups, found.offer.issuers)
            )
            if issuers and user.issuer not in found.offer.issuers:
                raise Forbidden(f"template {found.offer.name} is for users of {issuers}; sign in there")
            raise Forbidden(f"template {found.offer.name} is for members of {groups}; ask for a membership")
        return found

    def all(self) -> list[Offered]:
        """List the templates.

        Returns:
            All of them, in the order of the settings.
        """
        return [*self._named.values()]

    def admitted(self, user: User) -> list[Offered]:
        """List the templates that a user may deploy.

        Args:
            user: the user.

        Returns:
            The templates, in the order of the settings.
        """
        return [one for one in self._named.values() if one.admits(user)]


def _texts(path: Path) -> Iterator[Path]:
    """The files with a template: one of the collection is there in both dialects, and clients send either."""
    yield path
    root = collection.root() / "tosca"
    other = root / "indigo" / "templates" / path.name
    if path.resolve().parent == (root / "templates").resolve() and other.is_file():
        yield other


def _number(data: Any, most: int) -> int:
    """The number of values in data; it stops a little above the largest number that is wanted."""
    number, left = 0, [data]
    while left and number <= most:
        inner = left.pop()
        number += 1
        if isinstance(inner, dict):
            left += inner.values()
        elif isinstance(inner, list):
            left += inner
    return number


def _fingerprint(data: Any) -> str:
    return hashlib.sha256(json.dumps(_typed(data), sort_keys=True).encode("utf-8", "replace")).hexdigest()


def _typed(value: Any) -> Any:
    """A value in which 1, 1.0, true and "1" differ, also as keys."""
    if isinstance(value, dict):
        return {f"{type(key).__name__} {key}": _typed(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return f"{type(value).__name__} {value}"
