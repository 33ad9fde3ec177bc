# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which steps run together, and which must not run because of a failure. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

from gpufarm.plan import Step


@dataclass(frozen=True)
class Play:
    """Steps that are one play: the same operation on several machines, at the same time.

    Attributes:
        steps: the step on each machine, by host.
    """

    steps: dict[str, Step]


def levels(steps: Iterable[Step]) -> dict[str, int]:
    """Number the waves.

    Args:
        steps: each after those that it needs.

    Returns:
        The wave of each step, from 1; what is in one wave does not depend on each other.
    """
    found: dict[str, int] = {}
    for step in steps:
        found[step.name] = 1 + max((found[need] for need in step.needs if need in found), default=0)
    return found


def plays(steps: Iterable[Step]) -> list[Play]:
    """Put steps together.

    Args:
        steps: each after those that it needs.

    Returns:
        Plays in the order of the waves. A play has a machine only once, and all its steps have the same
        playbook and variables of the same names.
    """
    listed = list(steps)
    wave = levels(listed)
    found: dict[tuple[Any, ...], list[dict[str, Step]]] = {}
    for step in sorted(listed, key=lambda entry: wave[entry.name]):
        key = (wave[step.name], step.playbook, frozenset(step.variables))
        groups = found.setdefault(key, [])
        group = next((entry for entry in groups if step.host not in entry), None)
        if group is None:
            group = {}
            groups.append(group)
        group[step.host] = step
    return [Play(group) for groups in found.values() for group in groups]


def segment(steps: Iterable[Step], done: Collection[str]) -> list[Step]:
    """Choose what one Ansible process can run.

    Ansible itself leaves out a machine on which something has failed, so what depends on steps of the same
    machine only can be in the same process. Operations that depend on another machine wait for the next one.

    Args:
        steps: what is left to do, each after those that it needs.
        done: names of the steps that are done.

    Returns:
        The steps, in the same order.
    """
    waiting = {step.name: step for step in steps}
    found: dict[str, Step] = {}
    for step in waiting.values():
        open_needs = [need for need in step.needs if need not in done and need in waiting]
        if all(need in found and found[need].host == step.host for need in open_needs):
            found[step.name] = step
    return list(found.values())


def lanes(steps: Iterable[Step]) -> list[list[Step]]:
    """Divide what one segment runs among Ansible processes that run side by side.

    Inside a process one play follows the other, each on all its machines at once. So machines with the same
    operations share a process, and machines with others do not wait for them: there are as many processes as
    there are kinds of machine, not as many as there are machines.

    Args:
        steps: as `segment` chose them.

    Returns:
        The steps of each process, in the same order. No machine is in two of them.
    """
    own: dict[str, list[Step]] = {}
    for step in steps:
        own.setdefault(step.host, []).append(step)
    found: dict[tuple[Any, ...], list[Step]] = {}
    for chain in own.values():
        kind = tuple((step.playbook, frozenset(step.variables)) for step in chain)
        found.setdefault(kind, []).extend(chain)
    order = {
        step.name: number for number, step in enumerate(entry for chain in own.values() for entry in chain)
    }
    return [sorted(lane, key=lambda step: order[step.name]) for lane in found.values()]


def depending(steps: Iterable[Step], names: Collection[str]) -> set[str]:
    """Find what depends on steps.

    Args:
        steps: each after those that it needs.
        names: of the steps in question.

    Returns:
        The names of all steps that need one of them, directly or not, without these themselves.
    """
    found: set[str] = set()
    for step in steps:
        if any(need in names or need in found for need in step.needs):
            found.add(step.name)
    return found - set(names)
