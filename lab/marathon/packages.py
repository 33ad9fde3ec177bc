#!/usr/bin/env python3
"""Pack the fakes under the names that the real ones have.

usage: packages.py FOLDER

`marathon-VERSION.tgz` holds `marathon-VERSION/bin/marathon`, as the archive of Marathon does;
`chronos-VERSION.jar` is started by `java -cp chronos.jar org.apache.mesos.chronos.scheduler.Main`, for which
`java` is a fake that runs it with Python. Each has its `.sha256` beside it.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import hashlib
import io
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

LAB = Path(__file__).resolve().parents[1]
MARATHON_VERSIONS = ("1.11.24", "1.11.25")  # the second only exists here, to upgrade to
CHRONOS_VERSION = "3.0.2"
LAUNCHER = """\
#!/bin/sh
home=$(dirname "$(dirname "$(readlink -f "$0")")")
PYTHONPATH=$home/lib FAKE_VERSION={version} exec python3 -m lab.marathon.server "$@"
"""
# Takes what Java takes before the name of the class, and leaves it out.
JAVA = """\
#!/bin/sh
while [ $# -gt 0 ]; do
  case $1 in
    -cp) jar=$2; shift 2 ;;
    -*) shift ;;
    *) break ;;
  esac
done
[ "$1" = org.apache.mesos.chronos.scheduler.Main ] || exit 1
shift
exec python3 "$jar" "$@"
"""
JAR_MAIN = "from lab.chronos.server import main\nraise SystemExit(main())\n"


def sources(*packages: str) -> Iterator[tuple[str, bytes]]:
    """Yield the files of the fakes by their names in an archive."""
    yield "lab/__init__.py", b""
    for package in packages:
        for path in sorted((LAB / package).iterdir()):
            if path.suffix in (".py", ".json"):
                yield f"lab/{package}/{path.name}", path.read_bytes()


def finish(path: Path) -> None:
    """Write the checksum of a file beside it."""
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    path.with_name(path.name + ".sha256").write_text(f"{digest}  {path.name}\n")


def marathon(folder: Path, version: str) -> None:
    """Make the archive of Marathon."""
    path = folder / f"marathon-{version}.tgz"
    with tarfile.open(path, "w:gz") as archive:
        launcher = LAUNCHER.format(version=version).encode()
        files = [("bin/marathon", launcher), *((f"lib/{name}", data) for name, data in sources("marathon"))]
        for name, data in files:
            entry = tarfile.TarInfo(f"marathon-{version}/{name}")
            entry.size, entry.mode = len(data), 0o755 if name.startswith("bin/") else 0o644
            archive.addfile(entry, io.BytesIO(data))
    finish(path)


def chronos(folder: Path) -> None:
    """Make the jar of Chronos, and the fake of Java."""
    path = folder / f"chronos-{CHRONOS_VERSION}.jar"
    with zipfile.ZipFile(path, "w") as jar:
        jar.writestr("__main__.py", JAR_MAIN)
        for name, data in sources("marathon", "chronos"):
            jar.writestr(name, data)
    finish(path)
    java = folder / "java/bin/java"
    java.parent.mkdir(parents=True, exist_ok=True)
    java.write_text(JAVA)
    java.chmod(0o755)


def main() -> int:
    """Pack both."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for version in MARATHON_VERSIONS:
        marathon(folder, version)
    chronos(folder)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
