# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mounts of a machine, and how they compare with what is declared about them. No I/O.

Source: proc(5), "/proc/pid/mountinfo"; Linux, Documentation/filesystems/sharedsubtree.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

PROPAGATIONS = ("shared", "slave", "private")


class Mount(NamedTuple):
    """A mount: where, what kind of file system, from what, and how it passes on what is mounted below it.

    `options` are those of the mount and of its file system.
    """

    path: str
    kind: str
    source: str
    writable: bool
    propagation: str
    options: tuple[str, ...] = ()


class Declared(NamedTuple):
    """Declared properties of a path; None and empty values are not checked.

    `state` is ``mounted``, ``unmounted``, or ``possible``: mounted, or a place where a mount hides nothing.
    """

    path: str
    state: str
    types: Sequence[str] = ()
    source: str | None = None
    writable: bool | None = None
    propagation: str | None = None


class Look(NamedTuple):
    """Actual properties of a path that answered in time.

    `answer` is ``ok``, ``late``, ``missing``, or the error's text; `entries` counts what a folder holds.
    """

    answer: str
    entries: int = 0


class Check(NamedTuple):
    """One comparison; `detail` is a part of a sentence."""

    path: str
    name: str
    ok: bool
    detail: str


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)


def parse(table: str) -> dict[str, Mount]:
    """Return the topmost mount of each mount point.

    Args:
        table: content of ``/proc/self/mountinfo``.
    """
    found: dict[str, Mount] = {}
    for line in table.splitlines():
        left, separator, right = line.partition(" - ")
        fields, others = left.split(" "), right.split(" ")
        if not separator or len(fields) < 6 or len(others) < 3:
            continue
        tags = [tag.partition(":")[0] for tag in fields[6:]]
        propagation = "shared" if "shared" in tags else "slave" if "master" in tags else "private"
        options = fields[5].split(",") + others[2].split(",")
        path = _plain(fields[4])
        # Later lines are mounted on top of earlier ones.
        found.pop(path, None)
        source = _plain(others[1])
        found[path] = Mount(path, others[0], source, "ro" not in options, propagation, tuple(options))
    return found


def mount_of(path: str, mounts: Mapping[str, Mount]) -> Mount | None:
    """Return the mount that a path lies on.

    Args:
        path: absolute path without symbolic links.
        mounts: mounts by mount point.
    """
    while path not in mounts and path != "/":
        path = path.rpartition("/")[0] or "/"
    return mounts.get(path)


def unit_name(path: str, suffix: str) -> str:
    """Return the name of the unit of a mount point.

    Source: systemd.unit(5), "String Escaping for Inclusion in Unit Names".

    Args:
        path: absolute path of the mount point.
        suffix: ``mount`` or ``automount``.
    """
    escaped = []
    for position, character in enumerate(path.strip("/")):
        if character == "/":
            escaped.append("-")
        elif re.match("[A-Za-z0-9:_]", character) or (character == "." and position > 0):
            escaped.append(character)
        else:
            escaped.extend(f"\\x{byte:02x}" for byte in character.encode())
    return f"{''.join(escaped)}.{suffix}"


def to_look_at(declared: Sequence[Declared], mounts: dict[str, Mount]) -> list[str]:
    """Return the paths that have to be looked into: a path that only may be mounted and is, is left alone."""
    return [
        one.path
        for one in declared
        if one.state == "mounted" or (one.state == "possible" and one.path not in mounts)
    ]


def compare(one: Declared, mount: Mount | None, look: Look | None, seconds: float) -> Iterator[Check]:
    """Compare what is declared about a path with what is there.

    Args:
        one: what is declared.
        mount: what is mounted there.
        look: what was seen, for a path of to_look_at.
        seconds: the time that the look had.
    """
    if one.state == "unmounted":
        words = "not mounted" if mount is None else f"{mount.kind} is mounted there"
        yield Check(one.path, "state", mount is None, words)
        return
    if mount is None and one.state == "possible":
        yield _free(one, look, seconds)
        return
    if mount is None:
        yield Check(one.path, "state", False, "not mounted")
        return
    if one.types:
        yield Check(
            one.path,
            "type",
            mount.kind in one.types,
            f"type {mount.kind}, {' or '.join(one.types)} declared",
        )
    if one.source is not None:
        fits = mount.source == one.source
        yield Check(one.path, "source", fits, f"mounted from {mount.source}, {one.source} declared")
    if one.writable is not None:
        words = "writable" if mount.writable else "read-only"
        yield Check(one.path, "writable", mount.writable == one.writable, words)
    if one.propagation is not None:
        fits = mount.propagation == one.propagation
        yield Check(
            one.path,
            "propagation",
            fits,
            f"{mount.propagation} mount, {one.propagation} declared",
        )
    if one.state == "mounted":
        yield _answers(one.path, look, seconds)


def _answers(path: str, look: Look | None, seconds: float) -> Check:
    answer = look.answer if look else "late"
    if answer == "late":
        return Check(path, "answers", False, f"does not answer within {seconds:g} seconds")
    words = "answers" if answer == "ok" else f"cannot be read: {answer}"
    return Check(path, "answers", answer == "ok", words)


def _free(one: Declared, look: Look | None, seconds: float) -> Check:
    answer, entries = look if look else Look("late")
    if answer == "missing":
        return Check(one.path, "state", True, "not there yet")
    if answer != "ok":
        return _answers(one.path, look, seconds)
    if entries:
        return Check(one.path, "state", False, "a folder that is not empty and would be hidden by the mount")
    return Check(one.path, "state", True, "an empty folder")
