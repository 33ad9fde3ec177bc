# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State of Lustre's kernel modules, kept in a file that a reboot removes, and how programs end."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

RUN = Path("/run/lustre-fake")
VAR = Path("/var/lib/lustre-fake")
LOG = Path("/var/log/lustre-fake.log")
TOLD = Path("/etc/lustre-fake")  # what a test wants to happen
_VERSION_FILE = Path("/usr/lib/lustre-fake/version")
VERSION = _VERSION_FILE.read_text(encoding="utf-8") if _VERSION_FILE.exists() else "2.15.8"
# From Lustre 2.16, lnetctl asks the kernel over Netlink.
NETLINK = [int(one) for one in VERSION.split(".")[:2]] >= [2, 16]
PORT = 988  # lnet/lnet/acceptor.c, accept_port
# lnet/lnet/api-ni.c, as far as `lnetctl global show` shows them.
GLOBAL = {
    "numa_range": 0,
    "max_interfaces": 200,
    "discovery": 1,
    "drop_asym_route": 0,
    "retry_count": 2,
    "transaction_timeout": 150,
    "health_sensitivity": 100,
    "recovery_interval": 1,
    "router_sensitivity": 100,
    "response_tracking": 3,
    "recovery_limit": 0,
    "max_recovery_ping_interval": 900,
}


def fail(status: int, words: str) -> NoReturn:
    print(words, file=sys.stderr)
    raise SystemExit(status)


def reason(code: int) -> str:
    return os.strerror(code)


def run(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False)


def empty() -> dict[str, Any]:
    return {
        "loaded": False,
        "configured": False,
        "nets": {},
        "routes": [],
        "peers": [],
        "global": dict(GLOBAL),
        "parameters": {},
        "clients": {},
        "targets": {},
    }


@contextlib.contextmanager
def kernel(write: bool = False) -> Iterator[dict[str, Any]]:
    """Give what the kernel knows; with `write` it is kept afterwards."""
    RUN.mkdir(mode=0o755, exist_ok=True)
    with (RUN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX if write else fcntl.LOCK_SH)
        file = RUN / "kernel.json"
        known = json.loads(file.read_text()) if file.exists() else empty()
        yield known
        if write:
            new = file.with_suffix(".new")
            new.write_text(json.dumps(known))
            new.replace(file)
            # Read by the unit of LNet, as /proc/sys/lnet cannot be made.
            if known["loaded"]:
                (RUN / "loaded").touch()
            else:
                (RUN / "loaded").unlink(missing_ok=True)


def mounted() -> dict[str, str]:
    """Return the sources of mounts by their paths."""

    def plain(text: str) -> str:
        return text.encode().decode("unicode_escape")

    lines = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    return {plain(one[4]): plain(one[one.index("-") + 2]) for one in lines}


def clients() -> dict[str, dict[str, Any]]:
    """Return the file systems that are mounted as a client, by their paths."""
    now = mounted()
    with kernel() as known:
        return {path: one for path, one in known["clients"].items() if now.get(path) == one["source"]}


def targets() -> dict[str, dict[str, Any]]:
    """Return the targets that are mounted, by their paths."""
    now = mounted()
    with kernel() as known:
        return {path: one for path, one in known["targets"].items() if now.get(path) == one["device"]}


def load(name: str) -> None:
    """Load a module as modprobe does: there must be one that was built for the running kernel."""
    release = os.uname().release
    found = run("modinfo", "-F", "vermagic", name)
    if found.returncode != 0:
        fail(1, f"modprobe: FATAL: Module {name} not found in directory /lib/modules/{release}")
    if found.stdout.split()[0] != release:
        fail(1, f"modprobe: ERROR: could not insert '{name}': Exec format error")
    with kernel(write=True) as known:
        known["loaded"] = True


def unload() -> None:
    """Unload all modules, as lustre_rmmod does; what is in use stays."""
    if clients() or targets():
        fail(1, "rmmod: ERROR: Module lustre is in use")
    with kernel(write=True) as known:
        known.update(empty())
    run("systemctl", "stop", "lustre-fake-acceptor")


ENODEV, EIO, EINVAL, ENOENT = errno.ENODEV, errno.EIO, errno.EINVAL, errno.ENOENT
