# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Interfaces of a machine, and the programs that configure them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

from ..._host.io import timed
from ..files import FOLDER

# In the order in which the first file of a name hides others (systemd.network(5)).
FOLDERS = (FOLDER, *(f"/{place}/systemd/network" for place in ("run", "usr/local/lib", "usr/lib")))
IFUPDOWN = Path("/etc/network")
SECONDS = 20.0


class NetworkError(Exception):
    """The network cannot be read or changed; the text is one sentence for a user."""


def run(*words: str) -> str:
    """Return what a program prints.

    Raises:
        NetworkError: it fails or does not end in time.
    """
    try:
        done = timed.run(words, SECONDS)
    except OSError as error:
        raise NetworkError(f"{words[0]} cannot be started: {error.strerror}; install it.") from error
    if done.status != 0:
        reason = " ".join(done.errors.split()) or "it does not end"
        raise NetworkError(f"{' '.join(words)} failed: {reason}.")
    return done.output


def links() -> list[dict[str, Any]]:
    """Return the interfaces of the machine as ip prints them.

    Raises:
        NetworkError: they cannot be read.
    """
    found: list[dict[str, Any]] = json.loads(run("ip", "-json", "-details", "address", "show"))
    return found


def routes() -> list[dict[str, Any]]:
    """Return the routes of IPv4 and IPv6.

    Raises:
        NetworkError: they cannot be read.
    """
    return [way for version in "46" for way in json.loads(run("ip", "-json", f"-{version}", "route", "show"))]


def speeds() -> dict[str, int]:
    """Return the speed in Mbit/s of each interface that tells it; one without a link does not."""
    found = {}
    for path in Path("/sys/class/net").glob("*/speed"):
        with contextlib.suppress(OSError, ValueError):
            found[path.parent.name] = int(path.read_text(encoding="ascii"))
    return found


def files() -> dict[str, str]:
    """Return the files of systemd-networkd that it uses, by path: of each name the first."""
    found: dict[str, Path] = {}
    for folder in FOLDERS:
        for pattern in ("*.netdev", "*.network"):
            for path in sorted(Path(folder).glob(pattern)):
                found.setdefault(path.name, path)
    return {str(path): path.read_text(encoding="utf-8", errors="replace") for path in found.values()}


def ifupdown() -> dict[str, str]:
    """Return the files of ifupdown, where it is installed, by path."""
    if not shutil.which("ifup", path="/usr/sbin:/sbin"):
        return {}
    paths = [IFUPDOWN / "interfaces", *sorted((IFUPDOWN / "interfaces.d").glob("*"))]
    return {str(one): one.read_text(encoding="utf-8", errors="replace") for one in paths if one.is_file()}


def networkmanager() -> list[str]:
    """Return the names of the interfaces that NetworkManager configures, while it runs.

    Raises:
        NetworkError: it runs, and cannot be asked.
    """
    if not is_active("NetworkManager.service"):
        return []
    lines = run("nmcli", "--terse", "--fields", "DEVICE,STATE", "device").splitlines()
    pairs = (line.rpartition(":") for line in lines)
    return [name for name, _sign, state in pairs if state != "unmanaged"]


def is_active(unit: str) -> bool:
    """Return whether a unit of systemd runs.

    Raises:
        NetworkError: systemd does not answer in time.
    """
    status = timed.run(["systemctl", "is-active", "--quiet", unit], SECONDS).status
    if status is None:
        raise NetworkError(f"systemd does not tell in {SECONDS:.0f} seconds whether {unit} runs; run again.")
    return status == 0


def networkd() -> dict[str, Any]:
    """Return whether systemd-networkd runs, and which file it uses for each interface that it configures.

    Raises:
        NetworkError: it runs, and cannot be asked.
    """
    if not is_active("systemd-networkd.service"):
        return {"running": False, "files": {}}
    told = json.loads(run("networkctl", "list", "--json=short"))["Interfaces"]
    return {
        "running": True,
        "files": {one["Name"]: one["NetworkFile"] for one in told if one.get("NetworkFile")},
    }


def connection() -> str:
    """Return the address of this machine to which Ansible is connected; empty if it is not by SSH.

    sshd leaves it in the environment of what it starts (ssh(1)), and sudo takes it away from its children.
    """
    process = os.getpid()
    while process > 1:
        environment = Path(f"/proc/{process}/environ").read_bytes().split(b"\0")
        told = [
            line.partition(b"=")[2].split() for line in environment if line.startswith(b"SSH_CONNECTION=")
        ]
        if told and len(told[0]) == 4:
            return told[0][2].decode()
        # The name of the program, in parentheses, may have any signs (proc_pid_stat(5)).
        process = int(Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return ""
