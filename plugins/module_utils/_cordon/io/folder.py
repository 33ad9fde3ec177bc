# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of the cordons: a file for each GPU or slice, which outlives boots and removals of services."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from ..._host.io.files import replace_file
from ..._nvml.gpu import GpuError
from ..cordon import SUFFIX, Cordon, damaged, dump, parse

FOLDER = Path("/var/lib/gpufarm/cordons")


def read(folder: Path | None = None) -> dict[str, Cordon]:
    """Return the cordons by the UUIDs of GPUs and slices.

    Raises:
        GpuError: when the folder cannot be read, so that nothing is known of any GPU.
    """
    folder = folder or FOLDER
    try:
        names = sorted(file.name for file in folder.iterdir())
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise GpuError(
            f"The folder {folder}, which tells which GPUs are cordoned, cannot be read ({error.strerror}):"
            " run this as root, or repair the folder."
        ) from error
    # A hidden file is one that is being written.
    found = (_read(folder, name) for name in names if not name.startswith("."))
    return {one.gpu: one for one in found if one is not None}


def write(cordon: Cordon, folder: Path | None = None) -> None:
    """Cordon a GPU or slice.

    Raises:
        OSError: it is not cordoned.
    """
    folder = folder or FOLDER
    folder.mkdir(mode=0o755, parents=True, exist_ok=True)
    replace_file(folder / f"{cordon.gpu}{SUFFIX}", dump(cordon), 0o644)


def remove(uuid: str, folder: Path | None = None) -> Cordon:
    """End the cordon of a GPU or slice and return it.

    Raises:
        GpuError: when there is none.
        OSError: it is not ended.
    """
    folder = folder or FOLDER
    cordons = read(folder)
    if uuid not in cordons:
        known = f"cordoned are {', '.join(cordons)}" if cordons else "nothing is cordoned on this machine"
        raise GpuError(f"'{uuid}' is not cordoned: {known}.")
    for name in (f"{uuid}{SUFFIX}", uuid):
        (folder / name).unlink(missing_ok=True)
    return cordons[uuid]


def _read(folder: Path, name: str) -> Cordon | None:
    """Return the cordon of a file; None when it has just ended."""
    try:
        if not stat.S_ISREG((folder / name).lstat().st_mode):
            return damaged(name, "what is there is no file")
        descriptor = os.open(folder / name, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
        with os.fdopen(descriptor, encoding="utf-8", errors="replace") as stream:
            return parse(name, stream.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        return damaged(name, f"its file cannot be read: {error.strerror}")
