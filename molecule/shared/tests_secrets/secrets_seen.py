#!/usr/bin/python3
"""Print where secrets of this machine are to be seen beside their own files; never print the secrets.

They are in folders called `secrets`. Looked at are the whole journal, the command lines of processes, and
files that everybody reads.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# Secrets of roles are random and longer than this; secrets of scenarios begin with the other.
SECRET = re.compile(r"(?=\S*[0-9])(?=\S*[a-zA-Z])[\w+-]{32,}|s3cret[\w-]*")
# Files beside them without secrets; the address of a client's registration has its name in it.
PUBLIC = re.compile(
    r'-----BEGIN CERTIFICATE.*?END CERTIFICATE-----|"(client_id|registration_uri)": "[^"]*"', re.DOTALL
)
KEPT_IN = ("/etc", "/opt", "/var/lib")
READ_BY_ALL = ("/etc", "/opt/gpufarm", "/run", "/tmp", "/var/lib", "/var/log", "/var/tmp")
LARGEST = 1 << 20  # bytes of a file


def main() -> None:
    """Print how many secrets there are, and where which are seen."""
    secrets = {
        secret: str(path)
        for root in KEPT_IN
        for path in files(root)
        if "secrets" in path.parts
        for secret in SECRET.findall(PUBLIC.sub("", text(path)))
    }
    seen = sorted(
        {f"{secrets[secret]} {place}" for place, said in places() for secret in secrets if secret in said}
    )
    json.dump({"secrets": len(secrets), "seen": seen}, sys.stdout)


def places() -> Iterator[tuple[str, str]]:
    """Yield names of places and what is to be read there."""
    journal = subprocess.run(
        ["journalctl", "--no-pager", "--output=json", "--output-fields=MESSAGE,_CMDLINE,_SYSTEMD_UNIT"],
        check=True,
        capture_output=True,
    ).stdout.decode(errors="replace")
    for line in journal.splitlines():
        yield f"in the journal of {json.loads(line).get('_SYSTEMD_UNIT')}", line
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        yield f"in {path}", text(path)
    for root in READ_BY_ALL:
        for path in files(root):
            if readable_by_all(path):
                yield f"in {path}", text(path)


def files(root: str) -> Iterator[Path]:
    """Yield the files of a folder, without those of other file systems."""
    for folder, folders, names in os.walk(root):
        folders[:] = [name for name in folders if not os.path.ismount(f"{folder}/{name}")]
        for name in names:
            path = Path(folder, name)
            try:
                found = path.lstat()
            except OSError:
                continue
            if stat.S_ISREG(found.st_mode) and found.st_size < LARGEST:
                yield path


def readable_by_all(path: Path) -> bool:
    """Tell whether everybody reads a file: its mode and those of all folders above allow it."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH) and all(
            parent.stat().st_mode & stat.S_IXOTH for parent in path.parents
        )
    except OSError:
        return False


def text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


if __name__ == "__main__":
    main()
