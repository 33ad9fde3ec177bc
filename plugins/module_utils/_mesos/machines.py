# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of a Mesos cluster and the windows in which they are maintained. No I/O.

Frameworks are told of a window with every offer of the machine. A machine that is down has lost its agents,
and gets none back until it is up again. All agents of a machine go together.

Sources: Mesos documentation, "Maintenance Primitives"; include/mesos/v1/maintenance/maintenance.proto;
src/master/maintenance.cpp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timezone
from typing import Any, NamedTuple

UP, SCHEDULED, DOWN = "up", "scheduled", "down"
FORM = "%Y-%m-%dT%H:%M:%SZ"
NANOSECONDS = 10**9


class MachineError(ValueError):
    """A machine or a window cannot be what is wanted; the text is one sentence for a user."""


class Window(NamedTuple):
    """When a machine is maintained: start, in ns since 1970, and length, in ns, None for no end."""

    start: int
    length: int | None


class Machine(NamedTuple):
    """A machine: its name and its address, as its agents have registered."""

    hostname: str
    ip: str


Schedule = dict[Machine, Window]
Call = tuple[str, dict[str, Any]]


def window_of(request: Mapping[str, Any] | None) -> Window:
    """Return the window of a plan with `start`, as 2026-12-01T06:00:00Z, and `duration` in seconds or None.

    Raises:
        MachineError: it is none.
    """
    if request is None:
        raise MachineError("State scheduled needs a window; give its start, and its duration if it has one.")
    try:
        start = datetime.strptime(request["start"], FORM).replace(tzinfo=timezone.utc)
    except ValueError:
        raise MachineError(
            f"The window starts at '{request['start']}'; give the time in UTC, as 2026-12-01T06:00:00Z."
        ) from None
    seconds = request["duration"]
    if seconds is not None and seconds <= 0:
        raise MachineError(f"The window lasts {seconds:g} seconds; give more than 0, or nothing for no end.")
    length = None if seconds is None else round(seconds * NANOSECONDS)
    return Window(int(start.timestamp()) * NANOSECONDS, length)


def read_schedule(answer: Mapping[str, Any]) -> Schedule:
    """Return the schedule that GET_MAINTENANCE_SCHEDULE tells."""
    found: Schedule = {}
    for window in answer.get("schedule", {}).get("windows") or []:
        when = window["unavailability"]
        length = when.get("duration", {}).get("nanoseconds")
        for one in window["machine_ids"]:
            found[_machine(one)] = Window(
                int(when["start"]["nanoseconds"]), None if length is None else int(length)
            )
    return found


def read_down(answer: Mapping[str, Any]) -> list[Machine]:
    """Return the machines that GET_MAINTENANCE_STATUS tells to be down."""
    return [_machine(one) for one in answer.get("status", {}).get("down_machines") or []]


def read_machines(answer: Mapping[str, Any]) -> dict[str, Machine]:
    """Return the machines of the agents that GET_AGENTS tells, by every name of the agents."""
    found = {}
    for entry in answer.get("agents") or []:
        info = entry["agent_info"]
        # slave(1)@10.0.0.1:5051
        address = entry["pid"].partition("@")[2].rpartition(":")[0].strip("[]")
        machine = Machine(info["hostname"], address)
        for name in (info["id"]["value"], machine.hostname, f"{machine.hostname}:{info.get('port')}"):
            found[name] = machine
    return found


def choose(known: Mapping[str, Machine], listed: Iterable[Machine], names: Sequence[str]) -> list[Machine]:
    """Return the machines that names stand for, each once.

    Args:
        known: machines with agents, by name.
        listed: machines in the schedule, which may have lost their agents.
        names: of machines or agents.

    Raises:
        MachineError: a name stands for none.
    """
    named = {**{one.hostname: one for one in listed}, **known}
    for name in names:
        if name not in named:
            there = ", ".join(sorted({one.hostname for one in named.values()})) or "none"
            raise MachineError(
                f"Mesos knows no machine {name}, neither by an agent nor by its schedule. There are: {there}."
            )
    return sorted({named[name] for name in names})


