# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role staging: what is wrong with them, and the file that they result in. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._mounts.table import mount_of, parse

_PATH = re.compile(r"(/[A-Za-z0-9_@+=,.-]+)+")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_PARTITION = re.compile(r"([A-Za-z0-9_.-]+(,[A-Za-z0-9_.-]+)*)?")


def plan(settings: Mapping[str, Any], mountinfo: str | None = None) -> dict[str, Any]:
    """Return what the settings result in.

    Args:
        settings: the variables of the role without its name.
        mountinfo: content of ``/proc/self/mountinfo``; None to check the settings alone.

    Returns:
        `problems`, each a sentence; `paths`, the folders that are used; if there are no problems, also
        `command`, the settings of the commands gpufarm-submit and gpufarm-stage.
    """
    problems = [*_wrong(settings)]
    if problems:
        return {"problems": problems, "paths": []}
    stores = {one["name"]: one["path"] for one in settings["stores"]}
    used = {"staging_areas": settings["areas"], **{f"store {name}": path for name, path in stores.items()}}
    if mountinfo is not None:
        mounts = parse(mountinfo)
        for what, path in used.items():
            mount = mount_of(path, mounts)
            if mount is None or mount.path == "/":
                problems.append(
                    f"{path} ({what}) is on the file system of the machine's root, which copies would fill;"
                    " mount a file system there first, or give a folder of one."
                )
    command = {"areas": settings["areas"], "stores": stores, "partition": settings["partition"]}
    return {"problems": problems, "paths": [f"{path}/." for path in used.values()], "command": command}


def _wrong(settings: Mapping[str, Any]) -> Iterator[str]:
    if not _plain(settings["areas"]):
        yield (
            f"staging_areas is {settings['areas']!r}, which is no plain absolute path; give one such as"
            " /scratch/areas/users."
        )
    names = [one["name"] for one in settings["stores"]]
    for one in settings["stores"]:
        if not _NAME.fullmatch(one["name"]):
            yield f"staging_stores has the name {one['name']!r}; give letters, digits, dots and dashes."
        if not _plain(one["path"]):
            yield (
                f"staging_stores has the path {one['path']!r}, which is no plain absolute path; give one"
                " such as /lustre/bulk."
            )
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"staging_stores has {name!r} more than once; give each store a name of its own."
    if not _PARTITION.fullmatch(settings["partition"]):
        yield (
            f"staging_partition is {settings['partition']!r}, which is no partition; give its name, or"
            " nothing."
        )


def _plain(path: str) -> bool:
    return bool(_PATH.fullmatch(path)) and not {".", ".."} & set(path.split("/"))
