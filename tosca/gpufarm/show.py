# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints plans, deployments and histories, for people and as JSON for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from gpufarm.history import Entry
    from gpufarm.plan import Step
    from gpufarm.prepare import Prepared, Removal
    from gpufarm.records import Record
    from gpufarm.state import Deployment

# Status of a deployment whose state is damaged, lost or of another version.
UNUSABLE = "unusable"
# Of a state, lists do not show these as they are.
_LEFT_OUT = ("secrets", "steps", "template_text")


def as_json(value: Any) -> None:
    """Print JSON.

    Args:
        value: anything; what JSON cannot carry is written as text.
    """
    click.echo(json.dumps(value, indent=2, default=str))


def table(columns: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """Print a table: as wide as the terminal; elsewhere one line for each row, whole and without colours.

    Args:
        columns: their headings.
        rows: the cells of each row.
    """
    listed = [[" ".join(cell.splitlines()) for cell in row] for row in (columns, *rows)]
    if not sys.stdout.isatty():
        widths = [max(map(len, column)) for column in zip(*listed, strict=True)]
        for row in listed:
            cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
            click.echo("  ".join(cells).rstrip())
        return
    from rich.console import Console
    from rich.table import Table

    made = Table(box=None, pad_edge=False)
    for column in listed[0]:
        made.add_column(column, overflow="fold")
    for row in listed[1:]:
        made.add_row(*row)
    Console(highlight=False).print(made, markup=False)


def outputs(found: dict[str, Any]) -> None:
    """Print the outputs of a deployment.

    Args:
        found: by name.
    """
    for name, value in found.items():
        if isinstance(value, list):
            click.echo(f"{name}:")
            for item in value:
                click.echo(f"  - {_text(item)}")
        else:
            click.echo(f"{name}: {_text(value)}")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def done(entry: Deployment) -> list[str]:
    """List the steps of a deployment that are done.

    Args:
        entry: the deployment.

    Returns:
        Their names.
    """
    return [name for name, step in entry.steps.items() if step["digest"]]


def warnings(records: Iterable[Record], name: str) -> None:
    """Print to standard error which damaged states may hold machines.

    Args:
        records: of all deployments.
        name: of the deployment that asks; it is left out.
    """
    for record in records:
        if record.name != name and record.warning():
            click.echo(f"gpufarm: warning: {record.warning()}", err=True)


def machines(entry: Deployment | Record) -> str:
    """Describe where the nodes of a deployment stand.

    Args:
        entry: the deployment.

    Returns:
        Nodes and hosts.
    """
    return ", ".join(f"{node}: {machine['host']}" for node, machine in entry.machines.items()) or "none"


def plan_as_json(name: str, prepared: Prepared) -> None:
    """Print a plan as JSON.

    Args:
        name: of the deployment.
        prepared: the plan.
    """
    from gpufarm import waves

    wave = waves.levels(prepared.steps)
    as_json(
        {
            "name": name,
            "machines": prepared.machines,
            "steps": [
                {
                    "step": step.name,
                    "host": step.host,
                    "wave": wave[step.name],
                    "playbook": str(step.playbook),
                    "reason": prepared.reasons[step.name].text,
                    "changed": list(prepared.reasons[step.name].changed),
                    "needed": prepared.reasons[step.name].needed,
                    "disruption": _disruption(prepared, step),
                    "variables": step.public(),
                }
                for step in prepared.steps
            ],
            "leaving": [{"step": step.name, "host": step.host} for step in prepared.leaving],
        }
    )


def _disruption(prepared: Prepared, step: Step) -> str:
    """Interruptions that a step may cause; a step without changes causes none."""
    return step.disruption if prepared.reasons[step.name].needed else ""


def plan(prepared: Prepared) -> None:
    """Print a plan.

    Args:
        prepared: the plan.
    """
    for node, place in prepared.machines.items():
        machine = prepared.facts[node]
        gpus = ", ".join(gpu.model or "GPU of unknown model" for gpu in machine.gpus) or "no GPU"
        click.echo(
            f"{node}: {place['host']} ({place['address']}): {machine.cpus} CPUs, "
            f"{machine.memory / 10**9:.1f} GB memory, {machine.distribution} {machine.version}, {gpus}"
        )
    from gpufarm import waves

    wave = waves.levels(prepared.steps)
    ordered = sorted(prepared.steps, key=lambda step: wave[step.name])
    current = 0
    for number, step in enumerate(ordered, start=1):
        if wave[step.name] != current:
            current = wave[step.name]
            click.echo(f"wave {current}")
        reason = prepared.reasons[step.name]
        click.echo(f"  {number}. {step.name} on {step.host}: {reason.text}")
        disruption = _disruption(prepared, step)
        if disruption:
            click.echo(f"       disruptive: {disruption}")
        for key, value in step.public().items():
            mark = "*" if key in reason.changed else " "
            click.echo(f"     {mark} {key}: {json.dumps(value, default=str)}")
    for step in prepared.leaving:
        click.echo(f"  then {step.name} on {step.host}: this instance is no longer wanted")


def removal(name: str, found: Removal) -> None:
    """Print what undeploying takes away, where people are asked about it: to standard error.

    Args:
        name: of the deployment.
        found: what would go, and what stays.
    """
    click.echo(f"{name}: undeploying frees its machines", err=True)
    for word, steps, reason in (
        ("remove", found.steps, ""),
        ("keep", found.kept, ": this deployment changed nothing there"),
    ):
        for node, host in dict.fromkeys((step.node, step.host) for step in steps):
            click.echo(f"  {word} {node} on {host}{reason}", err=True)


def drift(differing: dict[str, list[str]]) -> None:
    """Print what a check would change.

    Args:
        differing: names of the tasks that would change something, by step.
    """
    for name, tasks in differing.items():
        click.echo(f"{name}:")
        for task in tasks:
            click.echo(f"  - {task}")


def described(record: Record) -> dict[str, Any]:
    """Describe a deployment for machines.

    Args:
        record: of the deployment.

    Returns:
        The entries for JSON: no secrets, and of the steps only the names of those that are done.
    """
    entry = record.deployment
    if entry is None:
        return {
            "name": record.name,
            "status": UNUSABLE,
            "machines": record.machines,
            "failure": record.problem,
        }
    shown = {key: value for key, value in vars(entry).items() if key not in _LEFT_OUT}
    return shown | {"steps": done(entry)}


def deployments(records: Iterable[Record]) -> None:
    """Print a list of deployments; what is wrong with their files goes to standard error.

    Args:
        records: of all deployments.
    """
    listed = list(records)
    rows = []
    for record in listed:
        entry = record.deployment
        status, updated = (entry.status, entry.updated) if entry else (UNUSABLE, "")
        about = (entry.operator, entry.group, entry.description) if entry else ("", "", "")
        rows.append((record.name, status, machines(entry or record), updated, *about))
    table(("name", "status", "machines", "updated", "operator", "group", "description"), rows)
    for record in listed:
        if record.problem:
            click.echo(f"gpufarm: warning: {record.warning() or record.problem}", err=True)


def status(entry: Deployment) -> None:
    """Print all about a deployment.

    Args:
        entry: the deployment.
    """
    click.echo(f"{entry.name}: {entry.status} since {entry.updated}")
    click.echo(f"id: {entry.id}")
    for key, text in (
        ("operator", entry.operator),
        ("group", entry.group),
        ("description", entry.description),
    ):
        if text:
            click.echo(f"{key}: {text}")
    click.echo(f"template: {entry.template}{_age(entry)}\npool: {entry.pool}\nmachines: {machines(entry)}")
    for key, value in entry.inputs.items():
        click.echo(f"input {key}: {json.dumps(value, default=str)}")
    for key, number in entry.instances.items():
        click.echo(f"instances of {key}: {number}")
    click.echo(f"steps done: {', '.join(done(entry)) or 'none'}")
    begun = [step for step in entry.steps if step not in done(entry)]
    if begun:
        click.echo(f"steps to do: {', '.join(begun)}")
    if entry.failure:
        click.echo(f"failure: {entry.failure}")
    if entry.log:
        click.echo(f"log: {entry.log}")


def _age(entry: Deployment) -> str:
    """Say whether the template is still that of the last run."""
    try:
        now = Path(entry.template).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return " (missing)"
    return " (changed since the last run)" if entry.template_text not in ("", now) else ""


def history(entries: Iterable[Entry]) -> None:
    """Print the runs of a deployment.

    Args:
        entries: the runs, the first one first.
    """
    table(
        ("began", "ended", "who", "what", "result", "steps", "failure"),
        (
            (entry.began, entry.ended, entry.who, entry.what, entry.result, str(entry.done), entry.failure)
            for entry in entries
        ),
    )
