# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a user's share of a file system is set. No I/O.

Sources: setquota(8); quotaon(8), --print-state; lfs-setquota(1), whose -b, -B, -i and -I are limits in KiB
and in files; quota(1), --show-mntpoint; lfs-quota(1).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

_UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40, "P": 1 << 50}


class Limit(NamedTuple):
    """Limits of a user: bytes and files; 0 for any."""

    size: int = 0
    files: int = 0


def limit_of(name: str, settings: Mapping[str, Any]) -> Limit:
    """Return a user's limit.

    Args:
        name: of the user.
        settings: those of the command.
    """
    return Limit(settings["user_quotas"].get(name, settings["quota"]), settings["quota_files"])


def command(uid: int, limit: Limit, place: str, by_lustre: bool) -> list[str]:
    """Return the command that sets a limit. Both programs count the size in KiB.

    The soft limit is that of the hard one or none, so nobody is told to tidy up before a write fails.

    Args:
        uid: of the user, as names may be unknown to a server.
        limit: what the user may have.
        place: mount point of the file system.
        by_lustre: whether it is a Lustre file system.
    """
    size, files = str(-(-limit.size // 1024)), str(limit.files)
    if by_lustre:
        return ["lfs", "setquota", "-u", str(uid), "-b", "0", "-B", size, "-i", "0", "-I", files, place]
    return ["setquota", "--user", str(uid), "0", size, "0", files, place]


def state_command(place: str, by_lustre: bool) -> list[str]:
    """Return the command that tells whether the file system counts what users have."""
    if by_lustre:
        return ["lfs", "quota", "-q", "-u", "root", place]
    return ["quotaon", "--print-state", "--user", place]


def counts(status: int, output: str, by_lustre: bool) -> bool:
    """Return whether the file system counts what users have.

    Args:
        status: exit status of `state_command`, which for quotaon(8) says nothing.
        output: what it wrote.
        by_lustre: whether it is a Lustre file system.
    """
    if by_lustre:
        return status == 0
    return bool(re.search(r"^user quota on .* is on( \(enforced\))?$", output, re.MULTILINE))


def use_command(name: str, place: str, by_lustre: bool) -> list[str]:
    """Return the command by which a user asks for the own use and limits."""
    if by_lustre:
        return ["lfs", "quota", "-q", "-u", name, place]
    return ["quota", "--user", "--no-wrap", "--show-mntpoint", "--hide-device", "--raw-grace"]


def left(output: str, place: str) -> Limit | None:
    """Return what a user may still add; None if there is no limit, or nothing is told.

    Both programs tell of each place, in this order: KiB in use, soft limit, hard limit, days of grace, and
    the same of files. A star marks what is exceeded, brackets what is not certain, and 0 is no limit.

    Args:
        output: what `use_command` wrote.
        place: mount point of the file system.
    """
    fields = [word.strip("*[]") for word in output.split()]
    if place not in fields:
        return None
    numbers = fields[fields.index(place) + 1 :][:8]
    if len(numbers) < 8 or not all(numbers[index].isdigit() for index in (0, 2, 4, 6)):
        return None
    used, most, files, most_files = (int(numbers[index]) for index in (0, 2, 4, 6))
    no_end = 1 << 62
    if not most and not most_files:
        return None
    return Limit(
        max(most - used, 0) * 1024 if most else no_end, max(most_files - files, 0) if most_files else no_end
    )


def parse_size(text: str) -> int:
    """Return a size in bytes.

    Args:
        text: a whole number with K, M, G, T or P behind it, which are powers of 1024; nothing for 0.

    Raises:
        ValueError: it is no size; the text is a part of a sentence.
    """
    if text == "":
        return 0
    found = re.fullmatch(r"([1-9][0-9]{0,14})([KMGTP])", text)
    if not found:
        raise ValueError(f"{text!r} is no size, such as 100G")
    return int(found[1]) * _UNITS[found[2]]
