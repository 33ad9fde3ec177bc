# SPDX-License-Identifier: GPL-3.0-or-later
"""When a notebook must end: idle, or its time is over. No I/O; times are seconds since the epoch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

# Cores that the processes of a notebook must keep busy to count as working. An idle JupyterLab takes about
# 0.01; a program that computes on a GPU keeps about one busy, as CUDA's synchronisation spins unless told
# otherwise (CUDA Runtime API, cudaSetDeviceFlags, cudaDeviceScheduleAuto).
WORKING_CORES = 0.05

# Seconds; less is the work of a time service that keeps the clock right.
JUMP = 10.0


@dataclass(frozen=True)
class Rules:
    """When notebooks end.

    Attributes:
        idle: seconds without use after which a notebook without slices ends; 0 for never.
        idle_gpu: the same for a notebook that holds slices.
        warning: seconds between the warning and the end.
    """

    idle: float
    idle_gpu: float
    warning: float

    def idle_seconds(self, holds_slices: bool) -> float:
        """Return after how many seconds without use a notebook ends; 0 for never."""
        return self.idle_gpu if holds_slices else self.idle


def read_rules(settings: Mapping[str, Any]) -> Rules:
    """Return the rules in the role's settings."""
    return Rules(
        idle=60 * settings["idle_minutes"],
        idle_gpu=60 * settings["idle_gpu_minutes"],
        warning=60 * settings["warning_minutes"],
    )


@dataclass(frozen=True)
class Notebook:
    """A notebook that runs.

    Attributes:
        owner: user and server name.
        started: when it was started.
        used: when its user or its programs last did something.
        holds_slices: whether it holds GPU slices.
        hours: hours that it may run; 0 for any number.
        limit: name of the limit that says so; empty if its user chose that.
        warned: when its user was warned of its end; None when that is not so.
    """

    owner: str
    started: float
    used: float
    holds_slices: bool
    hours: float
    limit: str
    warned: float | None


@dataclass(frozen=True)
class Times:
    """Corrections of a notebook's times after the machine's time was set.

    Attributes:
        skipped: seconds by which the time was set forward since the notebook was started.
        counted_from: since when idle time counts; what was before is on another time.
        warned: when its user was warned of its end; None when that is not so.
    """

    skipped: float = 0.0
    counted_from: float = 0.0
    warned: float | None = None


@dataclass(frozen=True)
class Verdict:
    """Decision about a notebook.

    Attributes:
        ends: when it ends if nothing happens; None for never.
        why: for what reason, in words that follow "ends at ...:".
        warn: whether its user is to be warned now, or stays warned.
        over: whether it is to be ended now.
    """

    ends: float | None
    why: str
    warn: bool
    over: bool


def is_working(processes: int | None, utilisation: int | None, cores: float | None) -> bool:
    """Tell whether the programs of a notebook compute.

    Args:
        processes: how many have its slices open; None for a notebook without slices.
        utilisation: per cent of the last second in which its GPU computed; None where NVML does not tell, as
            for MIG devices (NVML API Reference, nvmlDeviceGetUtilizationRates).
        cores: CPU cores that they kept busy since the last measurement; None where systemd does not count:
            then they are taken to be busy, as what is not known is no reason to end anything.
    """
    busy = cores is None or cores > WORKING_CORES
    if processes is None:
        return busy
    if utilisation is not None:
        return utilisation > 0
    return processes > 0 and busy


def after_jump(times: Times, jump: float, now: float) -> Times:
    """Return the times after the machine's time was set forward by ``jump`` seconds."""
    return Times(
        skipped=times.skipped + jump,
        counted_from=now if abs(jump) > JUMP else times.counted_from,
        warned=None if times.warned is None else times.warned + jump,
    )


def latest(times: Iterable[float], now: float) -> float:
    """Return the latest of some times; those to come were taken before the machine's time was set back."""
    return min(max((when for when in times if when < now + JUMP), default=now), now)


def check(notebook: Notebook, rules: Rules, now: float) -> Verdict:
    """Tell what becomes of a notebook. Nobody's notebook ends without the full time of warning."""
    idle = rules.idle_seconds(notebook.holds_slices)
    ends: list[tuple[float, str]] = []
    if idle:
        ends.append((notebook.used + idle, f"nobody has used it for {span(idle)}"))
    if notebook.hours:
        allowed = 3600 * notebook.hours
        why = f"you chose {span(allowed)}"
        if notebook.limit:
            why = f"it may run for {span(allowed)} (limit {notebook.limit})"
        ends.append((notebook.started + allowed, why))
    if not ends:
        return Verdict(None, "", warn=False, over=False)
    end, why = min(ends)
    if now < end - rules.warning:
        return Verdict(end, why, warn=False, over=False)
    warned = now if notebook.warned is None else notebook.warned
    end = max(end, warned + rules.warning)
    return Verdict(end, why, warn=True, over=now >= end)


def warning(verdict: Verdict) -> str:
    """Return the sentence that warns a user."""
    return f"Your notebook ends at {in_words(verdict.ends or 0)}: {verdict.why}. Save your work."


def ended(why: str, when: float, then: str = "start it again when you need it") -> str:
    """Return the sentence for a user whose notebook was ended.

    Args:
        why: the reason.
        when: the time.
        then: the user's next step.
    """
    return f"Your notebook was ended at {in_words(when)}: {why}; {then} (your files are kept)."


def in_words(when: float) -> str:
    """Return a time as users read it."""
    return datetime.fromtimestamp(when, UTC).strftime("%Y-%m-%d %H:%M UTC")


def span(seconds: float) -> str:
    """Return a time as users read it, in hours or minutes."""
    minutes = round(seconds / 60)
    if minutes % 60:
        return f"{minutes} minute{'' if minutes == 1 else 's'}"
    hours = minutes // 60
    return f"{hours} hour{'' if hours == 1 else 's'}"
