#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a Debian package, or an archive, with the fakes under the names of the real programs.

usage: package.py SOURCE TARGET [VERSION]    (folder with fake.py and *_flags.json; NAME.deb or
    NAME.tar.gz; default 1.11.0)
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

# The programs' names and the units' are those of the packages of m3scluster/clusterd.
PROGRAMS = ("mesos-master", "mesos-agent")
LIBRARY = "lib/mesos-fake"


def fill(prefix: Path, source: Path) -> None:
    """Put the programs below a folder, from which they run wherever it is."""
    library = prefix / LIBRARY
    library.mkdir(parents=True)
    for name in ("fake.py", "master_flags.json", "agent_flags.json"):
        shutil.copyfile(source / name, library / name)
    (prefix / "sbin").mkdir()
    for program in PROGRAMS:
        start = f'exec -a "$0" /usr/bin/python3 "$(dirname "$0")/../{LIBRARY}/{program}" "$@"\n'
        (library / program).symlink_to("fake.py")
        (prefix / "sbin" / program).write_text("#!/bin/bash\n" + start)
        (prefix / "sbin" / program).chmod(0o755)


def make_archive(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), source)
        with tarfile.open(target, "w:gz") as archive:
            for name in ("lib", "sbin"):
                archive.add(Path(folder) / name, name)


def make_package(source: Path, target: Path, version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        fill(root / "usr", source)
        (root / "DEBIAN").mkdir()
        fields = {
            "Package": "aventer-mesos",
            "Version": version,
            "Architecture": "all",
            "Depends": "python3, python3-kazoo",
            "Maintainer": "Fake <none@example.org>",
            "Description": "fake",
        }
        (root / "DEBIAN/control").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
        words = ["dpkg-deb", "--root-owner-group", "-Znone", "--build", str(root), str(target)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    wanted = Path(sys.argv[2])
    if wanted.suffix == ".deb":
        make_package(Path(sys.argv[1]), wanted, (sys.argv[3:] or ["1.11.0"])[0])
    else:
        make_archive(Path(sys.argv[1]), wanted)
