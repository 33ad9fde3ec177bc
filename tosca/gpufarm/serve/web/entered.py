# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns the texts of a form into the parameters of a request, and values into texts. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from gpufarm.serve.people import User
from gpufarm.serve.web.form import Field, Form, text
from gpufarm.serve.web.render import clean
from gpufarm.topology import is_secret

# Names of the fields of a form begin with it, so that no input collides with another field.
PREFIX = "input."
_ABOUT_INPUT = re.compile(r"input ([^\s:]+): (.+)")
_NAME, _KEY = ".name", ".key"


def names(field: Field) -> tuple[str, ...]:
    """Name what a browser sends for a field.

    Args:
        field: the field.

    Returns:
        One name; two for an account.
    """
    own = PREFIX + field.name
    return (own + _NAME, own + _KEY) if field.widget == "account" else (own,)


def begun(form: Form) -> dict[str, str]:
    """Fill in a form with its defaults.

    Args:
        form: the form.

    Returns:
        The texts, by the names that `names` gives; none of secrets.
    """
    found = {}
    for field in form.fields:
        if field.widget not in ("password", "account", "claim", "hidden") and field.default is not None:
            found[PREFIX + field.name] = _text(field, field.default)
    return found


def updating(form: Form, values: Mapping[str, Any], sealed: Collection[str] = ()) -> Form:
    """Make the form for an update: inputs that users do not see keep their values.

    Args:
        form: of a new deployment.
        values: of the deployment, with the defaults of the template.
        sealed: names of the inputs of which the deployment has a secret value.

    Returns:
        The form.
    """
    fields = []
    for field in form.fields:
        hidden = field.name in sealed and field.widget != "password"
        value = None if hidden else values.get(field.name)
        widget = field.widget
        # there may be several accounts by now, and not every list can be written in lines
        if widget == "account" or (widget in ("lines", "pairs") and value and not _fits(field, value)):
            widget = "json"
        elif widget == "line" and "\n" in str(value):  # browsers would take it away
            widget = "area"
        if field.shown:
            fields.append(replace(field, widget=widget, required=False, default=value, sealed=hidden))
    return replace(form, fields=tuple(fields))


def _fits(field: Field, value: Any) -> bool:
    try:
        return bool(_entered(field.widget, _text(field, value)) == value)
    except ValueError:
        return False


def _text(field: Field, value: Any) -> str:
    if field.widget == "lines" and isinstance(value, list):
        return "\n".join(text(one) for one in value)
    if field.widget == "pairs" and isinstance(value, dict):
        return "\n".join(f"{key}={text(one)}" for key, one in value.items())
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False)
    return text(value)


def parameters(form: Form, sent: Mapping[str, str], user: User) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the form of a new deployment.

    Args:
        form: the form.
        sent: what the browser has sent, by names.
        user: of whom inputs get claims.

    Returns:
        The parameters of a request, and a sentence for each input that is no text of its kind.
    """
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    for field in form.fields:
        if field.widget == "hidden":  # the service sets it
            continue
        if field.widget == "claim":
            value = user.claims.get(field.claim)
        elif field.widget == "account":
            value = _account(*(sent.get(name, "").strip() for name in names(field)))
        else:
            try:
                value = _entered(field.widget, sent.get(PREFIX + field.name, ""))
            except ValueError as error:
                wrong[field.name] = str(error)
                continue
        if value not in (None, ""):
            found[field.name] = value
    return found, wrong


def changes(form: Form, sent: Mapping[str, str]) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the form of an update.

    Args:
        form: the form, as `updating` returned it.
        sent: what the browser has sent, by names.

    Returns:
        The parameters that differ from what the form began with, and a sentence for each input that is wrong.
    """
    found: dict[str, Any] = {}
    wrong: dict[str, str] = {}
    before = begun(form)
    for field in form.fields:
        name = PREFIX + field.name
        # pages show some characters as signs, which browsers send back
        old = _entered_text(field.widget, clean(before.get(name, "")))
        new = _entered_text(field.widget, sent.get(name, ""))
        if old == new:
            continue
        try:
            value = _entered(field.widget, new)
        except ValueError as error:
            wrong[field.name] = str(error)
            continue
        if value == "":
            wrong[field.name] = "an update cannot empty it; write another value"
        else:
            found[field.name] = value
    return found, wrong


def repeated(form: Form, sent: Mapping[str, str]) -> dict[str, str]:
    """Choose what a form shows again when something in it is wrong.

    Args:
        form: the form.
        sent: what the browser has sent, by names.

    Returns:
        The texts without secrets.
    """
    found = {}
    for field in form.fields:
        for name in names(field):
            entered = sent.get(name, "")
            if field.widget != "password" and not (field.widget in ("json", "pairs") and _hides(entered)):
                found[name] = entered
    return found


def _hides(entered: str) -> bool:
    """Whether a map or a list that may be wrong seems to have a secret in it."""
    return any(is_secret(word) for word in re.findall(r"[A-Za-z0-9_.-]+", entered))


def _account(name: str, key: str) -> list[dict[str, Any]] | None:
    """The entry that the dashboard makes of the user's profile."""
    if not name and not key:
        return None
    return [{"os_user_name": name, "os_user_add_to_sudoers": True, "os_user_ssh_public_key": key}]


def _entered_text(widget: str, text: str) -> str:
    """The text of a field without the blanks and line ends that browsers and people add."""
    if widget == "switch":
        return "true" if text == "true" else "false"
    return text if widget == "password" else text.replace("\r\n", "\n").replace("\r", "\n").strip()


def _entered(widget: str, text: str) -> Any:
    plain = _entered_text(widget, text)
    if widget not in ("lines", "pairs"):
        return plain
    lines = [line.strip() for line in plain.split("\n") if line.strip()]
    if widget == "lines":
        return lines
    pairs = {}
    for line in lines:
        key, equals, value = line.partition("=")
        if not equals or not key.strip():
            raise ValueError(f'the line "{line[:100]}" is no NAME=VALUE; correct it')
        pairs[key.strip()] = value.strip()
    return pairs


def sorted_out(message: str, form: Form) -> tuple[dict[str, str], list[str]]:
    """Find the field that each sentence of a refusal is about.

    Args:
        message: sentences, one on each line.
        form: the form.

    Returns:
        The sentence for each field that users see, and the other sentences.
    """
    shown = {field.name for field in form.fields if field.shown}
    beside: dict[str, str] = {}
    others = []
    for line in message.split("\n"):
        found = _ABOUT_INPUT.fullmatch(line)
        if found and found[1] in shown and found[1] not in beside:
            beside[found[1]] = found[2]
        else:
            others.append(line)
    return beside, others
