# SPDX-License-Identifier: GPL-3.0-or-later
"""Login sessions of users whose accounts the machine knows itself: they open no GPU.

``python -m gpufarm_hub.sharing.sessions`` takes that back for all.

Every account may open the nodes of GPUs; a notebook is kept to those of its slice by the rules of its unit.
Processes started by SSH or by a lingering manager of systemd are in the user's own unit, which gets
rules, too.
"""

from __future__ import annotations

import grp
import subprocess
from pathlib import Path

from gpufarm_hub.people import accounts

# Files that systemctl(1), set-property, writes and that survive reboots.
KEPT = Path("/etc/systemd/system.control")
FILES = ("50-DevicePolicy.conf", "50-DeviceAllow.conf")

# All kinds of nodes in /proc/devices but character devices with an "n", such as nvidia and nvidia-caps.
CLOSED = ("DevicePolicy=closed", "DeviceAllow=char-[!n]* rwm", "DeviceAllow=block-* rwm")
OPEN = ("DevicePolicy=auto", "DeviceAllow=")


class SessionError(Exception):
    """systemd did not take the rules; the text is for the administrator."""


def is_needed(name: str) -> bool:
    """Tell whether an account may have sessions: those that the hub has made have none."""
    try:
        return name not in grp.getgrnam(accounts.GROUP).gr_mem
    except KeyError:
        return True


def close(uid: int) -> None:
    """Keep a user's sessions from GPUs, now and after reboots.

    Raises:
        SessionError: systemd did not do it.
    """
    unit = f"user-{uid}.slice"
    if not (KEPT / f"{unit}.d" / FILES[0]).exists():
        _systemctl("set-property", unit, *CLOSED)


def reopen() -> None:
    """Give GPUs back to the sessions of all users.

    Raises:
        SessionError: systemd did not do it.
    """
    for folder in sorted(KEPT.glob("user-*.slice.d")):
        if (folder / FILES[0]).exists():
            _systemctl("set-property", folder.name.removesuffix(".d"), *OPEN)
            for name in FILES:
                (folder / name).unlink(missing_ok=True)
            if not any(folder.iterdir()):
                folder.rmdir()


def _systemctl(*arguments: str) -> None:
    command = ["systemctl", *arguments]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60)
    if done.returncode:
        raise SessionError(f"{' '.join(command[:3])}: {done.stderr.strip()}")


if __name__ == "__main__":
    reopen()
