# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes that give a GPU the settings that are asked for. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .request import CLOCKS, DEFAULT, NAMES, Values, words

# The driver keeps these values in MIG mode (nvml.h, nvmlDeviceSetComputeMode and
# nvmlDeviceSetAccountingMode).
FIXED_BY_MIG: Mapping[str, Any] = {"compute_mode": DEFAULT, "accounting_mode": False}


@dataclass(frozen=True)
class Board:
    """The settings of a GPU, and what it offers.

    `values` has the settings that the GPU has, as they will be after a reset; clocks are `default`, as NVML
    does not tell whether they are locked. `ecc_in_force` is None without ECC. `power` is the least, the most
    and the default limit in mW; `clocks` the lowest and the highest clock that can be locked, in MHz.
    """

    uuid: str
    name: str
    values: Values
    mig_enabled: bool = False
    ecc_in_force: bool | None = None
    power: tuple[int, int, int] = (0, 0, 0)
    clocks: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    @property
    def pending(self) -> tuple[str, ...]:
        """Names of the settings that take effect at the next reset."""
        waits = self.ecc_in_force is not None and self.ecc_in_force != self.values["ecc_mode"]
        return ("ecc_mode",) if waits else ()


@dataclass(frozen=True)
class Entry:
    """The memory of a GPU: settings that were asked for, and their values before."""

    wanted: Values = field(default_factory=dict)
    before: Values = field(default_factory=dict)


@dataclass(frozen=True)
class Step:
    """One setting to change. Without `changed` it is as asked for already, as far as is known."""

    name: str
    before: Any
    after: Any

    @property
    def changed(self) -> bool:
        """Whether the setting gets another value."""
        return bool(self.before != self.after)


@dataclass(frozen=True)
class Plan:
    """Changes of a GPU.

    `steps` include locked clocks that are as asked for: NVML does not tell whether the driver has forgotten
    them, and locking them again changes nothing. `entry` is remembered during the change, `settled` after it.
    `lost` are settings whose former values are no longer possible.
    """

    board: Board
    steps: tuple[Step, ...]
    entry: Entry
    settled: Entry
    lost: tuple[str, ...] = ()

    @property
    def changed(self) -> bool:
        """Whether any setting gets another value."""
        return any(step.changed for step in self.steps)


def problems(board: Board, wanted: Values) -> list[str]:
    """Return why a GPU cannot have settings, a sentence for each of them."""
    found = (_problem(board, name, wanted[name]) for name in wanted)
    return [f"{board.name} {problem}" for problem in found if problem]


def _problem(board: Board, name: str, value: Any) -> str:
    if name not in board.values:
        return f"has no {name} that can be set: leave {name} out for this GPU."
    if board.mig_enabled and name in FIXED_BY_MIG and value != FIXED_BY_MIG[name]:
        return f"is in MIG mode, in which its driver fixes {name}: leave {name} out, or switch MIG mode off."
    if value == DEFAULT:
        return ""
    if name == "power_limit" and not board.power[0] <= value <= board.power[1]:
        offered = f"{board.power[0] / 1000:g} to {board.power[1] / 1000:g} W"
        return f"has no power_limit of {words(name, value)}: choose {offered}, or default."
    if name in CLOCKS and not board.clocks[name][0] <= value[0] <= value[1] <= board.clocks[name][1]:
        offered = f"{board.clocks[name][0]} to {board.clocks[name][1]} MHz"
        return f"has no {name} of {words(name, value)}: choose {offered}, or default."
    return ""


def plan(board: Board, wanted: Values, entry: Entry) -> Plan:
    """Return what leads a GPU to settings; those that are no longer asked for become what they were before.

    Args:
        wanted: settings that the GPU can have.
        entry: what is remembered of it.
    """
    former = {name: value for name, value in entry.before.items() if name not in wanted}
    lost = tuple(name for name, value in former.items() if _problem(board, name, value))
    resolved = {
        name: board.power[2] if name == "power_limit" and value == DEFAULT else value
        for name, value in wanted.items()
    }
    goal = {name: value for name, value in former.items() if name not in lost} | resolved
    # The former request tells whether clocks are locked.
    now = board.values | {name: entry.wanted.get(name, DEFAULT) for name in CLOCKS}
    before = {name: entry.before.get(name, now[name]) for name in wanted}
    steps = tuple(
        Step(name, now[name], goal[name])
        for name in NAMES
        if name in goal and (now[name] != goal[name] or (name in CLOCKS and goal[name] != DEFAULT))
    )
    leaving = {name: value for name, value in entry.wanted.items() if name in former}
    # Until they are unlocked for sure, clocks count as locked: NVML does not tell.
    locked = {
        name: entry.wanted[name]
        for name in CLOCKS
        if resolved.get(name) == DEFAULT and entry.wanted.get(name, DEFAULT) != DEFAULT
    }
    during = Entry({**leaving, **resolved, **locked}, {**former, **before})
    return Plan(board, steps, during, Entry(resolved, before), lost)


def differences(board: Board, wanted: Values) -> list[str]:
    """Return which settings of a GPU are not as asked for, a sentence for each; NVML does not tell clocks."""
    return [
        f"{board.name} has {name} {_told(board, name)}, and {words(name, value)} is asked for."
        for name, value in wanted.items()
        if name not in CLOCKS and board.values.get(name) != value
    ]


def _told(board: Board, name: str) -> str:
    return words(name, board.values[name]) if name in board.values else "none"


def diff(plans: Iterable[Plan]) -> dict[str, str]:
    """Return the settings that change, before and after, for people."""
    lines = [
        (f"{plan.board.name}: {step.name} ", words(step.name, step.before), words(step.name, step.after))
        for plan in plans
        for step in plan.steps
        if step.changed
    ]
    return {
        "before": "".join(f"{what}{before}\n" for what, before, _after in lines),
        "after": "".join(f"{what}{after}\n" for what, _before, after in lines),
    }
