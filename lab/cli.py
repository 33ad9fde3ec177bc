"""Command `lab`: systemd hosts with simulated GPUs on this machine, made and removed in seconds."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from lab import bench as benches
from lab.bench import Bench
from lab.enter import enter
from lab.errors import LabError
from lab.inventory import inventory
from lab.spec import CGROUPS, KINDS, SUITES, HostSpec, parse
from lab.system import require_root


class Commands(click.Group):
    """Turns what the user can mend into one sentence and exit status 1."""

    def invoke(self, context: click.Context) -> Any:
        try:
            return super().invoke(context)
        except LabError as error:
            raise click.ClickException(str(error)) from None


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--bench", default="default", envvar="LAB_BENCH", show_default=True, help="Name of the bench.")
@click.pass_context
def main(context: click.Context, bench: str) -> None:
    """A bench of real systemd hosts on this machine, some with simulated GPUs.

    \b
    lab up                                  one Debian 12 host, node1
    lab up -n 3 --suite trixie              three Debian 13 hosts
    lab up --name gpu1 --gpu a100-80gb:1    one with a simulated A100
    lab ssh gpu1                            log in
    lab down                                remove it all

    State is kept in LAB_STATE_DIR (/var/lib/gpufarm-lab), images in LAB_CACHE_DIR (/var/cache/gpufarm-lab).
    """
    context.obj = Bench(
        bench, benches.state_dir(), benches.cache_dir(), lambda line: click.echo(f"lab: {line}", err=True)
    )


@main.command()
@click.option(
    "-n", "--number", type=click.IntRange(1), help="Number of hosts: node1, node2 ...  [default: 1]"
)
@click.option("--name", "names", multiple=True, help="Name of a host; may be repeated.")
@click.option(
    "--suite", type=click.Choice(SUITES), default="bookworm", show_default=True, help="Debian release."
)
@click.option(
    "--gpu",
    "gpus",
    multiple=True,
    metavar="MODEL:COUNT",
    help="Simulated GPUs of every host; may be repeated.",
)
@click.option(
    "--cgroup", type=click.Choice(CGROUPS), default="auto", show_default=True, help="Control group version."
)
@click.option(
    "--kind",
    type=click.Choice(KINDS),
    default="nspawn",
    show_default=True,
    help="Container or virtual machine.",
)
@click.option("--iam", is_flag=True, help="Add host iam with an OpenID provider.")
@click.option(
    "--spec", type=click.File(), metavar="FILE", help="Hosts in YAML or JSON; - reads standard input."
)
@click.pass_obj
def up(
    bench: Bench,
    number: int | None,
    names: tuple[str, ...],
    suite: str,
    gpus: tuple[str, ...],
    cgroup: str,
    kind: str,
    iam: bool,
    spec: Any,
) -> None:
    """Bring hosts up; those that run already are left alone."""
    if spec is not None:
        if number or names or gpus or iam:
            raise click.UsageError("--spec stands alone: it says everything about the hosts")
        hosts = parse(spec.read())
    else:
        if number and names:
            raise click.UsageError("give -n or --name, not both")
        wanted = names or tuple(f"node{index}" for index in range(1, (number or (0 if iam else 1)) + 1))
        hosts = [HostSpec(name, suite, gpus, cgroup, kind) for name in wanted]
        if iam:
            hosts.append(HostSpec("iam", iam=True))
    started = bench.up(hosts)
    click.echo(
        f"bench {bench.name}: started {', '.join(started)}"
        if started
        else f"bench {bench.name}: nothing to do"
    )


@main.command()
@click.option("--all", "every", is_flag=True, help="All benches of the state folder.")
@click.pass_obj
def down(bench: Bench, every: bool) -> None:
    """Remove hosts, network and state; images stay in the cache."""
    require_root()
    for name in benches.bench_names() if every else [bench.name]:
        Bench(name, bench.state, bench.cache, bench.say).down()
        click.echo(f"bench {name}: down")


@main.command()
@click.option("--json", "as_json", is_flag=True, help="For programs.")
@click.pass_obj
def status(bench: Bench, as_json: bool) -> None:
    """Show the hosts of the bench."""
    require_root()
    found = bench.status()
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    if not found["hosts"]:
        click.echo(f"bench {bench.name} is not up")
        return
    click.echo(f"bench {bench.name}, network {found['network']}")
    for host in found["hosts"]:
        limits = "memory limits enforced" if host["memory_limits"] else "memory limits NOT enforced"
        gpus = ", ".join(host["gpus"]) or "no GPU"
        click.echo(
            f"  {host['name']:16} {host['address']:14} {host['state']:10} {host['suite']:9} {host['kind']:7} "
            f"cgroup {host['cgroup']}, {limits}; {gpus}"
        )
    if found["iam"]:
        click.echo(f"  identity provider {found['iam']['url']}")


@main.command(context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def ssh(bench: Bench, name: str, command: tuple[str, ...]) -> NoReturn:
    """Log in to a host as root, or run a command there: lab ssh NAME -- COMMAND."""
    host = bench.host(name)
    ssh_command = ["ssh", "-F", str(bench.ssh_config), host.name, *command]
    sys.stdout.flush()
    os.execvp(ssh_command[0], ssh_command)  # noqa: S606 - there is no shell to want


@main.command(name="exec", context_settings={"ignore_unknown_options": True})
@click.argument("name")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
@click.pass_obj
def execute(bench: Bench, name: str, command: tuple[str, ...]) -> NoReturn:
    """Run a command in a host from outside, without SSH: all capabilities, no login session."""
    require_root()
    host = bench.host(name)
    if host.spec.kind == "qemu":
        raise LabError(f"host {name} is a virtual machine, which nothing enters from outside: use lab ssh")
    environment = {
        "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": "/root",
        "TERM": os.environ.get("TERM", "dumb"),
    }
    inside = [f"--{space}" for space in ("mount", "uts", "ipc", "net", "pid", "cgroup", "root", "wd")]
    sys.exit(enter(["nsenter", "--target", str(host.leader()), *inside, "--", *command], environment))


@main.command()
@click.argument("name")
@click.pass_obj
def reset(bench: Bench, name: str) -> None:
    """Give a host a fresh disk; name, address and keys stay."""
    bench.reset(name)
    click.echo(f"bench {bench.name}: {name} is fresh")


@main.command(name="inventory")
@click.option(
    "--list", "everything", is_flag=True, help="The whole inventory (the only thing there is to ask for)."
)
@click.option("--host", help="Variables of one host.")
@click.pass_obj
def show_inventory(bench: Bench, everything: bool, host: str | None) -> None:
    """Print the bench as a dynamic inventory of Ansible."""
    require_root()
    data = inventory(bench.status())
    click.echo(json.dumps(data["_meta"]["hostvars"].get(host, {}) if host else data, indent=2))


if __name__ == "__main__":
    main(prog_name=Path(sys.argv[0]).name)
