#!/usr/bin/python3
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a Debian package, or an archive, with the fakes under the names of the real programs.

usage: package.py SOURCE TARGET [VERSION]    (NAME.deb or NAME.tar.gz; default 1.11.0)

SOURCE is the folder with fake.py and *_flags.json. To have a real Mesos in place of the fakes, it is a Debian
package of Mesos, or a folder with the programs mesos-master and mesos-agent in it or in `sbin`.
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
NEEDS = "python3, python3-kazoo"


def fill(prefix: Path, source: Path) -> str:
    """Put the programs below a folder, from which they run wherever it is; return what they need."""
    if source.is_file():
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["dpkg-deb", "--extract", str(source), folder], check=True)
            [master] = Path(folder).rglob(f"sbin/{PROGRAMS[0]}")
            shutil.copytree(master.parents[1], prefix, symlinks=True, dirs_exist_ok=True)
        fields = ["dpkg-deb", "--field", str(source), "Depends"]
        return subprocess.run(fields, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    if (source / "sbin" / PROGRAMS[0]).exists():
        shutil.copytree(source, prefix, symlinks=True, dirs_exist_ok=True)
        return ""
    if (source / PROGRAMS[0]).exists():
        shutil.copytree(source, prefix / "sbin", symlinks=True, dirs_exist_ok=True)
        return ""
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
    return NEEDS


def make_archive(source: Path, target: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder), source)
        with tarfile.open(target, "w:gz") as archive:
            for path in sorted(Path(folder).iterdir()):
                archive.add(path, path.name)


def make_package(source: Path, target: Path, version: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        root.chmod(0o755)
        needs = fill(root / "usr", source)
        (root / "DEBIAN").mkdir()
        fields = {
            "Package": "aventer-mesos",
            "Version": version,
            "Architecture": "all",
            **({"Depends": needs} if needs else {}),
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
