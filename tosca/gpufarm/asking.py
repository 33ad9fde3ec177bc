# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what is asked for: a template, by path or name, and the values of its inputs from all sources."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gpufarm import collection
from gpufarm import inputs as values
from gpufarm import template as templates
from gpufarm.catalogue import Catalogue
from gpufarm.errors import BadInput, BadTemplate
from gpufarm.library import Library
from gpufarm.problems import Place, Problem, near
from gpufarm.topology import Topology


@dataclass(frozen=True)
class Inputs:
    """Values of inputs as text; the options win over the file, and that over the environment.

    Attributes:
        options: NAME=VALUE, as on a command line; secrets are refused here.
        file: YAML file with values.
        environment: where ``GPUFARM_INPUT_NAME`` may be set; it is removed from there.
    """

    options: tuple[str, ...] = ()
    file: Path | None = None
    environment: MutableMapping[str, str] = field(default_factory=dict)


Given = Mapping[str, Any] | Inputs | None


def located(template: str | Path) -> Path:
    """Find a template.

    Args:
        template: a file, or the bare name of a template of the collection, such as ``ml_infn``.

    Returns:
        The file; a file of that name here goes before a template of the collection.

    Raises:
        BadInput: it is a bare name, and there is neither.
    """
    path = Path(template)
    if path.exists() or path.suffix or path.name != str(template):
        return path
    known = {file.stem: file for file in (collection.root() / "tosca" / "templates").glob("*.yaml")}
    if path.name not in known:
        raise BadInput(f"there is no file {path}, and no template of that name; {near(path.name, known)}")
    return known[path.name]


def given_values(topology: Topology, given: Given) -> dict[str, Any]:
    """Collect the values of inputs.

    Args:
        topology: the template, which tells the types.
        given: the values by name, or where they are.

    Returns:
        The values by the inputs' names.

    Raises:
        BadInput: there is no such input, or the value does not fit it.
    """
    if not isinstance(given, Inputs):
        return values.from_mapping(topology, given or {}, lambda _name: "inputs")
    found = values.from_environment(topology, given.environment)
    if given.file:
        found |= values.from_file(topology, given.file)
    return found | values.from_options(topology, given.options)


def problems_of(error: BadInput) -> list[Problem]:
    """Take complaints apart, for editors.

    Args:
        error: what was raised.

    Returns:
        Each complaint with its place, which for a value is its input.
    """
    if isinstance(error, BadTemplate):
        return error.problems
    parts = (line.partition(": ") for line in error.message.splitlines())
    return [Problem(Place(place), text) for place, _colon, text in parts]


def read(template: str | Path, given: Given = None) -> tuple[Library, Topology, dict[str, Any]]:
    """Read a template and the values of its inputs.

    Args:
        template: a file, or the bare name of a template of the collection.
        given: the values by name, or where they are.

    Returns:
        The types and the template, and the values by the inputs' names.

    Raises:
        BadTemplate: everything that is wrong with the template and with the values.
        BadInput: something is wrong with the values only.
    """
    path = located(template)
    try:
        library, topology = templates.read(path)
    except BadTemplate as error:
        wrong = error.problems
        try:
            library, topology = templates.read_inputs(path)
            values.known(topology, given_values(topology, given), Catalogue(library).names("data_types"))
        except BadInput as more:
            wrong = [*wrong, *problems_of(more)]
        raise BadTemplate(wrong) from error
    return library, topology, given_values(topology, given)
