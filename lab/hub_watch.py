"""Runs on a hub's machine until its reader is gone: who holds what, and the hub's memory, as JSON lines."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

EVERY = 0.25  # seconds
LEASES = Path("/var/lib/jupyterhub/leases.json")


def show(pattern: str, *properties: str) -> list[dict[str, str]]:
    """Return properties of units; one that is given several times has its values in one line."""
    command = ["systemctl", "show", pattern, f"--property={','.join(properties)}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    units = []
    for block in filter(None, text.split("\n\n")):
        unit: dict[str, str] = {}
        for line in block.splitlines():
            key, _equals, value = line.partition("=")
            unit[key] = f"{unit[key]} {value}" if key in unit else value
        units.append(unit)
    return units


def memory(pid: str) -> dict[str, int]:
    """Return resident memory of a process, now and at most, in KiB (proc(5), VmRSS and VmHWM)."""
    lines = (line.split() for line in Path(f"/proc/{pid}/status").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) for words in lines if words[0] in ("VmRSS:", "VmHWM:")}


while True:
    notebooks = show("jupyterhub-notebook-*", "Id", "ActiveState", "DeviceAllow")
    hub = show("jupyterhub.service", "MainPID")[0]["MainPID"]
    sample = {
        "leases": json.loads(LEASES.read_text()).get("leases", {}) if LEASES.exists() else {},
        "units": {
            unit["Id"]: unit.get("DeviceAllow", "")
            for unit in notebooks
            if unit["ActiveState"] not in ("inactive", "failed")
        },
        "memory": memory(hub) if hub != "0" else {},
    }
    try:
        print(json.dumps(sample), flush=True)
    except BrokenPipeError:
        sys.exit()
    time.sleep(EVERY)
