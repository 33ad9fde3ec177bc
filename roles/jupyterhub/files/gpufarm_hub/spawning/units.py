# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as units of systemd (an `Engine`)."""

from __future__ import annotations

import re
import subprocess

from .engine import EngineError

TIMEOUT = 60  # seconds; stopping a notebook takes its TimeoutStopSec at most

PREFIX = "jupyterhub-notebook-"  # what the names of all notebooks' units begin with

# Nodes of a GPU, of a GPU instance and of a compute instance; others are the driver's, for all GPUs.
GPU_NODE = re.compile(r"/dev/(nvidia\d+|nvidia-caps/.+)")

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


def opens(unit: str) -> frozenset[str]:
    """Return the device nodes that open GPUs or slices and that the kernel lets a running unit open.

    Raises:
        EngineError: systemd did not answer.
    """
    lines = _systemctl("show", "--property=DeviceAllow", "--value", unit).splitlines()
    paths = (line.partition(" ")[0] for line in lines)
    return frozenset(filter(GPU_NODE.fullmatch, paths))


def is_over(unit: str) -> bool:
    """Tell whether no process of the unit is left; a unit that is still stopping is not over.

    Raises:
        EngineError: systemd did not answer.
    """
    return _systemctl("show", "--property=ActiveState", "--value", unit) in OVER


def cpu_seconds(unit: str) -> float | None:
    """Return the seconds of CPU time that the unit's processes have taken; None where systemd does not count.

    Raises:
        EngineError: systemd did not answer.
    """
    nanoseconds = _systemctl("show", "--property=CPUUsageNSec", "--value", unit)
    # "[not set]", or the largest number of 64 bits, is systemd's word for not counted.
    return int(nanoseconds) / 1e9 if nanoseconds.isdecimal() and int(nanoseconds) < 2**64 - 1 else None


def stop(unit: str) -> None:
    """Stop the unit and wait until it is over; a unit that is not there is over already.

    Raises:
        EngineError: it still runs, or systemd did not answer.
    """
    if is_over(unit):
        return
    _systemctl("stop", unit)
    if not is_over(unit):
        raise EngineError(f"{unit} still runs after systemctl stop")


def revoke_devices(unit: str) -> None:
    """Take from a running unit all devices that were allowed to it one by one.

    Raises:
        EngineError: systemd did not do it.
    """
    _systemctl("set-property", "--runtime", unit, "DeviceAllow=")
