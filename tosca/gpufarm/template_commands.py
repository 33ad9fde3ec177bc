# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for a template alone: no machine, no deployment."""

from __future__ import annotations

import json
from pathlib import Path

import click

from gpufarm import show
from gpufarm.errors import BadInput
from gpufarm.options import input_option, inputs_option, problems_of, read_template, template_argument


@click.command()
@template_argument
@input_option
@inputs_option
@click.option("--json", "as_json", is_flag=True, help="For machines: every problem with file, line, column.")
def validate(template: Path, options: tuple[str, ...], file: Path | None, as_json: bool) -> None:
    """Check a template, without any machine.

    Reads TEMPLATE and the types it imports and lists what it asks for, or everything that is wrong with them,
    each with file, line and column. Values of inputs, if there are any, are checked too.

    \b
    Examples:
      gpufarm validate tosca/templates/ml_infn.yaml
      gpufarm validate tosca/templates/ml_infn.yaml --inputs my.yaml
      gpufarm validate tosca/templates/ml_infn.yaml --json
    """
    from gpufarm import evaluated
    from gpufarm import inputs as values
    from gpufarm.catalogue import Catalogue
    from gpufarm.conformance import check_template
    from gpufarm.functions import Scope

    try:
        library, topology, given = read_template(template, options, file)
        found = values.known(topology, given, Catalogue(library).names("data_types"))
        # tosca-parser checks what an input feeds only with its value
        public = {name: value for name, value in found.items() if not topology.inputs[name].secret}
        check_template(library, public)
        evaluated.examine(Scope(topology, found), library)
    except BadInput as error:
        if as_json:
            problems = [{**vars(problem.place), "text": problem.text} for problem in problems_of(error)]
            show.as_json({"valid": False, "problems": problems})
        raise
    if as_json:
        show.as_json({"valid": True, "problems": []})
        return
    click.echo(f"{template}: valid, {len(topology.nodes)} nodes: {', '.join(topology.nodes)}")
    show.table(
        ("input", "type", "default", "description"),
        (
            (
                entry.name,
                entry.kind,
                "(required)" if entry.required else json.dumps(entry.default, default=str),
                entry.description,
            )
            for entry in topology.inputs.values()
        ),
    )


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
def package(template: Path, output: Path | None, addresses: tuple[str, ...]) -> None:
    """Pack a template with its types, playbooks and the collection into a CSAR, for another orchestrator.

    \b
    Example:
      gpufarm package tosca/templates/gpu_node.yaml --address server=192.0.2.11
      opera unpackage gpu_node.csar -d gpu_node
      ansible-galaxy collection install gpu_node/collections/*.tar.gz
      cd gpu_node && OPERA_SSH_USER=root opera deploy
    """
    from gpufarm import package as packages

    known = {}
    for entry in addresses:
        node, equals, address = entry.partition("=")
        if not equals or not node or not address:
            raise BadInput(f"--address {entry}: write it as NODE=ADDRESS")
        known[node] = address
    archive = output or Path(f"{template.stem}.csar")
    names = packages.pack(template, archive, known)
    click.echo(f"{archive}: {len(names)} files, {archive.stat().st_size:,} bytes")
