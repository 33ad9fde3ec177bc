# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for the inputs of a template, from the command line, a file and the environment."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import yaml
from toscaparser.common.exception import TOSCAException
from toscaparser.dataentity import DataEntity
from toscaparser.properties import Property

from gpufarm import document
from gpufarm.errors import BadInput
from gpufarm.topology import Input, Topology

ENVIRONMENT = "GPUFARM_INPUT_"

_KINDS: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "float": (int, float),
    "boolean": (bool,),
    "list": (list,),
    "map": (dict,),
}


def _known(topology: Topology, name: str, source: str) -> Input:
    if name in topology.inputs:
        return topology.inputs[name]
    near = difflib.get_close_matches(name, topology.inputs, n=1)
    hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(topology.inputs) or 'none'}"
    raise BadInput(f"{source}: the template {topology.path.name} has no input {name}; {hint}")


def _from_text(definition: Input, text: str) -> Any:
    """A value of the input's type from what was typed: text for text, YAML for the rest."""
    if _KINDS.get(definition.kind, (str,)) == (str,):
        return text
    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise BadInput(f"input {definition.name}: {text} is no {definition.kind}") from error


def from_options(topology: Topology, options: tuple[str, ...]) -> dict[str, Any]:
    """Read ``--input NAME=VALUE`` options.

    Args:
        topology: the template.
        options: as typed.

    Returns:
        The values by name.

    Raises:
        BadInput: an option is malformed, names no input, or would show a secret in the process list.
    """
    values = {}
    for option in options:
        name, equals, text = option.partition("=")
        if not equals:
            raise BadInput(f"--input {name}: write it as NAME=VALUE")
        definition = _known(topology, name, "--input")
        if definition.secret:
            raise BadInput(
                f"--input {name}: it is a secret, and every user of this machine can read command lines; "
                f"put it in a file for --inputs, or in the environment as {ENVIRONMENT}{name.upper()}"
            )
        values[name] = _from_text(definition, text)
    return values


def from_file(topology: Topology, path: Path) -> dict[str, Any]:
    """Read a YAML file of inputs.

    Args:
        topology: the template.
        path: the file, a mapping of names to values.

    Returns:
        The values by name.

    Raises:
        BadInput: the file cannot be read or names something that is no input.
    """
    values = document.read(path)
    for name in values.data:
        _known(topology, name, values.where(name))
    return values.data


def from_environment(topology: Topology, environment: MutableMapping[str, str]) -> dict[str, Any]:
    """Take secret inputs out of the environment, so that no program started later inherits them.

    Args:
        topology: the template.
        environment: where ``GPUFARM_INPUT_NAME`` may be set; it is removed from there.

    Returns:
        The values by name.
    """
    values = {}
    for definition in topology.inputs.values():
        text = environment.pop(ENVIRONMENT + definition.name.upper(), None)
        if text is not None and definition.secret:
            values[definition.name] = text
    return values


def _check(definition: Input, value: Any) -> None:
    """Refuse a value that is of another type or breaks a constraint; a secret's value is not repeated."""
    name = definition.name
    kinds = _KINDS.get(definition.kind)
    if kinds and (not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds)):
        shown = "the value" if definition.secret else f'"{value}"'
        quote = "; write it in quotes" if definition.kind == "string" else ""
        raise BadInput(f"input {name}: {shown} is no {definition.kind}{quote}")
    if isinstance(value, str) and "\0" in value:
        raise BadInput(f"input {name}: contains a NUL character; remove it")
    try:
        DataEntity.validate_datatype(
            definition.kind, value, definition.schema.get("entry_schema"), None, name
        )
        for constraint in Property(name, value, definition.schema).constraints or []:
            constraint.validate(value)
    except (TOSCAException, ValueError, TypeError, KeyError, re.error) as error:
        if definition.secret:
            raise BadInput(f"input {name}: the value does not meet the template's constraints") from error
        sentence = str(error).partition("\n")[0].rstrip(".")
        sentence = re.sub(rf'^The value (.*?) of property "{re.escape(name)}"', r"\1", sentence)
        if " does not match pattern " in sentence and definition.description:
            # an expression helps nobody who has just mistyped a value; the description says what is meant
            sentence = f'"{value}" is not what is asked for: {definition.description.rstrip(".")}'
        raise BadInput(f"input {name}: {sentence}") from error


def complete(topology: Topology, given: Mapping[str, Any]) -> dict[str, Any]:
    """Check the given values and add the defaults.

    Args:
        topology: the template.
        given: values by name.

    Returns:
        The value of every input that has one.

    Raises:
        BadInput: a value is of the wrong type or breaks a constraint, or a required one is missing.
    """
    values = {}
    missing = []
    for name, definition in topology.inputs.items():
        if name in given:
            _check(definition, given[name])
            values[name] = given[name]
        elif definition.default is not None:
            values[name] = definition.default
        elif definition.required:
            missing.append(definition)
    if missing:
        first = missing[0]
        what = f" ({first.description.rstrip('.')})" if first.description else ""
        how = (
            f"--inputs FILE or {ENVIRONMENT}{first.name.upper()}"
            if first.secret
            else f"--input {first.name}=VALUE"
        )
        more = f"; missing too: {', '.join(entry.name for entry in missing[1:])}" if missing[1:] else ""
        raise BadInput(f"the template needs the input {first.name}{what}: give it with {how}{more}")
    return values
