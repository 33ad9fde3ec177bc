# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Servers of Debian: installed on this machine, or from packages that are unpacked in the bench's cache."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from filelock import FileLock

from lab.bench import cache_dir
from lab.errors import LabError
from lab.unpacked import own_libraries, unpack


@dataclass(frozen=True)
class Server:
    """A server.

    Attributes:
        root: folder with ``usr`` and ``etc``; ``/`` if it is installed.
        path: what was looked for.
        environment: variables that its programs need.
    """

    root: Path
    path: Path
    environment: dict[str, str]


def server(package: str, pattern: str) -> Server:
    """Return a server; the test is skipped where it cannot be had, or fails in CI.

    Args:
        package: that has it.
        pattern: of its program or folder, below the root; the newest is taken.
    """
    installed = _newest(Path("/"), pattern)
    if installed:
        return Server(Path("/"), installed, dict(os.environ))
    try:
        root = _unpacked(package)
        found = _newest(root, pattern)
    except (KeyError, LabError, OSError, subprocess.CalledProcessError) as error:
        why = f"{package} is not installed, and cannot be unpacked: {error}"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    assert found, f"{package} has no {pattern}"
    return Server(root, found, {**os.environ, "LD_LIBRARY_PATH": str(root / "own")})


def _unpacked(package: str) -> Path:
    """Unpack a package of this machine's release of Debian, once."""
    suite = platform.freedesktop_os_release()["VERSION_CODENAME"]
    folder = cache_dir() / f"unpacked-{suite}-{package}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not (folder / "complete").exists():
            shutil.rmtree(folder, ignore_errors=True)
            unpack(folder, suite, [package])
            libraries = [path for path in folder.glob("usr/lib/*-linux-gnu/*.so.*") if path.is_file()]
            lacking = [path for path in libraries if not Path("/", path.relative_to(folder)).exists()]
            own_libraries(folder, lacking)
            (folder / "complete").touch()  # a killed run leaves a part
    return folder


def _newest(root: Path, pattern: str) -> Path | None:
    return next(iter(sorted(root.glob(pattern), reverse=True)), None)
