# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and options that several commands share, and what stands in them."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufarm.errors import BadInput, BadTemplate
from gpufarm.problems import Place, Problem, near
from gpufarm.state import Store, default_directory

if TYPE_CHECKING:
    from gpufarm.library import Library
    from gpufarm.topology import Topology


class TemplatePath(click.Path):
    """A file, or the bare name of a template of the collection, such as ``ml_infn``."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        """Return the file; a file of that name here goes before a template of the collection.

        Raises:
            BadInput: it is a bare name, and there is neither.
        """
        path = Path(os.fsdecode(super().convert(value, parameter, context)))
        if path.exists() or path.suffix or path.name != str(value):
            return path
        from gpufarm import collection

        known = {file.stem: file for file in (collection.root() / "tosca" / "templates").glob("*.yaml")}
        if path.name not in known:
            raise BadInput(f"there is no file {path}, and no template of that name; {near(path.name, known)}")
        return known[path.name]


def deployment_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return what a shell offers where a deployment is named."""
    given = context.find_root().params.get("state_dir")
    return [name for name in Store(given or default_directory()).names() if name.startswith(incomplete)]


deployment_argument = click.argument("name", shell_complete=deployment_names)
template_argument = click.argument("template", type=TemplatePath(dir_okay=False, path_type=Path))
pool_option = click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Inventory with your machines; after the first run it is remembered.",
)
name_option = click.option("--name", help="Name of the deployment.  [default: the template's name]")
input_option = click.option(
    "--input",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input; lists as YAML: '[a, b]'.",
)
inputs_option = click.option(
    "--inputs",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with values of inputs, also of secret ones. --input wins over it.",
)
json_option = click.option("--json", "as_json", is_flag=True, help="For machines.")
refresh_option = click.option(
    "--refresh", is_flag=True, help="Ask all machines what they have, also those asked some minutes ago."
)


def requesting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the template and all that says what is asked for to a command.

    Args:
        command: takes what was asked for as `request`, a `Request`, beside its own options.

    Returns:
        The command with these arguments instead of `request`.
    """

    @functools.wraps(command)
    def run(
        template: Path,
        pool: Path | None,
        name: str | None,
        options: tuple[str, ...],
        file: Path | None,
        refresh: bool,
        **others: Any,
    ) -> None:
        from gpufarm.prepare import Request

        library, topology, given = read_template(template, options, file)
        request = Request(topology, library, pool, name or topology.name, given, refresh=refresh)
        command(request=request, **others)

    for parameter in (
        refresh_option,
        inputs_option,
        input_option,
        name_option,
        pool_option,
        template_argument,
    ):
        run = parameter(run)
    return run


def given_values(topology: Topology, options: tuple[str, ...], file: Path | None) -> dict[str, Any]:
    """Collect the values of inputs; the command line wins over the file, and that over the environment.

    Args:
        topology: the template, which tells the types.
        options: NAME=VALUE from the command line.
        file: YAML with values.

    Returns:
        The values by the inputs' names.

    Raises:
        BadInput: there is no such input, or the value does not fit it.
    """
    from gpufarm import inputs as values

    given = values.from_environment(topology, os.environ)
    if file:
        given |= values.from_file(topology, file)
    return given | values.from_options(topology, options)


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


def read_template(
    template: Path, options: tuple[str, ...], file: Path | None
) -> tuple[Library, Topology, dict[str, Any]]:
    """Read a template and the values of its inputs.

    Args:
        template: file to read.
        options: NAME=VALUE from the command line.
        file: YAML with values.

    Returns:
        The types and the template, and the values by the inputs' names.

    Raises:
        BadTemplate: everything that is wrong with the template and with the values.
        BadInput: something is wrong with the values only.
    """
    from gpufarm import inputs as values
    from gpufarm import template as templates
    from gpufarm.catalogue import Catalogue

    try:
        library, topology = templates.read(template)
    except BadTemplate as error:
        wrong = error.problems
        try:
            library, topology = templates.read_inputs(template)
            given = given_values(topology, options, file)
            values.known(topology, given, Catalogue(library).names("data_types"))
        except BadInput as more:
            wrong = [*wrong, *problems_of(more)]
        raise BadTemplate(wrong) from error
    return library, topology, given_values(topology, options, file)
