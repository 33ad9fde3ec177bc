# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mount, settings of the command and problems that result from the settings of homes. No I/O.

Sources: systemd.mount(5); systemd.unit(5), "String Escaping for Inclusion in Unit Names"; nfs(5),
"DESCRIPTION".
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .._mounts.table import unit_name
from .._quota import parse_size
from . import exports
from .options import ALWAYS, COUNTING, NAME, option_problem

# File systems on a disk that homes can be on, as the role mounts them.
ON_DISK = ("ext4", "xfs")
# File systems of each kind, as /proc/self/mountinfo names them, with clients of Lustre in the kernel and over
# FUSE; nothing for any that is on this machine.
TYPES: dict[str, tuple[str, ...]] = {"lustre": ("lustre", "fuse.lustre"), "nfs": ("nfs", "nfs4"), "local": ()}
_PATH = re.compile(r"(/[A-Za-z0-9_@+=,.-]+)+")
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?\])"
_EXPORT = re.compile(_HOST + r":(/[A-Za-z0-9_@+=,.-]*)+")
_DEVICE = re.compile(r"(?:UUID|LABEL|PARTUUID|PARTLABEL)=[A-Za-z0-9_.-]+|/dev(/[A-Za-z0-9_@+=,.:-]+)+")
# Folders that are no place for homes themselves, and those below which there is none either.
_SYSTEM = re.compile(
    "/(media|mnt|opt|srv|var)|/(bin|boot|cvmfs|dev|etc|lib|lib64|proc|root|run|sbin|sys|tmp|usr|var/tmp)(/.*)?"
)


def plan(settings: Mapping[str, Any], file_system: str = "") -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: as for `exports.on_this_machine`.
        file_system: type of the one that is mounted; empty if none is.

    Returns:
        ``problems``, each a sentence; if there are none, ``units``, texts by name; ``mounts``, as the
        module mount_validate takes them; ``command``, the settings of the command that makes homes;
        ``packages`` that the mount and the limits need; ``folder``, whether the homes are in a folder that
        has to be there; ``exports``, texts by name; ``mounts_nfs``, whether a server has to answer.
    """
    wrong = problems(settings)
    if wrong:
        return {"problems": wrong}
    settings = exports.on_this_machine(settings)
    return {
        "problems": [],
        "folder": not settings["source"],
        "exports": {exports.NAME: exports.text(settings)} if settings["exports"] else {},
        "mounts_nfs": settings["kind"] == "nfs",
        "units": unit(settings, file_system),
        "mounts": mounts(settings, file_system),
        "command": command_settings(settings),
        "packages": packages(settings),
    }


def problems(settings: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings, one sentence each.

    Args:
        settings: as for `exports.on_this_machine`.
    """
    return [
        *exports.problems(settings),
        *_path_problems(settings["path"]),
        *_source_problems(settings["kind"], settings["source"]),
        *_option_problems(settings),
        *_quota_problems(settings),
    ]


def _path_problems(path: str) -> Iterator[str]:
    if not _PATH.fullmatch(path) or re.search(r"/\.\.?(/|$)", path):
        yield (
            f"shared_home_path is '{path}'; give an absolute path of plain characters without a / at its"
            " end, such as /home."
        )
    elif _SYSTEM.fullmatch(path):
        yield (
            f"shared_home_path is {path}, which is the system's; choose a folder such as /home or /srv/home."
        )


def _source_problems(kind: str, source: str) -> Iterator[str]:
    if kind == "nfs" and (not _EXPORT.fullmatch(source) or "/.." in source):
        yield (
            f"shared_home_source is '{source}'; with shared_home_kind nfs give SERVER:/PATH, such as"
            " nfs.example.org:/export/home."
        )
    if kind == "lustre" and source:
        yield (
            f"shared_home_source is '{source}', and shared_home_kind is lustre: the role lustre_client"
            " mounts the file system; leave it empty and let shared_home_path lie on that mount."
        )
    if kind in ("local", "cluster") and source and (not _DEVICE.fullmatch(source) or "/.." in source):
        yield (
            f"shared_home_source is '{source}'; with shared_home_kind {kind} give UUID=..., LABEL=... or"
            " /dev/..., or leave it empty for homes on the file system that is there."
        )


def _option_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    by_nfs = settings["kind"] in ("nfs", "cluster")
    if settings["options"] and not settings["source"] and not by_nfs:
        yield (
            "shared_home_options are given without shared_home_source, and nothing is mounted then; leave"
            " them out."
        )
        return
    for option in settings["options"]:
        wrong = option_problem(str(option), ("nfs",) if by_nfs else ON_DISK)
        if wrong:
            yield f"shared_home_options: {wrong}."


