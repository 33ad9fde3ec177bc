# SPDX-License-Identifier: GPL-3.0-or-later
"""Answers of the deployer: results of the Python interface, and, as JSON, of commands with ``--json``.

docs/api.md documents every class and every attribute; a test compares it with this file. Entries of a history
and proposals of scaling policies have classes of their own, beside what makes them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Problem:
    """Something that is wrong with a template or with the values of its inputs."""

    file: str
    line: int
    column: int
    text: str


@dataclass(frozen=True)
class Input:
    """An input of a template."""

    name: str
    type: str
    required: bool
    secret: bool
    default: Any
    description: str


@dataclass(frozen=True)
class Validation:
    """A template that was examined without any machine."""

    template: str
    valid: bool
    problems: list[Problem] = field(default_factory=list)
    name: str = ""
    description: str = ""
    nodes: list[str] = field(default_factory=list)
    inputs: list[Input] = field(default_factory=list)


@dataclass(frozen=True)
class Package:
    """A CSAR that was written."""

    file: str
    files: int
    bytes: int


@dataclass(frozen=True)
class Machine:
    """A machine of the pool that a node gets, and its hardware."""

    host: str
    address: str
    cpus: int
    memory: int
    disk: int
    distribution: str
    version: str
    gpus: list[str | None]


@dataclass(frozen=True)
class Step:
    """An operation of a node on a machine."""

    step: str
    host: str


@dataclass(frozen=True)
class PlannedStep(Step):
    """An operation that would be run, and why."""

    wave: int
    playbook: str
    reason: str
    changed: list[str]
    needed: bool
    disruption: str
    variables: dict[str, Any]


@dataclass(frozen=True)
class Plan:
    """The effects of a deployment now."""

    name: str
    machines: dict[str, Machine]
    steps: list[PlannedStep]
    leaving: list[Step]
    warnings: list[str]
    problems: str = ""


@dataclass(frozen=True)
class Deployment:
    """A deployment as it is remembered."""

    name: str
    status: str
    machines: dict[str, dict[str, str]]
    failure: str = ""
    id: str = ""
    operator: str = ""
    group: str = ""
    description: str = ""
    template: str = ""
    template_text: str = ""
    pool: str = ""
    created: str = ""
    updated: str = ""
    inputs: dict[str, Any] = field(default_factory=dict)
    instances: dict[str, int] = field(default_factory=dict)
    steps: list[str] = field(default_factory=list)
    begun: list[str] = field(default_factory=list)
    outputs: dict[str, Any] = field(default_factory=dict)
    log: str = ""


@dataclass(frozen=True)
class Applied:
    """The effects of a step that was run."""

    step: str
    changed: list[str]
    seconds: float


@dataclass(frozen=True)
class Run:
    """A run that went well. It has no machines if there was nothing to do, as none was looked at."""

    deployment: Deployment
    applied: list[Applied]
    log: str
    machines: dict[str, Machine] = field(default_factory=dict)


@dataclass(frozen=True)
class Difference:
    """The changes that applying a template again would make, by step, and the records of the machines."""

    name: str
    changed: dict[str, list[str]]
    records: dict[str, list[dict[str, Any]]]
    log: str


@dataclass(frozen=True)
class Removal:
    """The steps of an undeployment, and those that are left out: the deployment changed nothing there, the
    inventory lacks their machines, or the steps of such machines need them.
    """

    name: str
    remove: list[Step]
    keep: list[Step]
    gone: list[Step] = field(default_factory=list)
    waiting: list[Step] = field(default_factory=list)
    given_up: list[Step] = field(default_factory=list)


@dataclass(frozen=True)
class Hours:
    """Hours of GPUs, slices, CPUs and memory that users held in a period."""

    since: str
    before: str
    rows: list[dict[str, Any]]
    records: list[dict[str, Any]]
    silent: dict[str, str]
    machines: dict[str, str]


@dataclass(frozen=True)
class Uniformity:
    """How machines that ought to be equal differ."""

    summary: list[str]
    differences: list[dict[str, Any]]
    rows: list[list[str]]
    properties: dict[str, dict[str, Any]]
    silent: dict[str, str]


@dataclass(frozen=True)
class Task:
    """A start of a container or a run of a job; times are seconds since 1970, 0 for not yet."""

    node: str
    id: str
    machine: str
    state: str
    reason: str
    begun: float
    ended: float
    stdout: str
    stderr: str
    cut: list[str]
    unread: str


@dataclass(frozen=True)
class Console:
    """How tasks of a deployment went and what they have printed, and why nodes did not tell theirs."""

    tasks: list[Task]
    silent: dict[str, str]
