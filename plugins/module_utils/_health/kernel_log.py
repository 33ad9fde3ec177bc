# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of GPUs and NVSwitches in the kernel's log: XIDs and SXids, read from lines and graded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from .finding import (
    ADMINISTRATOR,
    CRITICAL,
    INFORMATION,
    MACHINE,
    OK,
    PROGRAM,
    RESET,
    VENDOR,
    WARNING,
)
from .xids import TABLE

# The lines of the driver ("NVRM: Xid (PCI:0000:07:00): 79, pid=..., GPU has fallen off the bus.") and of
# the driver of the NVSwitches ("nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 20034, Fatal, Link 30 ...").
# Only what begins with them counts: the rest of a line may hold the name of a user's program.
_ADDRESS = r"\((?:PCI:)?(?P<address>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\)"
_XID = re.compile(rf"NVRM: Xid {_ADDRESS}: (?P<code>[0-9]+)(?P<text>.*)", re.DOTALL)
_SXID = re.compile(
    rf"nvidia-nvswitch[0-9]+: SXid {_ADDRESS}: (?P<code>[0-9]+), (?P<grade>Fatal|Non-fatal)(?P<text>.*)",
    re.DOTALL,
)

_STATUS = {
    "ignore": OK,
    "restart": OK,
    "recovery": OK,
    "investigate": WARNING,
    "nvlink": CRITICAL,
    "reset": CRITICAL,
    "reboot": CRITICAL,
    "inspect": CRITICAL,
}
_LEVEL = {
    "ignore": INFORMATION,
    "restart": PROGRAM,
    "recovery": INFORMATION,
    "investigate": ADMINISTRATOR,
    "nvlink": MACHINE,
    "reset": RESET,
    "reboot": MACHINE,
    "inspect": VENDOR,
}
# NVIDIA, "GPU Memory Error Management" and XID catalogue: a contained error (94) ends the programs that had
# it. After that, these say that more than those programs is affected.
CONTAINED = 94
GRAPHICS_EXCEPTION = 13
WORSE = (48, 64, 79, 95, 140)
DOUBLE_BIT = 48
_ADVICE = {
    "ignore": "",
    "restart": "restart the program that met it",
    "recovery": "see the check recovery_action",
    "investigate": "look it up in NVIDIA's XID catalogue",
    "nvlink": "drain the machine and follow NVIDIA's workflow for NVLink 5 errors",
    "reset": "reset the GPU when no program uses it",
    "reboot": "drain the machine and reboot it",
    "inspect": "check the power connectors of the GPU",
}


@dataclass(frozen=True)
class Event:
    """An error in the kernel's log: `kind` is `XID` or `SXid`, `time` microseconds since the boot.

    `address` is the PCI address without function; `fatal` what the line itself says of an SXid or NVLink
    error.
    """

    kind: str
    code: int
    address: str
    time: int
    text: str
    fatal: bool = True

    @property
    def program(self) -> str:
        """The number of the process that met the error; empty when the line does not tell it."""
        match = re.match(r"pid='?([0-9]+)", self.text)
        return match[1] if match else ""


@dataclass(frozen=True)
class Grade:
    """Status and level of an error, what to do, and its name."""

    status: str
    level: str
    action: str
    name: str


def parse_journal(lines: Iterable[str]) -> Iterator[Event]:
    """Read the errors from the output of `journalctl --output=json`.

    Args:
        lines: one JSON object each, with the fields MESSAGE and __MONOTONIC_TIMESTAMP.

    Returns:
        the events in the order of the log; lines about anything else are passed over.
    """
    for line in lines:
        entry = json.loads(line)
        message = entry.get("MESSAGE")
        # The journal stores a message with unprintable bytes as a list of numbers.
        if isinstance(message, list):
            message = bytes(message).decode(errors="replace")
        event = parse_message(message or "", int(entry.get("__MONOTONIC_TIMESTAMP", 0)))
        if event is not None:
            yield event


def parse_message(message: str, time: int) -> Event | None:
    """Read one message, logged at `time` in microseconds since the boot; None when it is no error."""
    for kind, pattern in (("XID", _XID), ("SXid", _SXID)):
        match = pattern.match(message)
        if match is not None:
            text = match["text"].lstrip(", ").strip()
            calm = match["grade"] == "Non-fatal" if kind == "SXid" else bool(re.search(r"\bNonfatal\b", text))
            return Event(kind, int(match["code"]), short_address(match["address"]), time, text, not calm)
    return None


def short_address(address: str) -> str:
    """Return domain, bus and device of a PCI address in four, two and two digits."""
    domain, bus, device = address.lower().partition(".")[0].split(":")
    return f"{int(domain, 16):04x}:{bus}:{device}"


def contained(events: Iterable[Event]) -> frozenset[str]:
    """Return the PCI addresses of GPUs with a contained memory error, and none after it that is worse."""
    found: set[str] = set()
    for event in events:
        if event.kind == "XID" and event.code == CONTAINED:
            found.add(event.address)
        elif event.kind == "XID" and event.code in WORSE:
            found.discard(event.address)
    return frozenset(found)


def grade(event: Event, overrides: Mapping[str, str], is_contained: bool = False) -> Grade:
    """Return what an error means.

    Args:
        overrides: status by XID number as text, which goes before the table's.
        is_contained: whether the GPU is one of `contained`.
    """
    if event.kind == "SXid":
        # NVIDIA Fabric Manager user guide, "SXid Errors": fatal ones need a reset of the GPUs and switches.
        advice = "drain the machine and reset GPUs and NVSwitches"
        return (
            Grade(CRITICAL, MACHINE, advice, "NVSwitch error")
            if event.fatal
            else Grade(WARNING, INFORMATION, "watch the link", "NVSwitch error")
        )
    action, name = _TABLE.get(event.code, ("investigate", "not in the catalogue"))
    status = _STATUS[action]
    if action == "nvlink" and not event.fatal:
        status = WARNING
    # A double-bit error (48) before a contained one is the same error (NVIDIA, XID catalogue, 48).
    if event.code == DOUBLE_BIT and is_contained:
        status = WARNING
    chosen = overrides.get(str(event.code), status)
    level = _LEVEL[action]
    # A site that calls an error critical wants the GPU out of service, which the other levels do not do.
    if chosen == CRITICAL and status != CRITICAL and level not in (RESET, MACHINE, VENDOR):
        level = RESET
    return Grade(chosen, level, _ADVICE[action], name)


def _read_table() -> dict[int, tuple[str, str]]:
    rows = (line.split() for line in TABLE.strip().splitlines())
    return {int(code): (action, name) for code, action, name in rows}


_TABLE = _read_table()
