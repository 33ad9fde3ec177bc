# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a machine can have users' homes where the settings say. No I/O.

Sources: mount(8) and proc(5) for what /proc/self/mountinfo shows; tune2fs(8), feature quota; ext4(5) and
xfs(5) for the options that count what users have.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .._mounts import table as mount_table
from .options import option_problem
from .settings import ON_DISK, TYPES, wants_quota

# File systems that are lost when the machine stops, and those of other kinds of homes.
PASSING = ("ramfs", "tmpfs")
NETWORK = ("ceph", "cifs", "nfs", "nfs4", *TYPES["lustre"])
COUNTED = ("usrquota", "uquota", "quota")
SHOWN = 3  # names of files that a sentence gives


class Folder(NamedTuple):
    """A part of a path: `kind` is ``folder``, ``link``, ``other``, ``missing`` or ``stale``."""

    path: str
    kind: str
    uid: int = 0
    mode: int = 0


class Device(NamedTuple):
    """A disk, or a part of one, that homes are to be mounted from.

    `path` is empty when there is none; `file_system` when it holds none; `features` are those of ext4.
    """

    path: str
    file_system: str = ""
    features: tuple[str, ...] = ()


class Top(NamedTuple):
    """Result of a trial mount of the file system: its topmost folder, or an error."""

    uid: int = 0
    mode: int = 0
    error: str = ""


class Seen(NamedTuple):
    """Facts about a machine.

    Attributes:
        answers: whether the path could be looked at in time.
        folders: all parts of the path, from ``/`` on.
        entries: names in the folder.
        mounts: by mount point.
        homes: mount points of units that the role has written before.
        device: with a source that is a disk.
        top: of what is not mounted yet; None where it was not looked at.
        connected: addresses of machines that have the homes mounted from this one.
    """

    answers: bool
    folders: Sequence[Folder]
    entries: Sequence[str]
    mounts: Mapping[str, mount_table.Mount]
    homes: Sequence[str] = ()
    device: Device | None = None
    top: Top | None = None
    connected: Sequence[str] = ()


