# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for deployments: what would be done, what is done, what was done.

Commands import what they need when they run, so that `--help`, `list` and completion in shells are fast.
"""

from __future__ import annotations

import contextlib
import datetime
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufarm import show
from gpufarm.errors import BadInput, Drift, GpufarmError
from gpufarm.options import (
    deployment_argument,
    deployment_names,
    given_values,
    input_option,
    inputs_option,
    json_option,
    pool_option,
    requesting,
)
from gpufarm.records import Record, sound
from gpufarm.state import Deployment, Store

if TYPE_CHECKING:
    from gpufarm.deployment import Result
    from gpufarm.prepare import Removal, Request
    from gpufarm.progress import Progress

# where the context of the command line keeps the file that gets the events
EVENTS = "gpufarm.events"


def _progress() -> Progress:
    from gpufarm.progress import Progress

    return Progress(click.get_current_context().meta[EVENTS])


def _again(store: Store, name: str, pool: Path | None) -> Request:
    """Ask for what a deployment is already."""
    from gpufarm.prepare import Request

    return Request.again(_existing(store, name), pool)


def _run(store: Store, request: Request, what: str, *, everything: bool) -> Result:
    from gpufarm import deployment

    names = [*(f"input {name}" for name in request.given)]
    names += [f"{name}={number}" for name, number in request.instances.items()]
    show.warnings(store.records(), request.name)
    with _progress() as progress:
        progress.wait("looking at the pool")
        return deployment.deploy(
            store, request, progress, what=f"{what} {', '.join(names)}".strip(), everything=everything
        )


@click.command()
@requesting
@json_option
@click.pass_obj
def plan(store: Store, request: Request, as_json: bool) -> None:
    """Tell which machines would be taken and what would be done, in which order, and why.

    Looks at the machines of the pool and touches nothing. Steps in the same wave do not wait for each other.
    A step is marked as disruptive if it is new or changed and may interrupt those who use the machine.

    \b
    Example:
      gpufarm plan tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
    """
    from gpufarm import deployment, facts

    show.warnings(store.records(), request.name)
    with _progress() as progress:
        progress.wait("looking at the pool")
        prepared, seen = deployment.choose(store, request, store.load(request.name))
    with contextlib.suppress(GpufarmError):  # then they are simply asked again
        facts.remember(store, seen)
    if as_json:
        show.plan_as_json(request.name, prepared)
    else:
        show.plan(prepared)


@click.command()
@requesting
@click.option("--description", help="Purpose of the deployment.  [default: the template's description]")
@click.option("--group", help="The people that it is for, for those who look at the list.")
@click.option(
    "--check", is_flag=True, help="Only say what would change on the machines; differences go to the log."
)
@click.pass_obj
def deploy(store: Store, request: Request, description: str | None, group: str | None, check: bool) -> None:
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
        from gpufarm import deployment

        show.warnings(store.records(), request.name)
        with _progress() as progress:
            progress.wait("looking at the pool")
            found = deployment.check(store, request, progress)
        click.echo(f"nothing was changed; the differences are in {found.log}", err=True)
    else:
        request = replace(request, description=description, group=group)
        show.outputs(_run(store, request, "deploy", everything=True).deployment.outputs)


@click.command()
@deployment_argument
@pool_option
@input_option
@inputs_option
@click.pass_obj
def update(store: Store, name: str, pool: Path | None, options: tuple[str, ...], file: Path | None) -> None:
    """Change inputs of a deployment, and do only what that makes necessary.

    Steps run whose variables or playbooks have changed, and those that need them. With nothing changed it is
    done at once. Manual changes on the machines stay: `gpufarm diff` shows them, `gpufarm deploy`
    reverts them.

    \b
    Example:
      gpufarm update notebooks --input jupyter_cpu_limit=4.0
    """
    request = _again(store, name, pool)
    request = replace(request, given=given_values(request.template, options, file))
    _report(_run(store, request, "update", everything=False))


@click.command()
@deployment_argument
@pool_option
@click.pass_obj
def resume(store: Store, name: str, pool: Path | None) -> None:
    """Continue a run that failed or was interrupted; only what did not finish is done again.

    \b
    Example:
      gpufarm resume notebooks
    """
    from gpufarm import history as histories

    _existing(store, name)
    last = next(reversed(histories.read(store, name)), None)
    if last and last.what == "undeploy":
        _undeploy(store, name, pool)
    else:
        _report(_run(store, _again(store, name, pool), "resume", everything=False))


@click.command()
@deployment_argument
@click.argument("target", metavar="NODE=N")
@pool_option
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
    request = replace(_again(store, name, pool), instances={node: int(number)})
    _report(_run(store, request, "scale", everything=False))


@click.command()
@deployment_argument
@pool_option
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
@json_option
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
    from gpufarm import autoscale as autoscaling
    from gpufarm import history as histories
    from gpufarm.prometheus import Prometheus

    request = _again(store, name, pool)
    proposals = autoscaling.propose(
        request,
        _existing(store, name),
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


@click.command()
@deployment_argument
@pool_option
@json_option
@click.pass_obj
def diff(store: Store, name: str, pool: Path | None, as_json: bool) -> None:
    """Tell what has changed on the machines since, by running the same operations in check mode.

    Touches nothing. Exit status 0: all is as it was made; 5: there are differences, with details in the log.

    \b
    Example:
      gpufarm diff notebooks
    """
    from gpufarm import deployment

    request = _again(store, name, pool)
    with _progress() as progress:
        progress.wait("looking at the machines")
        found = deployment.check(store, request, progress)
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


@click.command()
@deployment_argument
@json_option
@click.pass_obj
def history(store: Store, name: str, as_json: bool) -> None:
    """List the runs of a deployment: when, who, what and how it ended. It stays when the deployment is gone.

    \b
    Example:
      gpufarm history notebooks
    """
    from gpufarm import history as histories

    found = histories.read(store, name)
    if not found:
        _existing(store, name)
    if as_json:
        show.as_json([vars(entry) for entry in found])
    else:
        show.history(found)


@click.command()
@click.argument("name", required=False, shell_complete=deployment_names)
@json_option
@click.pass_obj
def status(store: Store, name: str | None, as_json: bool) -> None:
    """List the deployments, or tell about one.

    \b
    Examples:
      gpufarm status
      gpufarm status notebooks --json
    """
    if name:
        found = _current(store, sound(_existing(store, name, secrets=False), None))
        assert found.deployment
        if as_json:
            show.as_json({**show.described(found), "template_text": found.deployment.template_text})
        else:
            show.status(found.deployment)
        return
    records = [_current(store, record) for record in store.records()]
    if as_json:
        show.as_json([show.described(record) for record in records])
    else:
        show.deployments(records)


def _current(store: Store, record: Record) -> Record:
    """Say of a run that was killed that it was interrupted."""
    found = record.deployment
    if found and found.status in ("deploying", "undeploying") and not store.is_locked(found.name):
        return replace(record, deployment=replace(found, status="interrupted"))
    return record


@click.command()
@deployment_argument
@json_option
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
        from gpufarm import indigo
        from gpufarm.prepare import Request

        show.as_json(indigo.outputs(found, Request.again(found).template))
    elif as_json:
        show.as_json(found.outputs)
    else:
        show.outputs(found.outputs)


@click.command()
@deployment_argument
@pool_option
@click.option("--yes", "agreed", is_flag=True, help="Do not ask; for programs.")
@click.pass_obj
def undeploy(store: Store, name: str, pool: Path | None, agreed: bool) -> None:
    """Take away what a deployment has set up, and free its machines.

    Shows what will go and asks. Files and settings that the deployment did not change stay.

    \b
    Examples:
      gpufarm undeploy notebooks
      gpufarm undeploy notebooks --yes
    """
    from gpufarm import deployment

    found = deployment.removal(store, name, pool)
    show.removal(name, found)
    if not agreed:
        _ask(name)
    _undeploy(store, name, pool, found)


def _ask(name: str) -> None:
    """End the command unless a person agrees."""
    try:
        if click.confirm(f"Undeploy {name}?", err=True):
            return
    except click.Abort as error:
        if not sys.stdin.isatty():
            raise BadInput(f"{name}: nothing was removed, as nobody is there to ask: add --yes") from error
    raise GpufarmError(f"{name}: nothing was removed")


def _undeploy(store: Store, name: str, pool: Path | None, agreed: Removal | None = None) -> None:
    from gpufarm import deployment

    with _progress() as progress:
        deployment.undeploy(store, name, pool, progress, agreed)
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
