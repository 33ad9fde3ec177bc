# SPDX-License-Identifier: GPL-3.0-or-later
"""Values for the inputs of a template, from the command line, a file and the environment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, TypeVar

from gpufarm import document, values
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.problems import near
from gpufarm.secrecy import holds_secret
from gpufarm.topology import Input, Topology

ENVIRONMENT = "GPUFARM_INPUT_"
_Entry = TypeVar("_Entry")

# Types whose values are read as YAML from a command line; the others are texts.
_YAML = ("integer", "float", "number", "boolean", "list", "map", "range")


def _known(topology: Topology, name: str, source: str) -> Input:
    if name in topology.inputs:
        return topology.inputs[name]
    raise BadInput(
        f"{source}: the template {topology.path.name} has no input {name}; {near(name, topology.inputs)}"
    )


def _from_text(definition: Input, text: str) -> Any:
    """A value of the input's type from what was typed: text for text, YAML for the rest."""
    if definition.kind not in _YAML:
        return text
    try:
        return document.value(text)
    except BadTemplate as error:
        raise BadInput(f"input {definition.name}: {text} is no {definition.kind}") from error


def _each(entries: Iterable[_Entry], read: Callable[[_Entry], tuple[str, Any]]) -> dict[str, Any]:
    """Read values one by one, and tell of all that are wrong at once."""
    found = {}
    wrong = []
    for entry in entries:
        try:
            name, value = read(entry)
            found[name] = value
        except BadInput as error:
            wrong.append(error.message)
    if wrong:
        raise BadInput("\n".join(wrong))
    return found


def from_options(topology: Topology, options: tuple[str, ...]) -> dict[str, Any]:
    """Read ``--input NAME=VALUE`` options.

    Args:
        topology: the template.
        options: as typed.

    Returns:
        The values by name.

    Raises:
        BadInput: options are malformed, name no input, or would show a secret in the process list.
    """

    def read(option: str) -> tuple[str, Any]:
        name, equals, text = option.partition("=")
        if not equals:
            raise BadInput(f"--input {name}: write it as NAME=VALUE")
        definition = _known(topology, name, "--input")
        value = _from_text(definition, text)
        if definition.secret or holds_secret(value):
            raise BadInput(
                f"--input {name}: it is a secret, and every user of this machine can read command lines; "
                f"put it in a file for --inputs, or in the environment as {ENVIRONMENT}{name.upper()}"
            )
        return name, value

    return _each(options, read)


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
    found = document.read(path)
    return from_mapping(topology, found.data, lambda name: str(found.at(name)))


def from_mapping(topology: Topology, given: Mapping[str, Any], place: Callable[[str], str]) -> dict[str, Any]:
    """Take values that are there already.

    Args:
        topology: the template.
        given: the values by name.
        place: says where the value of a name stands.

    Returns:
        The values by name.

    Raises:
        BadInput: something is named that is no input.
    """

    def read(name: str) -> tuple[str, Any]:
        _known(topology, name, place(name))
        return name, given[name]

    return _each(given, read)


def from_environment(topology: Topology, environment: MutableMapping[str, str]) -> dict[str, Any]:
    """Take inputs out of the environment, so that no program started later inherits a secret.

    Args:
        topology: the template.
        environment: where ``GPUFARM_INPUT_NAME`` may be set; it is removed from there.

    Returns:
        The values by name.

    Raises:
        BadInput: a value is malformed.
    """
    found = {}
    for definition in topology.inputs.values():
        text = environment.pop(ENVIRONMENT + definition.name.upper(), None)
        if text is not None:
            found[definition.name] = _from_text(definition, text)
    return found


def _check(definition: Input, value: Any, data_types: Mapping[str, Any]) -> None:
    """Refuse a value that is of another type or breaks a constraint; a secret's value is not repeated."""
    name = definition.name
    try:
        wrong = values.unfit(value) or values.fault(definition.schema, value, data_types, plain=True)
    except values.BadSchema as error:
        raise BadInput(f"input {name}: {error}") from error
    if not wrong:
        return
    if definition.secret or holds_secret(value):
        raise BadInput(f"input {name}: the value does not meet the template's constraints")
    if " does not match the pattern " in wrong and definition.description:
        # an expression helps nobody who has just mistyped a value; the description says what is meant
        wrong = f'"{value}" is not what is asked for: {definition.description.rstrip(".")}'
    raise BadInput(f"input {name}: {wrong}")


def accepted(topology: Topology, given: Mapping[str, Any]) -> dict[str, Any]:
    """Add the defaults to values that were checked.

    Args:
        topology: the template.
        given: values by name; those of other inputs are left out.

    Returns:
        The value of every input that has one.
    """
    found = {name: entry.default for name, entry in topology.inputs.items() if entry.default is not None}
    for name, entry in topology.inputs.items():
        if name in given:
            # People write 2 for 2.0, which tosca-parser takes for no float.
            real = entry.kind == "float" and isinstance(given[name], int)
            found[name] = float(given[name]) if real else given[name]
    return found


def known(topology: Topology, given: Mapping[str, Any], data_types: Mapping[str, Any]) -> dict[str, Any]:
    """Check the given values and add the defaults.

    Args:
        topology: the template.
        given: values by name.
        data_types: definitions of data types that inputs may have.

    Returns:
        The value of every input that has one.

    Raises:
        BadInput: values are of the wrong type or break a constraint; all of them are told.
    """

    def read(definition: Input) -> tuple[str, Any]:
        _check(definition, given[definition.name], data_types)
        return definition.name, given[definition.name]

    _each((topology.inputs[name] for name in topology.inputs if name in given), read)
    return accepted(topology, given)


def missing(topology: Topology, given: Mapping[str, Any]) -> None:
    """Refuse a request that lacks values.

    Args:
        topology: the template.
        given: values by name.

    Raises:
        BadInput: required ones are missing; it tells how to give them.
    """
    lacking = [
        definition
        for name, definition in topology.inputs.items()
        if definition.required and name not in given
    ]
    if not lacking:
        return
    first = lacking[0]
    what = f" ({first.description.rstrip('.')})" if first.description else ""
    how = (
        f"--inputs FILE or {ENVIRONMENT}{first.name.upper()}"
        if first.secret
        else f"--input {first.name}=VALUE"
    )
    more = f"; missing too: {', '.join(entry.name for entry in lacking[1:])}" if lacking[1:] else ""
    raise BadInput(f"the template needs the input {first.name}{what}: give it with {how}{more}")


def complete(topology: Topology, given: Mapping[str, Any], data_types: Mapping[str, Any]) -> dict[str, Any]:
    """Check the given values, add the defaults, and refuse if that is not all.

    Args:
        topology: the template.
        given: values by name.
        data_types: definitions of data types that inputs may have.

    Returns:
        The value of every input that has one.

    Raises:
        BadInput: values are of the wrong type, break a constraint or are missing; all of them are told.
    """
    wrong = []
    found: dict[str, Any] = {}
    try:
        found = known(topology, given, data_types)
    except BadInput as error:
        wrong.append(error.message)
    try:
        missing(topology, given)
    except BadInput as error:
        wrong.append(error.message)
    if wrong:
        raise BadInput("\n".join(wrong))
    return found