def server_of(settings: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return where a server of NFS must answer by TCP before it is mounted; None when that is not known.

    Source: nfs(5), `port`: version 3 asks for the port of the server first, others go to 2049.
    """
    options = dict(str(option).partition("=")[::2] for option in settings["options"])
    asks = "3" in (options.get("vers"), options.get("nfsvers"))
    port = int(options.get("port") or 0) or (0 if asks else 2049)
    if settings["kind"] != "nfs" or not port or options.get("proto", "tcp").startswith("rdma"):
        return None
    return settings["source"].rpartition(":/")[0].strip("[]"), port


def file_system_of(settings: Mapping[str, Any], device: Device | None) -> str:
    """Return what is mounted: ``nfs``, ``ext4``, ``xfs``, or nothing."""
    if not settings["source"]:
        return ""
    return "nfs" if settings["kind"] == "nfs" else device.file_system if device else ""


def problems(settings: Mapping[str, Any], seen: Seen) -> list[str]:
    """Return why the machine cannot have the homes, one sentence each.

    Args:
        settings: as `exports.on_this_machine` returns them.
        seen: what is there.
    """
    path = settings["path"]
    if not seen.answers:
        return [f"{path} does not answer; see to the file system that is mounted there."]
    return [
        *_way_problems(path, seen.folders),
        *_other_problems(settings, seen.homes),
        *_client_problems(settings, seen.connected),
        *(_source_problems(settings, seen) if settings["source"] else _place_problems(settings, seen)),
        *_quota_problems(settings, seen),
    ]


def _way_problems(path: str, folders: Sequence[Folder]) -> Iterator[str]:
    for one in folders:
        if one.kind == "link":
            yield f"{one.path} is a symbolic link; give the folder itself in shared_home_path."
        elif one.kind == "stale":
            yield (
                f"{one.path} is mounted from a server that no longer exports it to this machine; have it"
                " exported, or unmount it."
            )
        elif one.kind == "other":
            yield f"{one.path} is a file and in the way of the folder {path}; move it away."
        elif one.kind == "folder" and (one.uid != 0 or one.mode & 0o022):
            yield (
                f"{one.path} can be changed by others than root (owner {one.uid}, mode {one.mode:04o}), who"
                " could put anything in the place of homes; 'chown root' and 'chmod go-w' mend it, or choose"
                " another shared_home_path."
            )


def _other_problems(settings: Mapping[str, Any], homes: Sequence[str]) -> Iterator[str]:
    path = settings["path"]
    for other in homes:
        if other != path or not (settings["source"] or settings["exports"]):
            setting = f"shared_home_path is {path}" if other != path else "shared_home_source is empty"
            yield (
                f"Homes are mounted at {other} by an earlier run, and {setting}; run the role with that path"
                " and shared_home_state absent first."
            )


def _client_problems(settings: Mapping[str, Any], connected: Sequence[str]) -> Iterator[str]:
    if connected and not settings["exports"]:
        yield (
            f"The homes of this machine are mounted by {', '.join(connected)}, and it would no longer export"
            " them; remove them there first."
        )


def _source_problems(settings: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    path, source = settings["path"], settings["source"]
    mount, device = seen.mounts.get(path), seen.device
    if device is not None:
        yield from _device_problems(source, device, settings["options"])
    if mount is not None:
        wanted = device.path if device else source
        if mount.source != wanted:
            yield (
                f"{path} is a mount of {mount.source}, and not of {source}; unmount it, or choose another"
                " shared_home_path."
            )
        return
    if seen.entries:
        yield (
            f"{path} holds {_names(seen.entries)}, which a mount there would hide; choose another"
            " shared_home_path, such as /srv/home, or move what is there."
        )
    elsewhere = [one.path for one in seen.mounts.values() if device and one.source == device.path]
    if elsewhere:
        yield f"{source} is mounted at {elsewhere[0]} already; unmount it there, or give that path."
    elif seen.top is not None:
        yield from _top_problems(source, seen.top)


def _names(entries: Sequence[str]) -> str:
    more = f" and {len(entries) - SHOWN} more" if len(entries) > SHOWN else ""
    return ", ".join(sorted(entries)[:SHOWN]) + more


def _device_problems(source: str, device: Device, options: Sequence[str]) -> Iterator[str]:
    if not device.path:
        yield f"{source} is not on the machine; 'lsblk --fs' lists what is."
    elif device.file_system not in ON_DISK:
        found = f"holds {device.file_system}" if device.file_system else "has no file system"
        yield (
            f"{source} {found}, and homes need {' or '.join(ON_DISK)}; this role formats nothing, so give"
            " another shared_home_source or format it."
        )
    else:
        # Only now it is known which of them it is.
        for wrong in (option_problem(option, [device.file_system]) for option in options):
            if wrong:
                yield f"shared_home_options for {source}: {wrong}."


def _top_problems(source: str, top: Top) -> Iterator[str]:
    if top.error:
        yield f"{source} cannot be mounted: {top.error.rstrip('.')}."
    elif top.uid != 0 or top.mode & 0o022:
        yield (
            f"The topmost folder of {source} can be changed by others than root (owner {top.uid}, mode"
            f" {top.mode:04o}), who could put anything in the place of homes; make it root's, with mode"
            " 0755."
        )


def _place_problems(settings: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    path, kind = settings["path"], settings["kind"]
    mount = mount_table.mount_of(path, seen.mounts)
    found = mount.kind if mount else "nothing"
    if kind == "lustre" and found not in TYPES["lustre"]:
        yield (
            f"{path} lies on {found} and on no Lustre file system; mount one with the role lustre_client"
            " first, or correct shared_home_path."
        )
    elif kind == "local" and found in NETWORK:
        wanted = "lustre" if found in TYPES["lustre"] else "nfs, with its server in shared_home_source"
        yield f"{path} lies on {found}, and shared_home_kind is local; set it to {wanted}."
    elif kind == "local" and found in PASSING:
        yield f"{path} lies on {found}, and homes would be lost at the next restart; choose a disk."


def _quota_problems(settings: Mapping[str, Any], seen: Seen) -> Iterator[str]:
    if not wants_quota(settings) or settings["kind"] != "local":
        return
    path, device = settings["path"], seen.device
    mount = seen.mounts.get(path) if settings["source"] else mount_table.mount_of(path, seen.mounts)
    if device is not None and device.file_system == "ext4" and "quota" not in device.features:
        yield (
            f"Quotas are set, and the file system on {settings['source']} was made without them; 'tune2fs -O"
            f" quota {device.path}' adds them while it is not mounted."
        )
    elif mount is not None and not set(mount.options) & set(COUNTED):
        yield _uncounted(path, mount)


def _uncounted(path: str, mount: mount_table.Mount) -> str:
    if mount.kind not in ON_DISK:
        return f"Quotas are set, and {path} lies on {mount.kind}; they need {' or '.join(ON_DISK)}."
    return (
        f"Quotas are set, and {mount.path}, where {path} lies, is mounted without usrquota; mount it anew"
        " with it, which a disk of its own in shared_home_source gets by itself."
    )


def folders_from(rows: Sequence[Mapping[str, Any]]) -> list[Folder]:
    """Return parts of a path as the look at the machine told them."""
    return [Folder(**row) for row in rows]


def features_of(text: str) -> tuple[str, ...]:
    """Return the features of an ext4 file system (dumpe2fs(8), -h).

    Args:
        text: what dumpe2fs wrote.
    """
    lines: dict[str, str] = {}
    for line in text.splitlines():
        name, _colon, value = line.partition(":")
        lines[name.strip()] = value
    return tuple(lines.get("Filesystem features", "").split())
