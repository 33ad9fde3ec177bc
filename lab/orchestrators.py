"""Orchestrators that verify the TOSCA library: independent programs, each in an environment of its
own, fetched from the Python package index with the checksums of ``requirements/oracles``."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = ROOT / ".work" / "tosca-oracles"
LOCKS = ROOT / "requirements" / "oracles"


class Unavailable(Exception):
    """Why an oracle cannot be had, in one sentence."""


def environment(name: str) -> Path:
    """Make the virtual environment of an oracle.

    :param name: of its lock file
    :return: the folder with its programs
    :raises Unavailable: the package index cannot be reached
    """
    folder, lock = CACHE / name, LOCKS / f"{name}.lock"
    stamp = folder / "lock"
    if stamp.is_file() and stamp.read_bytes() == lock.read_bytes():
        return folder / "bin"
    shutil.rmtree(folder, ignore_errors=True)
    uv = Path(sys.executable).with_name("uv")
    commands: tuple[list[str | Path], ...] = (
        [uv, "venv", "--quiet", "--python", sys.executable, folder],
        [uv, "pip", "sync", "--quiet", "--require-hashes", lock],
    )
    for words in commands:
        done = subprocess.run(
            words, env=os.environ | {"VIRTUAL_ENV": str(folder)}, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise Unavailable(f"{name} cannot be had: {done.stderr.strip()}")
    shutil.copy(lock, stamp)
    return folder / "bin"