def _quota_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    sizes = {"shared_home_quota": settings["quota"]}
    for name, size in settings["user_quotas"].items():
        if not NAME.fullmatch(str(name)):
            yield f"shared_home_user_quotas names '{name}', which is no name of an account."
        sizes[f"shared_home_user_quotas of {name}"] = size
    for what, size in sizes.items():
        try:
            parse_size(str(size))
        except ValueError as error:
            yield f"{what}: {error}."
    if int(settings["quota_files"]) < 0:
        yield f"shared_home_quota_files is {settings['quota_files']}; give a number of files, or 0 for any."
    if settings["kind"] == "nfs" and wants_quota(settings):
        yield (
            "Quotas are set for shared_home_kind nfs, where only the server can set them; set them there, for"
            " example with this role and shared_home_kind local, and leave them out here."
        )


def wants_quota(settings: Mapping[str, Any]) -> bool:
    """Return whether the settings limit anybody."""
    return bool(settings["quota"] or int(settings["quota_files"]) or settings["user_quotas"])


def mount_options(settings: Mapping[str, Any], file_system: str) -> list[str]:
    """Return the options that homes are mounted with.

    Args:
        settings: those of the role.
        file_system: ``nfs``, ``ext4`` or ``xfs``.
    """
    counting = [COUNTING[file_system]] if wants_quota(settings) and file_system in COUNTING else []
    return [*ALWAYS, *counting, *(str(option) for option in settings["options"])]


def unit(settings: Mapping[str, Any], file_system: str) -> dict[str, str]:
    """Return the unit that mounts the homes, its text by its name; nothing where nothing is mounted.

    A machine whose homes cannot be mounted boots nevertheless, as the unit is wanted and not required.

    Args:
        settings: those of the role.
        file_system: ``nfs``, ``ext4`` or ``xfs``.
    """
    if not _mounted(settings):
        return {}
    what, kind, options = _device(settings["source"]), file_system, mount_options(settings, file_system)
    if not settings["source"]:
        what, kind, options = settings["path"], "none", ["bind", *options]
    target = "remote-fs.target" if file_system == "nfs" else "local-fs.target"
    lines = [
        exports.MARK,
        "[Unit]",
        "Description=Homes of users",
        "",
        "[Mount]",
        f"What={what}",
        f"Where={settings['path']}",
        f"Type={kind}",
        f"Options={','.join(options)}",
        "TimeoutSec=60",
        "",
        "[Install]",
        f"WantedBy={target}",
        "",
    ]
    return {unit_name(settings["path"], "mount"): "\n".join(lines)}


def mounts(settings: Mapping[str, Any], file_system: str) -> list[dict[str, Any]]:
    """Return the mount that there must be, as the module mount_validate takes it; nothing where none is made.

    A shared mount is seen by notebooks and containers that were started before it.

    Args:
        settings: those of the role.
        file_system: ``nfs``, ``ext4`` or ``xfs``.
    """
    if not _mounted(settings):
        return []
    types = list(TYPES["nfs"]) if file_system == "nfs" else [file_system] if file_system else []
    return [{"path": settings["path"], "types": types, "writable": True, "propagation": "shared"}]


def _mounted(settings: Mapping[str, Any]) -> bool:
    """Whether the homes are a mount: on a server that exports a folder it is a mount of itself.

    Root of a client may write there, so no program there may run as root.
    """
    return bool(settings["source"]) or settings["exports"]


def _device(source: str) -> str:
    """Return what systemd mounts (systemd.mount(5), What=): a tag names a link that udev makes."""
    tag, separator, value = source.partition("=")
    return f"/dev/disk/by-{tag.lower()}/{value}" if separator and "/" not in tag else source


def command_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the command that makes homes reads; sizes are in bytes.

    Args:
        settings: those of the role.
    """
    return {
        "path": settings["path"],
        "mounted": _mounted(settings),
        # A server may not answer yet when its clients boot after a power cut.
        "mounted_again": unit_name(settings["path"], "mount") if settings["kind"] == "nfs" else "",
        "types": list(TYPES[settings["kind"]]),
        "create": bool(settings["create"]),
        "quota": parse_size(settings["quota"]),
        "quota_files": int(settings["quota_files"]),
        "user_quotas": {
            name: parse_size(str(size)) for name, size in sorted(settings["user_quotas"].items())
        },
        "by_lustre": settings["kind"] == "lustre",
        "limits": wants_quota(settings),
    }


def packages(settings: Mapping[str, Any]) -> list[str]:
    """Return the packages of Debian and Ubuntu that the mount and the limits need."""
    needed = {
        "nfs-common": settings["kind"] == "nfs",
        "nfs-kernel-server": settings["exports"],
        "quota": settings["kind"] == "local" and wants_quota(settings),
    }
    return [name for name, wanted in needed.items() if wanted]
