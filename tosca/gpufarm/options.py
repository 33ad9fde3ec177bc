# SPDX-License-Identifier: GPL-3.0-or-later
"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufarm.api import Deployer

if TYPE_CHECKING:
    from gpufarm.asking import Inputs


class TemplatePath(click.Path):
    """A file, or the bare name of a template of the collection, such as ``ml_infn``."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> Path:
        """Return the file.

        Raises:
            BadInput: it is a bare name, and there is neither a file nor a template of that name.
        """
        from gpufarm import asking

        return asking.located(os.fsdecode(super().convert(value, parameter, context)))


def deployment_names(context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return what a shell offers where a deployment is named."""
    deployer = Deployer(context.find_root().params.get("state_dir"))
    return [name for name in deployer.names() if name.startswith(incomplete)]


def collected(options: tuple[str, ...], file: Path | None) -> Inputs:
    """Say where the values of inputs are; the environment of this process has some too.

    Args:
        options: NAME=VALUE from the command line.
        file: YAML with values.

    Returns:
        The sources.
    """
    from gpufarm.asking import Inputs

    return Inputs(options, file, os.environ)


deployment_argument = click.argument("name", shell_complete=deployment_names)
template_argument = click.argument("template", type=TemplatePath(dir_okay=False, path_type=Path))
pool_option = click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Inventory with your machines; after the first run it is remembered.",
)
forget_option = click.option(
    "--forget",
    multiple=True,
    metavar="MACHINE",
    help="Give a machine up that is gone for good and not in the inventory any more; may be repeated.",
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
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print the answer as JSON, which docs/api.md describes."
)
refresh_option = click.option(
    "--refresh", is_flag=True, help="Ask all machines what they have, also those asked some minutes ago."
)


def requesting(command: Callable[..., None]) -> Callable[..., None]:
    """Add the template and all that says what is asked for to a command.

    Args:
        command: takes the template, and the rest as `request`, arguments of a method of `Deployer`.

    Returns:
        The command with these arguments.
    """

    @functools.wraps(command)
    def run(
        pool: Path | None,
        name: str | None,
        options: tuple[str, ...],
        file: Path | None,
        refresh: bool,
        **others: Any,
    ) -> None:
        inputs = collected(options, file)
        command(request={"pool": pool, "name": name, "inputs": inputs, "refresh": refresh}, **others)

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
