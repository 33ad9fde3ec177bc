#!/usr/bin/python3
"""Print what is on this machine that a role could have made: paths, packages, accounts, enabled units.

Usage: everything.py > FILE.json
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import hashlib
import json
import os
import pwd
import stat
import subprocess
import sys
from pathlib import Path

ROOTS = ("/boot", "/etc", "/home", "/mnt", "/opt", "/root", "/srv", "/usr/local", "/var")
# Paths that change by themselves, or belong to a package manager or to the test.
PASSED_OVER = (
    *("/etc/.pwd.lock", "/etc/ld.so.cache", "/etc/mtab", "/root/.ansible", "/root/.cache", "/srv/everything"),
    *("/var/cache", "/var/lib/apt", "/var/lib/dpkg", "/var/lib/systemd", "/var/lib/ucf", "/var/lib/private"),
    *("/var/log/apt", "/var/log/dpkg.log", "/var/log/alternatives.log", "/var/log/journal"),
    *("/var/log/wtmp", "/var/log/wtmp.db", "/var/log/btmp", "/var/log/lastlog", "/var/tmp"),
    *("/etc/passwd", "/etc/group", "/etc/shadow", "/etc/gshadow", "/etc/subuid", "/etc/subgid"),
    *("/var/lib/nvmlsim", "/var/lib/planted"),
)
# dpkg-db-backup(8) keeps seven copies of each, and makes the first at the first midnight of a machine.
COPIES = ("/var/backups/alternatives.tar.", "/var/backups/apt.extended_states.", "/var/backups/dpkg.")
# Of these only the names count: what is in them grows by itself.
GROWING = ("/var/log/", "/var/spool/")


def main() -> None:
    """Print it."""
    packaged = files_of_packages()
    json.dump(
        {
            "paths": {
                path: look(path)
                for path in sorted(walk())
                if path.startswith("/etc/") or path not in packaged
            },
            "packages": words("dpkg-query", "--show", "--showformat", "${Package}\n"),
            "users": sorted(entry.pw_name for entry in pwd.getpwall()),
            "groups": sorted(entry.gr_name for entry in grp.getgrall()),
            "units": words("systemctl", "list-unit-files", "--state=enabled", "--no-legend", "--plain")[::3],
        },
        sys.stdout,
    )


def words(*command: str) -> list[str]:
    # An emulated machine takes longer than the 25 seconds after which systemctl gives up.
    environment = {**os.environ, "SYSTEMD_BUS_TIMEOUT": "300"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    return done.stdout.split()


def files_of_packages() -> set[str]:
    """The paths that packages have brought (deb-conffiles(5) are among them)."""
    lists = Path("/var/lib/dpkg/info").glob("*.list")
    return {line for listed in lists for line in listed.read_text().splitlines()}


def walk() -> list[str]:
    found: list[str] = []
    for root in ROOTS:
        for folder, folders, files in os.walk(root):
            here = [f"{folder}/{name}" for name in folders + files]
            found += [path for path in here if not passed_over(path)]
            folders[:] = [name for name in folders if not passed_over(f"{folder}/{name}")]
    return found


def passed_over(path: str) -> bool:
    # useradd(8) and its like keep the file before with a hyphen behind its name
    return (
        path.rstrip("-") in PASSED_OVER
        or path.startswith(COPIES)
        or path.endswith(("/__pycache__", ".pyc"))
        or os.path.ismount(path)
    )


def look(path: str) -> str:
    """Description of a path, in words that can be compared."""
    try:
        found = os.lstat(path)
        kind = stat.filemode(found.st_mode)
        if path.startswith(GROWING):
            return kind[0]
        about = f"{kind} {found.st_uid}:{found.st_gid}"
        if stat.S_ISLNK(found.st_mode):
            return f"{about} {Path(path).readlink()}"
        if stat.S_ISREG(found.st_mode):
            return f"{about} {hashlib.sha256(Path(path).read_bytes()).hexdigest()[:16]}"
        return about
    except FileNotFoundError:
        return "gone"


if __name__ == "__main__":
    main()
