# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as units of systemd (an `Engine`)."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from .engine import Death, EngineError

TIMEOUT = 60  # seconds; stopping a notebook takes its TimeoutStopSec at most

PREFIX = "jupyterhub-notebook-"  # what the names of all notebooks' units begin with

# Nodes of a GPU, of a GPU instance and of a compute instance; others are the driver's, for all GPUs.
GPU_NODE = re.compile(r"/dev/(nvidia\d+|nvidia-caps/.+)")

PROC = Path("/proc")

# systemd's unit states in which no process of the unit is left (systemctl(1), ActiveState).
OVER = ("inactive", "failed")


def name_of(owner: str) -> str:
    """Return the unit of a notebook.

    The prefix keeps systemd from reading a unit type out of a user name such as "a.mount". No user name holds
    a colon, so no two notebooks share a unit.

    Args:
        owner: user and server name, ``alice/`` for the default server.
    """
    user, _slash, server = owner.partition("/")
    return f"{PREFIX}{user}:{server}.service" if server else f"{PREFIX}{user}.service"


def owner_of(unit: str) -> str:
    """Return the owner of a notebook's unit: the opposite of `name_of`."""
    user, _colon, server = unit.removeprefix(PREFIX).removesuffix(".service").partition(":")
    return f"{user}/{server}"


def _systemctl(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["systemctl", *arguments], check=True, capture_output=True, text=True, timeout=TIMEOUT
        )
    except subprocess.CalledProcessError as error:
        raise EngineError(f"systemctl {' '.join(arguments)}: {error.stderr.strip()}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"systemctl {' '.join(arguments)}: {error}") from error
    return done.stdout.strip()


def running() -> list[str]:
    """Return the units of all notebooks that are not over.

    Raises:
        EngineError: systemd did not answer.
    """
    lines = _systemctl("list-units", "--plain", "--no-legend", "--full", "--type=service", f"{PREFIX}*")
    # Name, whether it is loaded, ActiveState, and more (systemctl(1), list-units).
    return [name for name, _loaded, state, *_more in map(str.split, lines.splitlines()) if state not in OVER]


def reach() -> dict[str, frozenset[str]]:
    """Return, for each unit that is not over, the nodes of GPUs and slices that the kernel lets it open.

    Raises:
        EngineError: systemd did not answer.
    """
    found = {}
    # A paragraph for each unit, in which a property with several values is there several times.
    for paragraph in _systemctl("show", "--property=Id,ActiveState,DeviceAllow", f"{PREFIX}*").split("\n\n"):
        pairs = [line.partition("=")[::2] for line in paragraph.splitlines()]
        told = dict(pairs)
        if told and told["ActiveState"] not in OVER:
            paths = (value.partition(" ")[0] for name, value in pairs if name == "DeviceAllow")
            found[told["Id"]] = frozenset(filter(GPU_NODE.fullmatch, paths))
    return found


def processes(unit: str) -> frozenset[int]:
    """Return the ids of the unit's processes.

    Raises:
        EngineError: systemd did not answer.
    """
    group = _systemctl("show", "--property=ControlGroup", "--value", unit)
    return frozenset(
        int(folder.name) for folder in PROC.glob("[0-9]*") if group and _is_in(folder / "cgroup", group)
    )


def _is_in(file: Path, group: str) -> bool:
    try:
        lines = file.read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:  # it has ended
        return False
    # Hierarchy, controllers, and path of the control group (cgroups(7)).
    paths = [line.split(":", 2)[-1] for line in lines]
    return any(path == group or path.startswith(f"{group}/") for path in paths)


def is_over(unit: str) -> bool:
    """Tell whether no process of the unit is left; one that is stopping, or about to start, is not over.

    Raises:
        EngineError: systemd did not answer.
    """
    lines = _systemctl("show", "--property=ActiveState,Job", unit).splitlines()
    told = dict(line.split("=", 1) for line in lines)
    # It is inactive while it waits for its walls; then it has a job, by its number.
    return told["ActiveState"] in OVER and told.get("Job", "") in ("", "0")


def _state(unit: str) -> str:
    return _systemctl("show", "--property=ActiveState", "--value", unit)


def cpu_seconds(unit: str) -> float | None:
    """Return the seconds of CPU time that the unit's processes have taken; None where systemd does not count.

    Raises:
        EngineError: systemd did not answer.
    """
    nanoseconds = _systemctl("show", "--property=CPUUsageNSec", "--value", unit)
    # "[not set]", or the largest number of 64 bits, is systemd's word for not counted.
    return int(nanoseconds) / 1e9 if nanoseconds.isdecimal() and int(nanoseconds) < 2**64 - 1 else None


def death(unit: str) -> Death | None:
    """Return how a unit that is over has failed; None if it did not, or if that is forgotten.

    Raises:
        EngineError: systemd did not answer.
    """
    shown = _systemctl("show", "--property=ActiveState,Result,ExecMainCode,ExecMainStatus", unit)
    told = dict(line.split("=", 1) for line in shown.splitlines())
    # "timeout": it was asked to stop, and was killed when it did not (systemd.service(5), TimeoutStopSec=).
    if told["ActiveState"] != "failed" or told["Result"] == "timeout":
        return None
    if told["Result"] == "oom-kill":
        return Death("memory")
    # Of waitid(2): CLD_KILLED or CLD_DUMPED for a signal, else it exited.
    return Death("signal" if told["ExecMainCode"] in ("2", "3") else "status", int(told["ExecMainStatus"]))


def stop(unit: str) -> None:
    """Stop the unit, wait until it is over, and have systemd forget a failed one.

    A unit that is not there is over already.

    Raises:
        EngineError: it still runs, or systemd did not answer.
    """
    if not is_over(unit):
        _systemctl("stop", unit)
        if not is_over(unit):
            raise EngineError(f"{unit} still runs after systemctl stop")
    if _state(unit) == "failed":
        _systemctl("reset-failed", unit)


def resumable() -> list[str]:
    """Return no units: a notebook runs as soon as it is started."""
    return []


def revoke_devices(unit: str) -> None:
    """Take from a running unit all devices that were allowed to it one by one.

    Raises:
        EngineError: systemd did not do it.
    """
    _systemctl("set-property", "--runtime", unit, "DeviceAllow=")
