# SPDX-License-Identifier: GPL-3.0-or-later
"""Prints plans, deployments and histories, for people and as JSON for machines."""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufarm.answers import Console, Deployment, Hours, Plan, Removal, Task, Uniformity
from gpufarm.api import UNUSABLE

if TYPE_CHECKING:
    from gpufarm.history import Entry


def as_json(value: Any) -> None:
    """Print JSON.

    Args:
        value: an answer, a list of answers, or what JSON can carry; the rest is written as text.
    """
    click.echo(json.dumps(value, indent=2, default=_plain))


def _plain(value: Any) -> Any:
    return vars(value) if is_dataclass(value) else str(value)


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


def warning(sentence: str) -> None:
    """Print a warning to standard error.

    Args:
        sentence: the thing, the reason and the next step.
    """
    click.echo(f"gpufarm: warning: {sentence}", err=True)


def machines(entry: Deployment) -> str:
    """Describe where the nodes of a deployment stand.

    Args:
        entry: the deployment.

    Returns:
        Nodes and hosts.
    """
    return ", ".join(f"{node}: {machine['host']}" for node, machine in entry.machines.items()) or "none"


def plan(found: Plan) -> None:
    """Print a plan.

    Args:
        found: the plan.
    """
    for node, machine in found.machines.items():
        gpus = ", ".join(model or "GPU of unknown model" for model in machine.gpus) or "no GPU"
        click.echo(
            f"{node}: {machine.host} ({machine.address}): {machine.cpus} CPUs, "
            f"{machine.memory / 10**9:.1f} GB memory, {machine.distribution} {machine.version}, {gpus}"
        )
    current = 0
    for number, step in enumerate(sorted(found.steps, key=lambda step: step.wave), start=1):
        if step.wave != current:
            current = step.wave
            click.echo(f"wave {current}")
        click.echo(f"  {number}. {step.step} on {step.host}: {step.reason}")
        if step.disruption:
            click.echo(f"       disruptive: {step.disruption}")
        for key, value in step.variables.items():
            mark = "*" if key in step.changed else " "
            click.echo(f"     {mark} {key}: {json.dumps(value, default=str)}")
    for leaving in found.leaving:
        click.echo(f"  then {leaving.step} on {leaving.host}: this instance is no longer wanted")


def removal(found: Removal) -> None:
    """Print what undeploying takes away, where people are asked about it: to standard error.

    Args:
        found: what would go, and what stays.
    """
    click.echo(f"{found.name}: undeploying frees its machines", err=True)
    for word, steps, reason in (
        ("remove", found.remove, ""),
        ("keep", found.keep, ": this deployment changed nothing there"),
        ("leave", found.gone, ": the inventory lacks this machine"),
        ("leave", found.waiting, ": it is needed on a machine that the inventory lacks"),
        ("give up", found.given_up, ": the inventory lacks this machine"),
    ):
        for node, host in dict.fromkeys((step.step.rpartition(".")[0], step.host) for step in steps):
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


def records(machines: Mapping[str, list[dict[str, Any]]]) -> None:
    """Print what was made on machines, for whom, and what differs since.

    Args:
        machines: the records of each machine.
    """
    if any(machines.values()):
        table(
            ("machine", "role", "owner", "applied", "state"),
            (
                (machine, entry["role"], entry["owner"], entry["at"][:16].replace("T", " "), phrase)
                for machine, entries in sorted(machines.items())
                for entry in entries
                for phrase in entry["state"]
            ),
        )


def deployments(found: Iterable[Deployment]) -> None:
    """Print a list of deployments; what is wrong with their files goes to standard error.

    Args:
        found: the deployments.
    """
    listed = list(found)
    table(
        ("name", "status", "machines", "updated", "operator", "group", "description"),
        (
            (
                entry.name,
                entry.status,
                machines(entry),
                entry.updated,
                entry.operator,
                entry.group,
                entry.description,
            )
            for entry in listed
        ),
    )
    for entry in listed:
        if entry.status == UNUSABLE:
            warning(entry.failure)


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
    if entry.template:  # a service tells neither
        click.echo(f"template: {entry.template}{_age(entry)}\npool: {entry.pool}")
    click.echo(f"machines: {machines(entry)}")
    for key, value in entry.inputs.items():
        click.echo(f"input {key}: {json.dumps(value, default=str)}")
    for key, number in entry.instances.items():
        click.echo(f"instances of {key}: {number}")
    if entry.template:
        click.echo(f"steps done: {', '.join(entry.steps) or 'none'}")
    if entry.begun:
        click.echo(f"steps to do: {', '.join(entry.begun)}")
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


def hours(found: Hours) -> None:
    """Print hours as a table, with their sum.

    Args:
        found: the hours.
    """
    if not found.rows:
        click.echo(f"nobody held anything from {found.since} to {found.before}")
        return
    names = list(found.rows[0])
    numbers = [name for name in names if name.endswith("_hours")]
    whole = {name: sum(row[name] for row in found.rows) for name in numbers}
    columns = [name.replace("_", " ") for name in names]
    rows = [
        [f"{row[name]:.1f}" if name in numbers else str(row[name]) or "-" for name in names]
        for row in (*found.rows, {**dict.fromkeys(names, ""), names[0]: "all", **whole})
    ]
    table(columns, rows)


def uniformity(found: Uniformity) -> None:
    """Print how machines differ.

    Args:
        found: the differences.
    """
    for sentence in found.summary:
        click.echo(sentence)
    if found.rows:
        table(("group", "property", "machines", "value", "most have"), found.rows)


def console(found: Console, chosen: Task | None) -> None:
    """Print how tasks went, and the output of one.

    Args:
        found: the tasks.
        chosen: the task whose output is printed; None for none.
    """
    if not found.tasks:
        click.echo("no task has begun yet")
        return
    columns = ("task", "state", "begun", "ended", "machine", "reason")
    table(
        columns,
        [
            [one.id, one.state, _moment(one.begun), _moment(one.ended), one.machine or "-", one.reason or "-"]
            for one in found.tasks
        ],
    )
    if chosen is None:
        return
    if chosen.unread:
        click.echo(f"\n{chosen.id}: {chosen.unread}")
    for stream in ("stdout", "stderr"):
        text = getattr(chosen, stream)
        if text:
            click.echo(f"\n[{stream} of {chosen.id}{', its end' if stream in chosen.cut else ''}]")
            click.echo(text, nl=not text.endswith("\n"))


def _moment(seconds: float) -> str:
    """A time in UTC; a dash for none."""
    if not seconds:
        return "-"
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).strftime("%Y-%m-%d %H:%M:%SZ")