def plan(
    schedule: Schedule,
    down: Sequence[Machine],
    chosen: Sequence[Machine],
    state: str,
    window: Window | None = None,
) -> list[Call]:
    """Return the calls that bring machines into a state, each with its fields; none when nothing is to do.

    Args:
        schedule: as it is.
        down: machines that are down.
        chosen: the machines that are meant.
        state: `scheduled`, `down` or `up`.
        window: for `scheduled`.

    Raises:
        MachineError: a machine that is down should get a window, or one without a window should go down.
    """
    if state == SCHEDULED and window:
        _refuse(
            "%s is down already; bring it up before you plan anew.", [one for one in chosen if one in down]
        )
        return _update(schedule, {**schedule, **dict.fromkeys(chosen, window)})
    if state == DOWN:
        _refuse(
            "%s has no window, which Mesos wants before it goes down; plan one with state scheduled.",
            [one for one in chosen if one not in schedule],
        )
        rest = [one for one in chosen if one not in down]
        return [("START_MAINTENANCE", {"machines": _ids(rest)})] if rest else []
    # this call takes machines out of the schedule as well
    rest = [one for one in chosen if one in down]
    calls: list[Call] = [("STOP_MAINTENANCE", {"machines": _ids(rest)})] if rest else []
    left = {one: when for one, when in schedule.items() if one not in rest}
    return calls + _update(left, {one: when for one, when in left.items() if one not in chosen})


def told(schedule: Schedule, down: Sequence[Machine], chosen: Sequence[Machine]) -> list[dict[str, Any]]:
    """Return machines as a module tells them: `hostname`, `ip`, `state`, the window's `start`, `duration`."""
    return [
        {
            **one._asdict(),
            "state": DOWN if one in down else SCHEDULED if one in schedule else UP,
            **_window(schedule.get(one)),
        }
        for one in chosen
    ]


def line(entry: Mapping[str, Any]) -> str:
    """Return a machine as a line of a diff."""
    if entry["state"] == UP:
        return f"{entry['hostname']}: up\n"
    end = "" if entry["duration"] is None else f" for {entry['duration']:g} s"
    return f"{entry['hostname']}: {entry['state']}, from {entry['start']}{end}\n"


def after(entries: Sequence[Mapping[str, Any]], state: str, window: Window | None) -> list[dict[str, Any]]:
    """Return machines, as a module tells them, as they will be."""
    changes = _window(window) if state != DOWN else {}
    return [{**one, "state": state, **changes} for one in entries]


def _refuse(sentence: str, machines: Sequence[Machine]) -> None:
    if machines:
        raise MachineError(sentence % ", ".join(one.hostname for one in machines))


def _update(before: Schedule, wanted: Schedule) -> list[Call]:
    if wanted == before:
        return []
    return [("UPDATE_MAINTENANCE_SCHEDULE", {"schedule": {"windows": _windows(wanted)}})]


def _window(window: Window | None) -> dict[str, Any]:
    if window is None:
        return {"start": "", "duration": None}
    length = None if window.length is None else window.length / NANOSECONDS
    start = datetime.fromtimestamp(window.start // NANOSECONDS, timezone.utc)
    return {"start": start.strftime(FORM), "duration": length}


def _machine(entry: Mapping[str, Any]) -> Machine:
    return Machine(entry.get("hostname", ""), entry.get("ip", ""))


def _ids(machines: Iterable[Machine]) -> list[dict[str, str]]:
    return [{name: value for name, value in one._asdict().items() if value} for one in machines]


def _windows(schedule: Schedule) -> list[dict[str, Any]]:
    windows = []
    for window in sorted(set(schedule.values()), key=lambda one: (one.start, one.length or 0)):
        when: dict[str, Any] = {"start": {"nanoseconds": window.start}}
        if window.length is not None:
            when["duration"] = {"nanoseconds": window.length}
        members = sorted(one for one, its in schedule.items() if its == window)
        windows.append({"machine_ids": _ids(members), "unavailability": when})
    return windows
