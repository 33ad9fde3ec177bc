# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that a file system of homes can be mounted with. No I/O.

Sources: mount(8), "FILESYSTEM-INDEPENDENT MOUNT OPTIONS"; nfs(5), "MOUNT OPTIONS"; ext4(5), "Mount options
for ext4"; xfs(5), "MOUNT OPTIONS".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

# Names of accounts: those that useradd(8) takes by default, and upper case, which directories have.
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
# Always there: a home holds no devices and no programs that run as somebody else.
ALWAYS = ("nosuid", "nodev")
# The option that has the kernel count what each user has, by file system; NFS counts on the server.
COUNTING = {"ext4": "usrquota", "xfs": "uquota"}


class Kind(NamedTuple):
    """Kind of an option's value.

    `choices` are texts, `least` and `most` bounds of a whole number; with none of them it has no value.
    """

    choices: tuple[str, ...] = ()
    least: int | None = None
    most: int | None = None


FLAG = Kind()
ANY_FILE_SYSTEM: dict[str, Kind] = dict.fromkeys(
    (
        "dirsync",
        "lazytime",
        "noatime",
        "nodiratime",
        "noexec",
        "nolazytime",
        "relatime",
        "strictatime",
        "sync",
    ),
    FLAG,
)
_SECONDS = Kind(least=0, most=86400)
_BYTES = Kind(least=1024, most=1048576)
_VERSIONS = Kind(choices=("3", "4", "4.0", "4.1", "4.2"))
NFS: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "ac",
            "acl",
            "bg",
            "cto",
            "fg",
            "fsc",
            "hard",
            "lock",
            "noac",
            "noacl",
            "nocto",
            "nofsc",
            "noresvport",
            "nosharecache",
            "rdirplus",
            "nordirplus",
            "resvport",
            "sharecache",
        ),
        FLAG,
    ),
    **dict.fromkeys(("acdirmax", "acdirmin", "acregmax", "acregmin", "actimeo"), _SECONDS),
    "lookupcache": Kind(choices=("all", "none", "pos", "positive")),
    "max_connect": Kind(least=1, most=16),
    "nconnect": Kind(least=1, most=16),
    "nfsvers": _VERSIONS,
    "port": Kind(least=0, most=65535),
    "proto": Kind(choices=("rdma", "rdma6", "tcp", "tcp6")),
    "retrans": Kind(least=0, most=100),
    "retry": Kind(least=0, most=10000),
    "rsize": _BYTES,
    "sec": Kind(choices=("krb5", "krb5i", "krb5p", "sys")),
    "timeo": Kind(least=1, most=36000),
    "vers": _VERSIONS,
    "wsize": _BYTES,
}
EXT4: dict[str, Kind] = {
    **dict.fromkeys(
        (
            "acl",
            "auto_da_alloc",
            "delalloc",
            "discard",
            "i_version",
            "journal_checksum",
            "nodelalloc",
            "nodiscard",
            "user_xattr",
        ),
        FLAG,
    ),
    "barrier": Kind(choices=("1",)),
    "commit": Kind(least=0, most=3600),
    "data": Kind(choices=("journal", "ordered")),
    "errors": Kind(choices=("panic", "remount-ro")),
    "inode_readahead_blks": Kind(least=0, most=1073741824),
    "max_batch_time": Kind(least=0, most=1000000),
    "min_batch_time": Kind(least=0, most=1000000),
    "stripe": Kind(least=0, most=2147483647),
}
XFS: dict[str, Kind] = {
    **dict.fromkeys(("discard", "inode64", "largeio", "noalign", "nodiscard", "nolargeio", "swalloc"), FLAG),
    "logbsize": Kind(choices=("0", "32k", "64k", "128k", "256k")),
    "logbufs": Kind(least=2, most=8),
    "sunit": Kind(least=0, most=2147483647),
    "swidth": Kind(least=0, most=2147483647),
}
KNOWN: Mapping[str, Mapping[str, Kind]] = {
    "nfs": {**ANY_FILE_SYSTEM, **NFS},
    "ext4": {**ANY_FILE_SYSTEM, **EXT4},
    "xfs": {**ANY_FILE_SYSTEM, **XFS},
}
# Options that exist and that homes are not mounted with, and why.
_OURS = "the role sets it where shared_home_quota asks for it"
_SAFE = "users could bring programs that run as somebody else"
_LOSS = "what users have written can be lost"
REFUSED: dict[str, str] = {
    "dev": _SAFE,
    "suid": _SAFE,
    "user": "users could unmount homes",
    "users": "users could unmount homes",
    "owner": "users could unmount homes",
    "group": "users could unmount homes",
    "ro": "homes are written to",
    "soft": _LOSS,
    "softerr": _LOSS,
    "nolock": "programs on two machines would not see each other's locks",
    "nobarrier": _LOSS,
    "norecovery": _LOSS,
    "noload": _LOSS,
    "noquota": _OURS,
    "prjquota": _OURS,
    "pquota": _OURS,
    "quota": _OURS,
    "uquota": _OURS,
    "usrquota": _OURS,
    "auto": "systemd mounts them at boot",
    "noauto": "systemd mounts them at boot",
    "defaults": "it says nothing; leave it out",
}


def _value_problem(name: str, value: str | None, kind: Kind) -> str:
    if kind == FLAG:
        return "" if value is None else f"{name} takes no value"
    if kind.choices:
        return "" if value in kind.choices else f"{name} must be one of {', '.join(kind.choices)}"
    least, most = kind.least or 0, kind.most or 0
    fits = value is not None and re.fullmatch("[0-9]{1,10}", value) and least <= int(value) <= most
    return "" if fits else f"{name} must be a whole number from {least} to {most}"


def option_problem(option: str, file_systems: Iterable[str]) -> str:
    """Return what is wrong with an option in a few words; an empty text when nothing is.

    Args:
        option: as mount(8) takes it, ``NAME`` or ``NAME=VALUE``.
        file_systems: keys of `KNOWN`: what is mounted is one of them.
    """
    name, separator, text = option.partition("=")
    if name in REFUSED:
        return f"{name} is not for homes: {REFUSED[name]}"
    kinds = [KNOWN[one][name] for one in file_systems if name in KNOWN[one]]
    if not kinds:
        return f"{name!r} is no option of {' or '.join(file_systems)} that homes can be mounted with"
    problems = [_value_problem(name, text if separator else None, kind) for kind in kinds]
    return "" if "" in problems else problems[0]
