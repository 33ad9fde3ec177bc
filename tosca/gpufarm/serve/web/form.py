# SPDX-License-Identifier: GPL-3.0-or-later
"""The form of a template, from the file that the dashboard reads, too."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufarm import collection, document
from gpufarm.errors import BadInput
from gpufarm.problems import near
from gpufarm.serve.offers import Offered
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Forbidden
from gpufarm.topology import Input

# Heading of inputs for which a file with tabs names none, and of all without such a file.
MORE, ALL = "More", "Inputs"
_ACCOUNT = "Your account on the machines"
# How each type of the dashboard is asked for here; the others are a line of text.
_WIDGETS = {
    "boolean": "switch",
    "toggle": "switch",
    "select": "choice",
    "radio": "choice",
    "dependent_select": "choice",
    "textarea": "area",
    "text": "area",
    "ssh_pub_key_type": "area",
    "list": "lines",
    "map": "pairs",
    "range": "json",
    "password": "password",
    "random_password": "password",
    "ssh_user": "account",
    "userinfo": "claim",
    "hidden": "hidden",
}


@dataclass(frozen=True)
class Choice:
    """A value that can be chosen.

    Attributes:
        value: as a text.
        label: shown for it.
        parents: values of another field with which it can be chosen; empty for all.
    """

    value: str
    label: str
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Field:
    """An input in the form.

    Attributes:
        name: of the input.
        widget: ``line``, ``area``, ``switch``, ``choice``, ``lines``, ``pairs``, ``json``, ``password``,
            ``account``, ``claim`` or ``hidden``.
        label, help: shown for it.
        tab: heading under which it is.
        required: whether the template needs a value.
        default: value that the form begins with; None for none.
        choices: values that can be chosen.
        parent: field on which the choices depend; empty for none.
        claim: of the user, that a ``claim`` gets.
        sealed: whether it is a list or a map with secrets, which is shown to nobody.
    """

    name: str
    widget: str
    label: str
    help: str
    tab: str
    required: bool
    default: Any = None
    choices: tuple[Choice, ...] = ()
    parent: str = ""
    claim: str = ""
    sealed: bool = False

    @property
    def shown(self) -> bool:
        """Whether users see it."""
        return self.widget not in ("hidden", "claim")


@dataclass(frozen=True)
class Form:
    """The form of a template.

    Attributes:
        fields: in the order of the file.
        outputs: label of each output that has one.
        people: claim of the user that an input gets, whatever the request says.
    """

    fields: tuple[Field, ...]
    outputs: Mapping[str, str]
    people: Mapping[str, str]

    def tabs(self) -> dict[str, list[Field]]:
        """Sort the fields that users see.

        Returns:
            Those of each tab.
        """
        found: dict[str, list[Field]] = {}
        for field in self.fields:
            if field.shown:
                found.setdefault(field.tab, []).append(field)
        return found

    def hidden(self) -> dict[str, Any]:
        """List what users neither see nor may give.

        Returns:
            The default of each such input.
        """
        return {field.name: field.default for field in self.fields if field.widget == "hidden"}

    def claims(self) -> set[str]:
        """List the claims of a user that inputs get.

        Returns:
            Their names.
        """
        return {*self.people.values()} | {one.claim for one in self.fields if one.widget == "claim"}

    def of_person(self, user: User) -> dict[str, Any]:
        """Give the inputs that identify the owner.

        Args:
            user: the owner.

        Returns:
            The values by name.

        Raises:
            Forbidden: the issuer does not tell a claim that one of them needs.
        """
        found = {}
        for name, claim in self.people.items():
            value = user.claims.get(claim)
            if value in (None, "", []):
                raise Forbidden(
                    f"input {name} needs the claim {claim}, which your issuer does not give; "
                    "ask its administrators for it"
                )
            found[name] = value
        return found


def read(offered: Offered) -> Form:
    """Read the form of a template.

    Args:
        offered: the template.

    Returns:
        The form; without a file, one of all inputs.

    Raises:
        BadInput: the file is none of a form of this template, or nobody sets an input that names a person.
    """
    path, inputs = _file(offered), offered.topology.inputs
    data = document.read(path).data if path else {}
    said = _map(data, "inputs", path)
    for name in said:
        if name not in inputs:
            raise BadInput(f"{path}: there is no input {name[:100]}; {near(name[:100], inputs)}")
    order = [tab for tab in data.get("tabs") or [] if isinstance(tab, str)]
    rest = MORE if order else ALL
    made = [_field(one, {"tab": rest, **_words(said, one.name, path)}) for one in inputs.values()]
    people = {one.name: one.claim for one in made if inputs[one.name].person and one.claim}
    people |= offered.offer.people or {}
    kept = [field for field in made if field.name not in people]
    for field in kept:
        if inputs[field.name].person and field.required and field.default is None:
            raise BadInput(
                f"template {offered.offer.name}: users could name anybody in the input {field.name}; "
                f"add the claim with their own name, such as people: {{{field.name}: preferred_username}}"
            )
    kept.sort(key=lambda field: order.index(field.tab) if field.tab in order else len(order))
    outputs = {
        name: str(words["display_name"])
        for name, words in _map(data, "outputs", path).items()
        if isinstance(words, dict) and "display_name" in words
    }
    return Form(tuple(kept), outputs, people)


def _file(offered: Offered) -> Path | None:
    if offered.offer.form:
        return offered.offer.form
    root = collection.root()
    found = root / "tosca/dashboard/tosca-parameters" / f"{offered.path.stem}.parameters.yml"
    own = offered.path.resolve().parent == (root / "tosca/templates").resolve()
    return found if own and found.is_file() else None


def _map(data: Mapping[str, Any], name: str, path: Path | None) -> dict[str, Any]:
    found = data.get(name) or {}
    if not isinstance(found, dict) or not all(isinstance(key, str) for key in found):
        raise BadInput(f"{path}: {name} has to be a map")
    return found


def _words(said: Mapping[str, Any], name: str, path: Path | None) -> dict[str, Any]:
    found = said.get(name) or {}
    if not isinstance(found, dict):
        raise BadInput(f"{path}: input {name} has to be a map")
    return found


def _field(known: Input, said: Mapping[str, Any]) -> Field:
    words = {**known.schema, **said}
    constraints = [one for one in words.get("constraints") or [] if isinstance(one, dict)]
    choices = _choices(constraints)
    widget = _WIDGETS.get(str(words.get("type")), "line")
    if widget == "choice" or (choices and widget == "line"):
        widget = "choice" if choices else "line"
    if widget in ("lines", "pairs") and not _of_texts(words):
        widget = "json"
    if known.secret and widget not in ("hidden", "claim"):
        widget = "password"
    if known.person and widget != "claim":
        widget = "hidden"
    return Field(
        name=known.name,
        widget=widget,
        label=str(words.get("display_name") or (_ACCOUNT if widget == "account" else known.name)),
        help=" ".join(filter(None, (str(words.get("description") or "").strip(), _limits(constraints)))),
        tab=str(words["tab"]),
        required=known.required,
        default=words.get("default"),
        choices=choices,
        parent=str(words.get("parent") or words.get("depends_on") or ""),
        claim=str(words.get("attribute") or "") if widget == "claim" else "",
    )


def _of_texts(words: Mapping[str, Any]) -> bool:
    entry = words.get("entry_schema")
    return (entry.get("type") if isinstance(entry, dict) else entry) == "string"


def _choices(constraints: list[dict[str, Any]]) -> tuple[Choice, ...]:
    found = []
    for one in constraints:
        if isinstance(one.get("valid_values"), list):
            found += [Choice(text(value), text(value)) for value in one["valid_values"]]
        elif "value" in one:
            value = text(one["value"])
            parents = [one["parent_value"]] if "parent_value" in one else one.get("of") or []
            label = text(one.get("label") or value) or "(none)"
            found.append(Choice(value, label, tuple(text(parent) for parent in parents)))
    return tuple(found)


def _limits(constraints: list[dict[str, Any]]) -> str:
    """Say in a sentence what numbers and sizes are allowed."""
    found = []
    for one in constraints:
        for name, value in one.items():
            if name == "in_range" and isinstance(value, list) and len(value) == 2:
                found.append(f"From {value[0]} to {value[1]}.")
            elif name in ("greater_or_equal", "greater_than"):
                found.append(f"{'At least' if name == 'greater_or_equal' else 'More than'} {value}.")
            elif name in ("less_or_equal", "less_than"):
                found.append(f"{'At most' if name == 'less_or_equal' else 'Less than'} {value}.")
            elif name in ("min_length", "max_length"):
                found.append(f"At {'least' if name == 'min_length' else 'most'} {value} letters.")
    return " ".join(found)


def text(value: Any) -> str:
    """Write a simple value as forms have it.

    Args:
        value: a text, a number or a boolean.

    Returns:
        The text.
    """
    return str(value).lower() if isinstance(value, bool) else str(value)
