# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The settings of the role scratch: what is wrong with them, and the files that they result in. No I/O.

Source: tmpfiles.d(5), "Type" (e), "Age".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._mounts.table import mount_of, parse
from .._quota import parse_size

_PATH = re.compile(r"(/[A-Za-z0-9_@+=,.-]+)+")
LUSTRE = ("lustre", "fuse.lustre")
# File systems that count what users have; on an NFS server, the server does.
COUNTING = ("ext4", "xfs", *LUSTRE)


def plan(
    settings: Mapping[str, Any],
    mountinfo: str | None = None,
    found: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Return what the settings result in on a machine.

    Args:
        settings: the variables of the role without its name.
        mountinfo: content of ``/proc/self/mountinfo``; None to check the settings alone.
        found: what the module path_info tells of the paths in `way`; nothing before it is asked.

    Returns:
        `problems`, each a sentence; `way`, all folders from the topmost one to that of the areas; if there
        are no problems, also `command`, the settings of the command gpufarm-scratch, `tmpfiles`, the rules
        by which systemd-tmpfiles removes files, empty for none, and `packages` that the quota needs.
    """
    problems = [*_wrong(settings)]
    if problems:
        return {"problems": problems, "way": []}
    path, days = settings["path"], settings["days"]
    parts = path.split("/")
    # With the dot, the last one is looked at again after it was mounted on demand.
    way = [*("/".join(parts[:number]) for number in range(2, len(parts) + 1)), f"{path}/."]
    if mountinfo is None:
        return {"problems": [], "way": way}
    mount = mount_of(path, parse(mountinfo))
    if mount is None or mount.path == "/":
        problems.append(
            f"{path} is on the file system of the machine's root, which users would fill; mount a file "
            "system there first, or give a folder of one in scratch_path."
        )
    problems += dict.fromkeys(_in_the_way(found or {}))
    size = parse_size(settings["quota"])
    limits = bool(size or settings["quota_files"])
    if mount and limits and mount.kind not in COUNTING:
        problems.append(
            f"A quota is set, and {path} is on {mount.kind}, where it cannot be set from this machine; "
            f"leave it out, or use one of {', '.join(COUNTING)}."
        )
    if problems or mount is None:
        return {"problems": problems, "way": way}
    by_lustre = mount.kind in LUSTRE
    return {
        "problems": [],
        "way": way,
        "command": {
            "path": path,
            "days": days,
            "warning_days": settings["warning_days"],
            "reading_counts": "noatime" not in mount.options,
            "limits": limits,
            "quota": size,
            "quota_files": settings["quota_files"],
            "user_quotas": {},
            "by_lustre": by_lustre,
        },
        "tmpfiles": _rules(path, days) if days and settings["remove"] else "",
        "packages": ["quota"] if limits and not by_lustre else [],
    }


def _wrong(settings: Mapping[str, Any]) -> Iterator[str]:
    path = settings["path"]
    if not _PATH.fullmatch(path) or {".", ".."} & set(path.split("/")):
        yield f"scratch_path is {path!r}, which is no plain absolute path; give one such as /scratch."
    if settings["days"] < 0:
        yield f"scratch_days is {settings['days']}; give 0 for never, or a number of days."
    elif settings["days"] and not 0 <= settings["warning_days"] < settings["days"]:
        yield (
            f"scratch_warning_days is {settings['warning_days']}, and files are removed after "
            f"{settings['days']}; give fewer days than that, or 0 for no warning."
        )
    if settings["quota_files"] < 0:
        yield f"scratch_quota_files is {settings['quota_files']}; give 0 for any, or a number of files."
    try:
        parse_size(settings["quota"])
    except ValueError as error:
        yield f"scratch_quota: {error}."


def _in_the_way(found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    for name, one in found.items():
        path = name.removesuffix("/.")
        if one["kind"] != "folder":
            yield f"{path} is no folder, or a symbolic link; give the folder itself in scratch_path."
        elif one["owner"] != "root" or int(one["mode"], 8) & 0o022:
            yield (
                f"{path} can be changed by others than root (owner {one['owner']}, mode {one['mode']}), who "
                "could put anything in the place of areas; 'chown root' and 'chmod go-w' mend it, or choose "
                "another scratch_path."
            )


def _rules(path: str, days: int) -> str:
    # Only what is there already (e): before the file system is mounted, nothing is made beneath it.
    return (
        "# Written by gpufarm.cluster.scratch; changes are lost.\n"
        f"e {path}/users/* - - - {days}d\n"
        f"e {path}/jobs - - - {days}d\n"
    )
