# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Debian packages that are unpacked into a folder, not installed, so that nothing on this machine changes."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab import rootfs
from lab.recipe import KEYRING


def unpack(folder: Path, suite: str, packages: Sequence[str]) -> None:
    """Unpack packages and what they depend on.

    :param folder: a new one
    :param suite: Debian release
    :raises LabError: this machine's apt knows no mirror of Debian
    :raises OSError: mmdebstrap is missing
    :raises subprocess.CalledProcessError: the mirror lacks the packages
    """
    source = f"deb [signed-by={KEYRING}] {rootfs.recipe_for(suite, False).mirror} {suite} main"
    words: list[str | Path] = ["mmdebstrap", "--variant=extract", f"--include={','.join(packages)}"]
    # a snapshot mirror has old Release dates
    words += ['--aptopt=Acquire::Check-Valid-Until "false"', '--aptopt=Apt::Install-Recommends "false"']
    subprocess.run([*words, suite, folder, source], check=True, capture_output=True, text=True)


def own_libraries(folder: Path, libraries: Iterable[Path]) -> Path:
    """Make a value of ``LD_LIBRARY_PATH`` with some libraries of a folder; all others are this machine's.

    :param folder: where the packages were unpacked
    :param libraries: paths of libraries in it
    """
    own = folder / "own"
    own.mkdir()
    for library in libraries:
        (own / library.name).symlink_to(library)
    return own
