# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `gpufarm`."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from gpufarm import deployment as deployments
from gpufarm import inputs as values
from gpufarm import template as templates
from gpufarm.deployment import Request
from gpufarm.errors import BadInput, BadTemplate, GpufarmError, Interrupted
from gpufarm.judge import judge
from gpufarm.progress import Progress
from gpufarm.state import Deployment, Store, default_directory


class _Command(click.Group):
    """A group whose failures are one sentence and an exit status, never a traceback."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted") from error
        except BrokenPipeError:
            raise
        except OSError as error:
            raise GpufarmError(f"{error.filename or 'the system'}: {error.strerror or error}") from error


@click.group(cls=_Command, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(package_name="gpufarm")
@click.option(
    "--state-dir",
    type=click.Path(file_okay=False, path_type=Path),
    default=default_directory,
    help="Where deployments are remembered.  [default: GPUFARM_STATE_DIR or ~/.local/state/gpufarm]",
)
@click.pass_context
def main(context: click.Context, state_dir: Path) -> None:
    """Set up GPU services from TOSCA templates on machines that you have.

    The machines are those of an Ansible inventory, the pool. For each machine that a template asks for, one
    of the pool is chosen that has what is asked for and that no other deployment holds.

    \b
    Look, then do, then ask where it is:
      gpufarm plan   tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm deploy tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm outputs ml_infn
    and take it away:
      gpufarm undeploy ml_infn

    \b
    Exit status:
      0    done
      1    something failed on a machine; the sentence says what and names the log
      2    the template, an input, the inventory or the command line is wrong; nothing was touched
      3    no free machine of the pool has what the template asks for; nothing was touched
      4    another run is changing this deployment
      130  interrupted; the next run continues
    """
    context.obj = Store(state_dir.absolute())


_template = click.argument("template", type=click.Path(dir_okay=False, path_type=Path))
_pool = click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Inventory with your machines; after the first run it is remembered.",
)
_name = click.option("--name", help="Name of the deployment.  [default: the template's name]")
_input = click.option(
    "--input",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="Value of an input; lists as YAML: '[a, b]'.",
)
_inputs = click.option(
    "--inputs",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="YAML file with values of inputs, also of secret ones. --input wins over it.",
)


def _request(
    template: Path, pool: Path | None, name: str | None, options: tuple[str, ...], file: Path | None
) -> Request:
    library, topology = templates.read(template)
    given = values.from_environment(topology, os.environ)
    if file:
        given |= values.from_file(topology, file)
    given |= values.from_options(topology, options)
    return Request(topology, library, pool, name or topology.name, given)


@main.command()
@_template
@click.option(
    "--json", "as_json", is_flag=True, help="For machines: every problem with file, line and column."
)
def validate(template: Path, as_json: bool) -> None:
    """Check a template, without any machine.

    Reads TEMPLATE and the types it imports and lists what it asks for, or everything that is wrong with them,
    each with file, line and column.

    \b
    Examples:
      gpufarm validate tosca/templates/ml_infn.yaml
      gpufarm validate tosca/templates/ml_infn.yaml --json
    """
    try:
        library, topology = templates.read(template)
        judge(library)
    except BadTemplate as error:
        if as_json:
            problems = [{**vars(problem.place), "text": problem.text} for problem in error.problems]
            click.echo(json.dumps({"valid": False, "problems": problems}, indent=2))
        raise
    if as_json:
        click.echo(json.dumps({"valid": True, "problems": []}, indent=2))
        return
    click.echo(f"{template}: valid, {len(topology.nodes)} nodes: {', '.join(topology.nodes)}")
    table = Table(box=None, pad_edge=False)
    for column in ("input", "type", "default", "description"):
        table.add_column(column, overflow="fold")
    for entry in topology.inputs.values():
        default = "(required)" if entry.required else json.dumps(entry.default, default=str)
        table.add_row(entry.name, entry.kind, default, entry.description)
    _show(table)


@main.command()
@_template
@_pool
@_name
@_input
@_inputs
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_obj
def plan(
    store: Store,
    template: Path,
    pool: Path | None,
    name: str | None,
    options: tuple[str, ...],
    file: Path | None,
    as_json: bool,
) -> None:
    """Tell which machines would be taken and what would be done, in order.

    Looks at the machines of the pool and touches nothing.

    \b
    Example:
      gpufarm plan tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
    """
    request = _request(template, pool, name, options, file)
    with Progress() as progress:
        progress.wait("looking at the pool")
        found = deployments.survey(request, store.load(request.name))
        prepared = deployments.choose(found, store.held(request.name))
    if as_json:
        steps = [
            {"step": step.name, "host": step.host, "playbook": str(step.playbook), "variables": step.public()}
            for step in prepared.steps
        ]
        machines = {
            node: {"host": machine.host, "address": machine.address}
            for node, machine in prepared.machines.items()
        }
        click.echo(
            json.dumps({"name": request.name, "machines": machines, "steps": steps}, indent=2, default=str)
        )
        return
    for node, machine in prepared.machines.items():
        gpus = ", ".join(gpu.model or "GPU of unknown model" for gpu in machine.gpus) or "no GPU"
        click.echo(
            f"{node}: {machine.host} ({machine.address}): {machine.cpus} CPUs, "
            f"{machine.memory / 10**9:.1f} GB memory, {machine.distribution} {machine.version}, {gpus}"
        )
    for number, step in enumerate(prepared.steps, start=1):
        click.echo(f"{number}. {step.name} on {step.host}")
        for key, value in step.public().items():
            click.echo(f"     {key}: {json.dumps(value, default=str)}")


@main.command()
@_template
@_pool
@_name
@_input
@_inputs
@click.option(
    "--check", is_flag=True, help="Only say what would change on the machines; differences go to the log."
)
@click.pass_obj
def deploy(
    store: Store,
    template: Path,
    pool: Path | None,
    name: str | None,
    options: tuple[str, ...],
    file: Path | None,
    check: bool,
) -> None:
    """Set up what a template describes, or bring it in line again.

    Chooses machines, runs the operations of the nodes in the order of their requirements, and prints the
    outputs. Inputs given earlier are kept. A run that was interrupted or failed is continued by the next one.

    \b
    Examples:
      gpufarm deploy tosca/templates/ml_infn.yaml --pool inventories/mysite --name notebooks \\
          --input iam_url=https://iam.example.org/ --input gpu_partition_flavor="7x 1g.10gb MIG GPUs"
      gpufarm deploy tosca/templates/ml_infn.yaml --name notebooks --input jupyter_cpu_limit=4.0
      GPUFARM_INPUT_IAM_CLIENT_SECRET=... gpufarm deploy ...
    """
    request = _request(template, pool, name, options, file)
    with Progress() as progress:
        progress.wait("looking at the pool")
        done = deployments.deploy(store, request, progress, check=check)
    if check:
        click.echo(f"nothing was changed; the differences are in {done.log}", err=True)
    else:
        _print_outputs(done.outputs)


@main.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_obj
def status(store: Store, name: str | None, as_json: bool) -> None:
    """List the deployments, or tell about one.

    \b
    Examples:
      gpufarm status
      gpufarm status notebooks --json
    """
    found = [_existing(store, entry) for entry in ([name] if name else store.names())]
    for entry in found:
        if entry.status in ("deploying", "undeploying") and not store.is_locked(entry.name):
            entry.status = "interrupted"
    if as_json:
        described = [
            {key: value for key, value in vars(entry).items() if key not in ("secrets", "steps")}
            | {"steps": _done(entry)}
            for entry in found
        ]
        click.echo(json.dumps(described[0] if name else described, indent=2))
        return
    if not name:
        table = Table(box=None, pad_edge=False)
        for column in ("name", "status", "machines", "updated"):
            table.add_column(column, overflow="fold")
        for entry in found:
            table.add_row(entry.name, entry.status, _machines(entry), entry.updated)
        _show(table)
        return
    (entry,) = found
    click.echo(f"{entry.name}: {entry.status} since {entry.updated}")
    click.echo(f"template: {entry.template}\npool: {entry.pool}\nmachines: {_machines(entry)}")
    for key, value in entry.inputs.items():
        click.echo(f"input {key}: {json.dumps(value, default=str)}")
    click.echo(f"steps done: {', '.join(_done(entry)) or 'none'}")
    begun = [step for step in entry.steps if step not in _done(entry)]
    if begun:
        click.echo(f"steps begun: {', '.join(begun)}")
    if entry.failure:
        click.echo(f"failure: {entry.failure}")
    if entry.log:
        click.echo(f"log: {entry.log}")


@main.command()
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="For machines.")
@click.pass_obj
def outputs(store: Store, name: str, as_json: bool) -> None:
    """Print the outputs of a deployment, such as the URL of the service.

    \b
    Example:
      gpufarm outputs notebooks --json
    """
    found = _existing(store, name)
    if found.status != "deployed":
        raise GpufarmError(f"deployment {name} is not deployed; see: gpufarm status {name}")
    if as_json:
        click.echo(json.dumps(found.outputs, indent=2))
    else:
        _print_outputs(found.outputs)


@main.command()
@click.argument("name")
@_pool
@click.pass_obj
def undeploy(store: Store, name: str, pool: Path | None) -> None:
    """Take away what a deployment has set up, and free its machines.

    \b
    Example:
      gpufarm undeploy notebooks
    """
    with Progress() as progress:
        deployments.undeploy(store, name, pool, progress)
    click.echo(f"{name}: undeployed", err=True)


def _existing(store: Store, name: str) -> Deployment:
    found = store.load(name)
    if found is None:
        near = ", ".join(store.names())
        raise BadInput(
            f"there is no deployment {name}; {f'there are: {near}' if near else 'there is none at all'}"
        )
    return found


def _done(entry: Deployment) -> list[str]:
    return [name for name, step in entry.steps.items() if step["digest"]]


def _machines(entry: Deployment) -> str:
    return ", ".join(f"{node}: {machine['host']}" for node, machine in entry.machines.items()) or "none"


def _show(table: Table) -> None:
    """Print a table; its width follows the terminal, and does not wrap where there is none."""
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=200)
    console.print(table)


def _print_outputs(found: dict[str, Any]) -> None:
    for name, value in found.items():
        if isinstance(value, list):
            click.echo(f"{name}:")
            for item in value:
                click.echo(f"  - {item}")
        else:
            text = value if isinstance(value, str) else json.dumps(value)
            click.echo(f"{name}: {text}")
