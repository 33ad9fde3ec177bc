# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parse the output of programs of the CernVM-FS client, without I/O.

Sources: source of CernVM-FS 2.12, cvmfs/options.cc (OptionsManager::Dump) and cvmfs/talk.cc.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import Mapping

from .parameters import AT_MOUNT


def parse_parameters(text: str) -> dict[str, str]:
    """Return parameters with their values.

    Args:
        text: what ``cvmfs_talk parameters`` or ``cvmfs_config showconfig`` prints, with values quoted for a
            shell: ``NAME=VALUE    # from FILE``.
    """
    found = {}
    for line in text.splitlines():
        name, separator, rest = line.partition("=")
        if not separator or not re.fullmatch("CVMFS_[A-Za-z0-9_]+", name):
            continue
        value = re.sub(r"\s+# from .*$", "", rest)
        with contextlib.suppress(ValueError):  # a quotation mark of the value's own
            value = " ".join(shlex.split(value))
        if value:
            found[name] = value
    return found


def stale(running: Mapping[str, str], configured: Mapping[str, str]) -> tuple[list[str], list[str]]:
    """Compare what a mounted repository runs with and what its files say.

    Returns:
        The names of parameters that differ, and those among them that need another mount.
    """
    # These two are made up by the programs themselves.
    names = (running.keys() | configured.keys()) - {"CVMFS_CACHE_DIR", "CVMFS_REPOSITORY_NAME", "CVMFS_FQRN"}
    differ = sorted(name for name in names if running.get(name) != configured.get(name))
    return differ, [name for name in differ if name in AT_MOUNT]


def parse_revision(text: str) -> int | None:
    """Return the revision that ``cvmfs_talk revision`` prints; None when it prints none."""
    return int(text) if re.fullmatch(r"\s*[0-9]+\s*", text) else None


def parse_proxy(text: str) -> str:
    """Return the proxy in use as ``cvmfs_talk proxy info`` prints it; empty when there is none."""
    found = re.search(r"(?m)^Active proxy: \[[0-9]+\] (\S+)", text)
    return found[1] if found else ""


def parse_cache_size(text: str) -> int | None:
    """Return the bytes in the cache as ``cvmfs_talk cache size`` prints them; None when it prints none."""
    found = re.search(r"Current cache size is [0-9]+MB \(([0-9]+) Bytes\)", text)
    return int(found[1]) if found else None


def foreign(names: list[str], alien: bool = False) -> list[str]:
    """Return what does not belong into a cache.

    Args:
        names: what its folder holds.
        alien: whether it is an alien cache, which holds the objects themselves.
    """
    # cvmfs/cache_posix.cc: 256 folders of objects, and one for those under way; else one folder for each
    # repository or for all, and files of locks.
    ours = r"[0-9a-f]{2}|txn|quarantaine|\..*" if alien else r"shared|[^.]+\..+|lock\..*|\..*|lost\+found"
    return sorted(name for name in names if not re.fullmatch(ours, name))
