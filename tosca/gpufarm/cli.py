# SPDX-License-Identifier: GPL-3.0-or-later
"""The command `gpufarm`."""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import signal
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from gpufarm import autoscale as autoscaling
from gpufarm import deployment as deployments
from gpufarm import facts, indigo, show
from gpufarm import history as histories
from gpufarm import inputs as values
from gpufarm import package as packages
from gpufarm import template as templates
from gpufarm.catalogue import Catalogue
from gpufarm.deployment import Result
from gpufarm.errors import BadInput, BadTemplate, Drift, GpufarmError, Interrupted
from gpufarm.judge import judge
from gpufarm.library import Library
from gpufarm.prepare import Request
from gpufarm.problems import Place, Problem
from gpufarm.progress import Progress
from gpufarm.prometheus import Prometheus
from gpufarm.state import Deployment, Store, default_directory
from gpufarm.topology import Topology

_EVENTS = "gpufarm.events"


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
@click.option(
    "--vault-password-file",
    "password_file",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="GPUFARM_VAULT_PASSWORD_FILE",
    help="File with a vault password, or program that prints one; encrypts the key of the state.  "
    "[also: GPUFARM_VAULT_PASSWORD_FILE]",
)
@click.option(
    "--events",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File or pipe that gets a line of JSON for everything that happens in a run.",
)
@click.pass_context
def main(context: click.Context, state_dir: Path, password_file: Path | None, events: Path | None) -> None:
    """Set up GPU services from TOSCA templates on machines that you have.

    The machines are those of an Ansible inventory, the pool. For each machine that a template asks for, one
    of the pool is chosen that has what is asked for and that no other deployment holds.

    \b
    Look, then do, then ask where it is:
      gpufarm plan   tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm deploy tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
      gpufarm outputs ml_infn
    change it, look whether it is still as it was made, and who did what:
      gpufarm update  ml_infn --input jupyter_cpu_limit=4.0
      gpufarm diff    ml_infn
      gpufarm history ml_infn
    and take it away:
      gpufarm undeploy ml_infn

    \b
    Exit status:
      0    done
      1    something failed on a machine; the sentence says what and names the log
      2    the template, an input, the inventory or the command line is wrong; nothing was touched
      3    no free machine of the pool has what the template asks for; nothing was touched
      4    another run is changing this deployment
      5    `diff` has found differences; nothing was touched
      130  interrupted; the next run continues
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # to be told to end is as good as Ctrl-C
    context.obj = Store(state_dir.absolute(), password_file and password_file.absolute())
    context.meta[_EVENTS] = events


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


_json = click.option("--json", "as_json", is_flag=True, help="For machines.")
_refresh = click.option(
    "--refresh", is_flag=True, help="Ask all machines what they have, also those asked some minutes ago."
)


def _requesting(command: Callable[..., None]) -> Callable[..., None]:
    """The template and all that says what is asked for; the command gets it as one `Request`."""

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
        library, topology, given = _read(template, options, file)
        request = Request(topology, library, pool, name or topology.name, given, refresh=refresh)
        command(request=request, **others)

    for parameter in (_refresh, _inputs, _input, _name, _pool, _template):
        run = parameter(run)
    return run


def _given(topology: Topology, options: tuple[str, ...], file: Path | None) -> dict[str, Any]:
    """The values of inputs that stand on the command line, in a file and in the environment."""
    given = values.from_environment(topology, os.environ)
    if file:
        given |= values.from_file(topology, file)
    return given | values.from_options(topology, options)


def _problems(error: BadInput) -> list[Problem]:
    """The complaints as they are for editors: with a place, which for a value is its input."""
    if isinstance(error, BadTemplate):
        return error.problems
    parts = (line.partition(": ") for line in error.message.splitlines())
    return [Problem(Place(place), text) for place, _colon, text in parts]


def _read(
    template: Path, options: tuple[str, ...], file: Path | None
) -> tuple[Library, Topology, dict[str, Any]]:
    """Read the template and the values of its inputs; what is wrong with both is told together."""
    try:
        library, topology = templates.read(template)
    except BadTemplate as error:
        wrong = error.problems
        try:
            library, topology = templates.read_inputs(template)
            given = _given(topology, options, file)
            values.known(topology, given, Catalogue(library).names("data_types"))
        except BadInput as more:
            wrong = [*wrong, *_problems(more)]
        raise BadTemplate(wrong) from error
    return library, topology, _given(topology, options, file)


def _progress() -> Progress:
    return Progress(click.get_current_context().meta[_EVENTS])


def _run(store: Store, request: Request, what: str, *, everything: bool) -> Result:
    names = [*(f"input {name}" for name in request.given)]
    names += [f"{name}={number}" for name, number in request.instances.items()]
    with _progress() as progress:
        progress.wait("looking at the pool")
        return deployments.deploy(
            store, request, progress, what=f"{what} {', '.join(names)}".strip(), everything=everything
        )


@main.command()
@_template
@_input
@_inputs
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
    try:
        library, topology, given = _read(template, options, file)
        found = values.known(topology, given, Catalogue(library).names("data_types"))
        # tosca-parser judges what an input feeds only with its value
        judge(library, {name: value for name, value in found.items() if not topology.inputs[name].secret})
    except BadInput as error:
        if as_json:
            problems = [{**vars(problem.place), "text": problem.text} for problem in _problems(error)]
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


@main.command()
@_template
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
    known = {}
    for entry in addresses:
        node, equals, address = entry.partition("=")
        if not equals or not node or not address:
            raise BadInput(f"--address {entry}: write it as NODE=ADDRESS")
        known[node] = address
    archive = output or Path(f"{template.stem}.csar")
    names = packages.pack(template, archive, known)
    click.echo(f"{archive}: {len(names)} files, {archive.stat().st_size:,} bytes")


@main.command()
@_requesting
@_json
@click.pass_obj
def plan(store: Store, request: Request, as_json: bool) -> None:
    """Tell which machines would be taken and what would be done, in which order, and why.

    Looks at the machines of the pool and touches nothing. Steps in the same wave do not wait for each other.
    A step is marked as disruptive if it is new or changed and may interrupt those who use the machine.

    \b
    Example:
      gpufarm plan tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
    """
    with _progress() as progress:
        progress.wait("looking at the pool")
        prepared, seen = deployments.choose(store, request, store.load(request.name))
    with contextlib.suppress(GpufarmError):  # then they are simply asked again
        facts.remember(store, seen)
    if as_json:
        show.plan_as_json(request.name, prepared)
    else:
        show.plan(prepared)


@main.command()
@_requesting
@click.option(
    "--check", is_flag=True, help="Only say what would change on the machines; differences go to the log."
)
@click.pass_obj
def deploy(store: Store, request: Request, check: bool) -> None:
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
    if check:
        with _progress() as progress:
            progress.wait("looking at the pool")
            found = deployments.check(store, request, progress)
        click.echo(f"nothing was changed; the differences are in {found.log}", err=True)
    else:
        show.outputs(_run(store, request, "deploy", everything=True).deployment.outputs)


@main.command()
@click.argument("name")
@_pool
@_input
@_inputs
@click.pass_obj
def update(store: Store, name: str, pool: Path | None, options: tuple[str, ...], file: Path | None) -> None:
    """Change inputs of a deployment, and do only what that makes necessary.

    Steps run whose variables or playbooks have changed, and those that need them. With nothing changed it is
    done at once. What was changed on the machines by hand stays: `gpufarm diff` shows it, `gpufarm deploy`
    repairs it.

    \b
    Example:
      gpufarm update notebooks --input jupyter_cpu_limit=4.0
    """
    request = Request.again(_existing(store, name), pool)
    request = replace(request, given=_given(request.template, options, file))
    _report(_run(store, request, "update", everything=False))


@main.command()
@click.argument("name")
@_pool
@click.pass_obj
def resume(store: Store, name: str, pool: Path | None) -> None:
    """Continue a run that failed or was interrupted; only what did not finish is done again.

    \b
    Example:
      gpufarm resume notebooks
    """
    found = _existing(store, name)
    last = next(reversed(histories.read(store, name)), None)
    if last and last.what == "undeploy":
        _undeploy(store, name, pool)
    else:
        _report(_run(store, Request.again(found, pool), "resume", everything=False))


@main.command()
@click.argument("name")
@click.argument("target", metavar="NODE=N")
@_pool
@click.pass_obj
def scale(store: Store, name: str, target: str, pool: Path | None) -> None:
    """Give a machine of a deployment more instances or fewer, with all that stands on it.

    The template says how many it may have (capability scalable: min_instances, max_instances). More: machines
    are chosen and set up, then what refers to them is told. Fewer: first what refers to the last instances is
    told, then they are taken away, and their machines are free.

    \b
    Example:
      gpufarm scale farm worker=4
    """
    node, equals, number = target.partition("=")
    if not equals or not number.isdecimal():
        raise BadInput(f"{target}: write it as NODE=N, with a number of instances")
    request = replace(Request.again(_existing(store, name), pool), instances={node: int(number)})
    _report(_run(store, request, "scale", everything=False))


@main.command()
@click.argument("name")
@_pool
@click.option(
    "--prometheus",
    "url",
    metavar="URL",
    envvar="GPUFARM_PROMETHEUS_URL",
    required=True,
    help="Server that has the metrics.  [also: GPUFARM_PROMETHEUS_URL]",
)
@click.option(
    "--ca-file",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    envvar="GPUFARM_PROMETHEUS_CA_FILE",
    help="Certificate (PEM) that signs the server's.  [also: GPUFARM_PROMETHEUS_CA_FILE]",
)
@click.option(
    "--certificate",
    nargs=2,
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE KEY",
    help="Certificate (PEM) that the server knows, and its key; the role monitoring wants one.",
)
@click.option(
    "--server-name",
    metavar="NAME",
    help="Name in the server's certificate if not the URL's; gpufarm-monitoring for the role monitoring.",
)
@click.option("--apply", "act", is_flag=True, help="Scale, if that is what comes out.")
@_json
@click.pass_obj
def autoscale(
    store: Store,
    name: str,
    pool: Path | None,
    url: str,
    ca_file: Path | None,
    certificate: tuple[Path, Path] | None,
    server_name: str | None,
    act: bool,
    as_json: bool,
) -> None:
    """Tell how many instances the scaling policies of a deployment want now, and why.

    A policy of type tosca.policies.gpufarm.Scaling names the metrics, as queries to Prometheus, and who
    decides. Touches nothing without --apply; a timer that calls it with --apply makes the deployment follow
    its load.

    \b
    Example:
      gpufarm autoscale farm --prometheus https://monitor.example.org:9090 --apply
    """
    found = _existing(store, name)
    request = Request.again(found, pool)
    proposals = autoscaling.propose(
        request,
        found,
        Prometheus(url, ca_file, certificate, server_name).ask,
        histories.read(store, name),
        datetime.datetime.now(datetime.UTC),
    )
    if as_json:
        show.as_json([asdict(proposal) for proposal in proposals])
    else:
        show.table(
            ("machine", "instances", "wanted", "reason"),
            (
                (entry.node, str(entry.instances), str(entry.decision.instances), entry.decision.reason)
                for entry in proposals
            ),
        )
    wanted = {
        entry.node: entry.decision.instances
        for entry in proposals
        if entry.decision.instances != entry.instances
    }
    if act and wanted:
        _report(_run(store, replace(request, instances=wanted), "autoscale", everything=False))


@main.command()
@click.argument("name")
@_pool
@_json
@click.pass_obj
def diff(store: Store, name: str, pool: Path | None, as_json: bool) -> None:
    """Tell what has changed on the machines since, by running the same operations in check mode.

    Touches nothing. Exit status 0: all is as it was made; 5: there are differences, with details in the log.

    \b
    Example:
      gpufarm diff notebooks
    """
    request = Request.again(_existing(store, name), pool)
    with _progress() as progress:
        progress.wait("looking at the machines")
        found = deployments.check(store, request, progress)
    differing = {step: done.tasks for step, done in found.applied.items() if done.tasks}
    if as_json:
        show.as_json({"name": name, "changed": differing})
    else:
        show.drift(differing)
    if differing:
        raise Drift(
            f"{name} differs from what was deployed ({', '.join(differing)}); "
            f"repair it with: gpufarm deploy {found.deployment.template} --name {name} (log: {found.log})"
        )


@main.command()
@click.argument("name")
@_json
@click.pass_obj
def history(store: Store, name: str, as_json: bool) -> None:
    """List the runs of a deployment: when, who, what and how it ended. It stays when the deployment is gone.

    \b
    Example:
      gpufarm history notebooks
    """
    found = histories.read(store, name)
    if not found:
        _existing(store, name)
    if as_json:
        show.as_json([vars(entry) for entry in found])
    else:
        show.history(found)


@main.command()
@click.argument("name", required=False)
@_json
@click.pass_obj
def status(store: Store, name: str | None, as_json: bool) -> None:
    """List the deployments, or tell about one.

    \b
    Examples:
      gpufarm status
      gpufarm status notebooks --json
    """
    found = [_existing(store, entry, secrets=False) for entry in ([name] if name else store.names())]
    for entry in found:
        if entry.status in ("deploying", "undeploying") and not store.is_locked(entry.name):
            entry.status = "interrupted"
    if as_json:
        described = [
            {key: value for key, value in vars(entry).items() if key not in ("secrets", "steps")}
            | {"steps": show.done(entry)}
            for entry in found
        ]
        show.as_json(described[0] if name else described)
    elif name:
        show.status(found[0])
    else:
        show.table(
            ("name", "status", "machines", "updated"),
            ((entry.name, entry.status, show.machines(entry), entry.updated) for entry in found),
        )


@main.command()
@click.argument("name")
@_json
@click.option(
    "--indigo", "as_indigo", is_flag=True, help="JSON with the names of INDIGO's templates, such as node_ip."
)
@click.pass_obj
def outputs(store: Store, name: str, as_json: bool, as_indigo: bool) -> None:
    """Print the outputs of a deployment, such as the URL of the service.

    \b
    Examples:
      gpufarm outputs notebooks --json
      gpufarm outputs notebooks --indigo
    """
    found = _existing(store, name, secrets=False)
    if found.status != "deployed":
        raise GpufarmError(f"deployment {name} is not deployed; see: gpufarm status {name}")
    if as_indigo:
        show.as_json(indigo.outputs(found, Request.again(found).template))
    elif as_json:
        show.as_json(found.outputs)
    else:
        show.outputs(found.outputs)


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
    _undeploy(store, name, pool)


def _undeploy(store: Store, name: str, pool: Path | None) -> None:
    with _progress() as progress:
        deployments.undeploy(store, name, pool, progress)
    click.echo(f"{name}: undeployed", err=True)


def _existing(store: Store, name: str, *, secrets: bool = True) -> Deployment:
    found = store.load(name, secrets=secrets)
    if found is None:
        known = ", ".join(store.names())
        raise BadInput(
            f"there is no deployment {name}; {f'there are: {known}' if known else 'there is none at all'}"
        )
    return found


def _report(result: Result) -> None:
    if result.log is None:
        click.echo(f"{result.deployment.name}: nothing to do", err=True)
    show.outputs(result.deployment.outputs)
