# SPDX-License-Identifier: GPL-3.0-or-later
"""Commands for deployments: what would be done, what is done, what was done."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufarm import show
from gpufarm.api import Deployer, Removal, Run
from gpufarm.errors import BadInput, Drift, GpufarmError
from gpufarm.options import (
    collected,
    deployment_argument,
    deployment_names,
    forget_option,
    input_option,
    inputs_option,
    json_option,
    pool_option,
    requesting,
)

if TYPE_CHECKING:
    from gpufarm.progress import Progress

# where the context of the command line keeps the file that gets the events
EVENTS = "gpufarm.events"


def _progress(waiting: str = "looking at the pool") -> Progress:
    from gpufarm.progress import Progress

    progress = Progress(click.get_current_context().meta[EVENTS])
    progress.wait(waiting)
    return progress


@click.command()
@requesting
@json_option
@click.pass_obj
def plan(deployer: Deployer, template: Path, request: dict[str, Any], as_json: bool) -> None:
    """Tell which machines would be taken and what would be done, in which order, and why.

    Looks at the machines of the pool and touches nothing. All that cannot work is in one table, with exit
    status 2. Steps in the same wave do not wait for each other.
    A step is marked as disruptive if it is new or changed and may interrupt those who use the machine.

    \b
    Example:
      gpufarm plan tosca/templates/ml_infn.yaml --pool inventories/mysite --input iam_url=https://iam.example.org/
    """
    with _progress():
        found = deployer.plan(template, **request)
    if as_json:
        show.as_json(found)
    else:
        show.plan(found)
    if found.problems:
        raise BadInput(found.problems)


@click.command()
@requesting
@click.option("--description", help="Purpose of the deployment.  [default: the template's description]")
@click.option("--group", help="The people that it is for, for those who look at the list.")
@click.option(
    "--take-over", is_flag=True, help="Replace what was made on the machines for others with other settings."
)
@click.option(
    "--check", is_flag=True, help="Only say what would change on the machines; differences go to the log."
)
@json_option
@click.pass_obj
def deploy(
    deployer: Deployer,
    template: Path,
    request: dict[str, Any],
    description: str | None,
    group: str | None,
    take_over: bool,
    check: bool,
    as_json: bool,
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
    if check and take_over:
        raise BadInput("--check does not know what --take-over would replace; give one of them")
    if check:
        with _progress() as progress:
            found = deployer.check(template, **request, listener=progress)
        if as_json:
            show.as_json(found)
        click.echo(f"nothing was changed; the differences are in {found.log}", err=True)
        return
    with _progress() as progress:
        done = deployer.deploy(
            template,
            **request,
            description=description,
            group=group,
            take_over=take_over,
            listener=progress,
        )
    _report(done, as_json=as_json)
    name = done.deployment.name
    own = done.deployment.pool  # a service tells none, and nothing of its machines
    more = f", or see what was changed by hand with gpufarm diff {name}" if own else ""
    click.echo(
        f"{name}: deployed; next: change it with gpufarm update {name} --input NAME=VALUE{more}", err=True
    )


@click.command()
@deployment_argument
@pool_option
@input_option
@inputs_option
@json_option
@click.pass_obj
def update(
    deployer: Deployer,
    name: str,
    pool: Path | None,
    options: tuple[str, ...],
    file: Path | None,
    as_json: bool,
) -> None:
    """Change inputs of a deployment, and do only what that makes necessary.

    Steps run whose variables or playbooks have changed, and those that need them. With nothing changed it is
    done at once. Manual changes on the machines stay: `gpufarm diff` shows them, `gpufarm deploy`
    reverts them.

    \b
    Example:
      gpufarm update notebooks --input jupyter_cpu_limit=4.0
    """
    with _progress() as progress:
        done = deployer.update(name, inputs=collected(options, file), pool=pool, listener=progress)
    _report(done, as_json=as_json)


@click.command()
@deployment_argument
@pool_option
@json_option
@click.pass_obj
def resume(deployer: Deployer, name: str, pool: Path | None, as_json: bool) -> None:
    """Continue a run that failed or was interrupted; only what did not finish is done again.

    \b
    Example:
      gpufarm resume notebooks
    """
    with _progress() as progress:
        done = deployer.resume(name, pool=pool, listener=progress)
    _report(done, as_json=as_json)


@click.command()
@deployment_argument
@click.argument("target", metavar="NODE=N")
@pool_option
@forget_option
@json_option
@click.pass_obj
def scale(
    deployer: Deployer, name: str, target: str, pool: Path | None, forget: tuple[str, ...], as_json: bool
) -> None:
    """Give a machine of a deployment more instances or fewer, with all that stands on it.

    The template says how many it may have (capability scalable: min_instances, max_instances). More: machines
    are chosen and set up, then what refers to them is told. Fewer: first what refers to the last instances is
    told, then they are taken away, and their machines are free.

    \b
    Examples:
      gpufarm scale farm worker=4
      gpufarm scale farm worker=2 --forget gpu3
    """
    node, equals, number = target.partition("=")
    if not equals or not number.isdecimal():
        raise BadInput(f"{target}: write it as NODE=N, with a number of instances")
    with _progress() as progress:
        done = deployer.scale(name, {node: int(number)}, pool=pool, forget=[*forget], listener=progress)
    _report(done, as_json=as_json)


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
    deployer: Deployer,
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
    from gpufarm.prometheus import Prometheus

    ask = Prometheus(url, ca_file, certificate, server_name).ask
    proposals = deployer.proposals(name, ask, pool=pool)
    if as_json:
        show.as_json(proposals)
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
        with _progress() as progress:
            done = deployer.scale(name, wanted, pool=pool, listener=progress, what="autoscale")
        if not as_json:
            _report(done, as_json=False)


@click.command()
@deployment_argument
@pool_option
@json_option
@click.pass_obj
def diff(deployer: Deployer, name: str, pool: Path | None, as_json: bool) -> None:
    """Tell what has changed on the machines since, by running the same operations in check mode.

    Touches nothing. A table tells what was made on each machine, for whom, and what differs since.
    Exit status 0: all is as it was made; 5: there are differences, with details in the log.

    \b
    Example:
      gpufarm diff notebooks
    """
    with _progress("looking at the machines") as progress:
        found = deployer.diff(name, pool=pool, listener=progress)
    if as_json:
        show.as_json(found)
    else:
        show.records(found.records)
        show.drift(found.changed)
    if found.changed:
        template = deployer.show(name).template
        raise Drift(
            f"{name} differs from what was deployed ({', '.join(found.changed)}); "
            f"repair it with: gpufarm deploy {template} --name {name} (log: {found.log})"
        )


@click.command()
@deployment_argument
@json_option
@click.pass_obj
def history(deployer: Deployer, name: str, as_json: bool) -> None:
    """List the runs of a deployment: when, who, what and how it ended. It stays when the deployment is gone.

    \b
    Example:
      gpufarm history notebooks
    """
    found = deployer.history(name)
    if as_json:
        show.as_json(found)
    else:
        show.history(found)


@click.command()
@click.argument("name", required=False, shell_complete=deployment_names)
@json_option
@click.pass_obj
def status(deployer: Deployer, name: str | None, as_json: bool) -> None:
    """List the deployments, or tell about one.

    \b
    Examples:
      gpufarm status
      gpufarm status notebooks --json
    """
    found = deployer.show(name) if name else deployer.list()
    if as_json:
        show.as_json(found)
    elif isinstance(found, list):
        show.deployments(found)
    else:
        show.status(found)


@click.command()
@deployment_argument
@json_option
@click.option(
    "--indigo", "as_indigo", is_flag=True, help="JSON with the names of INDIGO's templates, such as node_ip."
)
@click.pass_obj
def outputs(deployer: Deployer, name: str, as_json: bool, as_indigo: bool) -> None:
    """Print the outputs of a deployment, such as the URL of the service.

    \b
    Examples:
      gpufarm outputs notebooks --json
      gpufarm outputs notebooks --indigo
    """
    found = deployer.outputs(name, indigo=as_indigo)
    if as_json or as_indigo:
        show.as_json(found)
    else:
        show.outputs(found)


@click.command()
@click.option(
    "--pool",
    type=click.Path(path_type=Path),
    help="Inventory whose groups jupyterhubs and slurm_controllers count beside the deployments.",
)
@click.option("--since", metavar="DATE", help="Begin of the period.  [default: the first of this month]")
@click.option("--before", metavar="DATE", help="First moment after the period.  [default: now]")
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(["month", "group", "user", "profile", "source", "machine"]),
    default=["month", "group", "user", "profile"],
    show_default=True,
    help="Field of a row; may be repeated.",
)
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that gets usage.csv for spreadsheets and usage.json with a record of each use.",
)
@json_option
@click.pass_obj
def report(deployer: Deployer, /, as_json: bool, **request: Any) -> None:
    """Tell how long users held GPUs, slices, CPUs and memory.

    Adds up the jobs that Slurm has recorded and the slices that notebooks of hubs held, on the machines of
    all deployments. A job or notebook that goes on counts until now. Times are in UTC.

    \b
    Examples:
      gpufarm report
      gpufarm report --since 2026-11-01 --before 2026-12-01 --by group --folder november
      gpufarm report --pool inventories/mysite --by user --by profile --json
    """
    with _progress("reading the hours"):
        found = deployer.hours(**request)
    if as_json:
        show.as_json(found)
    else:
        show.hours(found)
    if found.silent:
        missing = "; ".join(f"{host}: {why}" for host, why in found.silent.items())
        raise GpufarmError(f"the hours of these machines are missing in the report: {missing}")


@click.command()
@click.argument("name", required=False, shell_complete=deployment_names)
@click.option("--pool", type=click.Path(path_type=Path), help="Inventory with the machines.")
@click.option("--group", "groups", multiple=True, help="Group of the inventory; may be repeated.")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that gets uniform.json, and plots of benchmarks.",
)
@json_option
@click.pass_obj
def uniform(
    deployer: Deployer,
    name: str | None,
    pool: Path | None,
    groups: tuple[str, ...],
    folder: Path | None,
    as_json: bool,
) -> None:
    """Compare machines that ought to be equal, and name the odd ones.

    Board, BIOS, processors, memory, kernel, packages, units, mounts, networks, GPUs and what the role
    benchmarks has measured. Of a deployment, the instances of each Compute node are compared; of an
    inventory, the machines of each group. Nothing is changed. Exit status 0: they are alike; 5: they differ.

    \b
    Examples:
      gpufarm uniform farm
      gpufarm uniform --pool inventories/mysite --group slurm_nodes --group lustre_servers --folder today
    """
    with _progress("comparing the machines"):
        if pool and not name:
            found = deployer.uniform_pool(pool, groups=groups, folder=folder)
        elif name and not pool and not groups:
            found = deployer.uniform(name, folder=folder)
        else:
            raise BadInput("name a deployment, or an inventory with --pool, and its groups with --group")
    if as_json:
        show.as_json(found)
    else:
        show.uniformity(found)
    if found.silent:
        missing = "; ".join(f"{host}: {why}" for host, why in found.silent.items())
        raise GpufarmError(f"these machines were not compared: {missing}")
    if found.differences:
        raise Drift("machines that ought to be equal differ")


@click.command()
@deployment_argument
@click.pass_obj
def log(deployer: Deployer, name: str) -> None:
    """Print what Ansible has told in the last run; of a deployment of a service, the progress of all runs.

    \b
    Example:
      gpufarm log notebooks
    """
    click.echo(deployer.log(name), nl=False)


@click.command()
@deployment_argument
@click.option("--task", "task_id", help="Id of the task whose output is printed.  [default: the last one]")
@json_option
@click.pass_obj
def console(deployer: Deployer, name: str, task_id: str | None, as_json: bool) -> None:
    """Tell how the containers and jobs of a deployment went, and print what the last one has printed.

    A task is a start of a container, or a run of a job. Of each, the last 64 KiB of its output are read from
    the machine that runs it.

    \b
    Examples:
      gpufarm console training
      gpufarm console training --task ct:1795826818000:0:ada.train:
    """
    with _progress("reading the output"):
        found = deployer.console(name)
    chosen = [task for task in found.tasks if task_id in (None, task.id)]
    if task_id and not chosen:
        known = ", ".join(task.id for task in found.tasks) or "none"
        raise BadInput(f"there is no task {task_id} in deployment {name}; there are: {known}")
    if as_json:
        show.as_json(found)
    else:
        show.console(found, chosen[0] if chosen else None)
    if found.silent:
        raise GpufarmError("; ".join(found.silent.values()))


@click.command()
@deployment_argument
@pool_option
@forget_option
@click.option("--yes", "agreed", is_flag=True, help="Do not ask; for programs.")
@json_option
@click.pass_obj
def undeploy(
    deployer: Deployer, name: str, pool: Path | None, forget: tuple[str, ...], agreed: bool, as_json: bool
) -> None:
    """Take away what a deployment has set up, and free its machines.

    Shows what will go and asks. Files and settings that the deployment did not change stay.

    \b
    Examples:
      gpufarm undeploy notebooks
      gpufarm undeploy notebooks --yes
      gpufarm undeploy notebooks --forget gpu3
    """
    seen = deployer.removal(name, pool=pool, forget=[*forget])
    show.removal(seen)
    if not agreed:
        _ask(name)
    with _progress("looking at the machines") as progress:
        done = deployer.undeploy(name, pool=pool, forget=[*forget], agreed=seen, listener=progress)
    _report(done, as_json=as_json)


def _ask(name: str) -> None:
    """End the command unless a person agrees."""
    try:
        if click.confirm(f"Undeploy {name}?", err=True):
            return
    except click.Abort as error:
        if not sys.stdin.isatty():
            raise BadInput(f"{name}: nothing was removed, as nobody is there to ask: add --yes") from error
    raise GpufarmError(f"{name}: nothing was removed")


def _report(done: Run | Removal, *, as_json: bool) -> None:
    """Tell how a run ended: the result to standard output, the rest to standard error."""
    if isinstance(done, Removal):
        lost = ", ".join(f"{step.step} on {step.host}" for step in done.given_up)
        click.echo(f"{done.name}: undeployed{f'; given up: {lost}' if lost else ''}", err=True)
    elif not done.log:
        click.echo(f"{done.deployment.name}: nothing to do", err=True)
    if as_json:
        show.as_json(done)
    elif isinstance(done, Run):
        show.outputs(done.deployment.outputs)
