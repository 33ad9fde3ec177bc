# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for a template alone: no machine, no deployment."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gpufarm import answers, show
from gpufarm.api import Deployer
from gpufarm.errors import BadInput
from gpufarm.options import collected, input_option, inputs_option, json_option, template_argument


@click.command()
@template_argument
@input_option
@inputs_option
@json_option
@click.pass_obj
def validate(
    deployer: Deployer, template: Path, options: tuple[str, ...], file: Path | None, as_json: bool
) -> None:
    """Check a template, without any machine.

    Reads TEMPLATE and the types it imports and lists what it asks for, or everything that is wrong with them,
    each with file, line and column. Values of inputs, if there are any, are checked too.

    \b
    Examples:
      gpufarm validate tosca/templates/ml_infn.yaml
      gpufarm validate tosca/templates/ml_infn.yaml --inputs my.yaml
      gpufarm validate tosca/templates/ml_infn.yaml --json
    """
    try:
        found = deployer.validate(template, collected(options, file))
    except BadInput as error:
        if as_json:
            show.as_json(_invalid(template, error))
        raise
    if as_json:
        show.as_json(found)
        return
    click.echo(f"{template}: valid, {len(found.nodes)} nodes: {', '.join(found.nodes)}")
    show.table(
        ("input", "type", "default", "description"),
        (
            (
                entry.name,
                entry.type,
                "(required)" if entry.required else json.dumps(entry.default, default=str),
                entry.description,
            )
            for entry in found.inputs
        ),
    )


def _invalid(template: Path, error: BadInput) -> answers.Validation:
    from gpufarm import asking

    problems = [
        answers.Problem(problem.place.file, problem.place.line, problem.place.column, problem.text)
        for problem in asking.problems_of(error)
    ]
    return answers.Validation(str(template), False, problems)


@click.command()
@template_argument
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File to write.  [default: the template's name with .csar, here]",
)
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="NODE=ADDRESS",
    help="Address of a machine that exists, for orchestrators that choose none, such as xOpera.",
)
@json_option
@click.pass_obj
def package(
    deployer: Deployer, template: Path, output: Path | None, addresses: tuple[str, ...], as_json: bool
) -> None:
    """Pack a template with its types, playbooks and the collection into a CSAR, for another orchestrator.

    \b
    Example:
      gpufarm package tosca/templates/gpu_node.yaml --address server=192.0.2.11
      opera unpackage gpu_node.csar -d gpu_node
      ansible-galaxy collection install gpu_node/collections/*.tar.gz
      cd gpu_node && OPERA_SSH_USER=root opera deploy
    """
    known = {}
    for entry in addresses:
        node, equals, address = entry.partition("=")
        if not equals or not node or not address:
            raise BadInput(f"--address {entry}: write it as NODE=ADDRESS")
        known[node] = address
    made = deployer.package(template, output, known)
    if as_json:
        show.as_json(made)
    else:
        click.echo(f"{made.file}: {made.files} files, {made.bytes:,} bytes")
