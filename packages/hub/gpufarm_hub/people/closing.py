# SPDX-License-Identifier: GPL-3.0-or-later
"""Close the accounts that the hub has made to everything but notebooks.

``python -m gpufarm_hub.people.closing [--check]`` prints the names of those that an older hub left open, or
that have a login session or a manager of their own (user@.service(5)) all the same, and ends those.

A login session is a way around all limits of a notebook: what runs in it is in no notebook's unit. An account
that has expired gets none, as the stage `account` of PAM refuses it to sshd, cron, at, su and systemd alike
(pam_unix(8)). Units with ``User=`` and containers do without PAM.
"""

from __future__ import annotations

import argparse
import subprocess
from collections.abc import Collection
from datetime import date
from pathlib import Path

from .accounts import EXPIRED, made_here

SHADOW = Path("/etc/shadow")
LINGER = Path("/var/lib/systemd/linger")  # loginctl(1), enable-linger


def still_open(shadow: str, names: Collection[str], today: int) -> list[str]:
    """Return which accounts have not expired.

    Args:
        shadow: content of /etc/shadow; the eighth field is the day of expiration, and 0 means never to some
            programs (shadow(5)).
        names: of the accounts; those that the file does not have are not this machine's.
        today: days since 1970-01-01.
    """
    found = []
    for line in shadow.splitlines():
        name, *fields = line.split(":")
        if name in names and len(fields) >= 7:
            day = fields[6]
            if not (day.isdecimal() and 1 <= int(day) <= today):
                found.append(name)
    return sorted(found)


def _slices() -> set[str]:
    """Return the units that hold what users run outside of notebooks."""
    shown = subprocess.run(
        ["systemctl", "list-units", "--plain", "--no-legend", "--type=slice", "user-*.slice"],
        check=True,
        capture_output=True,
        text=True,
    )
    return {line.split()[0] for line in shown.stdout.splitlines()}


def close(check: bool) -> list[str]:
    """Let the accounts expire, and end what their users run outside of notebooks.

    Args:
        check: only look.

    Returns:
        The accounts at which there was something to do.

    Raises:
        OSError: /etc/shadow cannot be read.
        subprocess.CalledProcessError: an account could not be changed.
    """
    ours = {name: entry.pw_uid for name, entry in made_here().items()}
    today = (date.today() - date(1970, 1, 1)).days
    unexpired = still_open(SHADOW.read_text(encoding="utf-8"), ours, today)
    lingering = [name for name in ours if (LINGER / name).exists()]
    slices = _slices()
    inside = [name for name, uid in ours.items() if f"user-{uid}.slice" in slices]
    if not check:
        # First of all no new ones can come.
        for name in unexpired:
            subprocess.run(["/usr/sbin/usermod", "--expiredate", EXPIRED, "--", name], check=True)
        for name in lingering:
            (LINGER / name).unlink(missing_ok=True)
        for name in inside:
            subprocess.run(["systemctl", "stop", f"user-{ours[name]}.slice"], check=True)
    return sorted({*unexpired, *lingering, *inside})


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description="Close users' accounts to everything but notebooks.")
    parser.add_argument("--check", action="store_true", help="only tell which are open")
    for name in close(parser.parse_args().check):
        print(name)


if __name__ == "__main__":
    main()
