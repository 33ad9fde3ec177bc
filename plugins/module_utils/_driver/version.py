# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the NVIDIA driver, as NVIDIA, Debian's and Red Hat's packages write them."""

from __future__ import annotations

import re
from collections.abc import Iterable


class DriverError(Exception):
    """A driver cannot be had as it is asked for; the text is one sentence for a user."""


def upstream(version: str) -> str:
    """Return NVIDIA's version of a package's: `535.309.01` of `1:535.309.01-1~deb12u1`."""
    return re.sub(r"^\d+:", "", version).split("-", 1)[0]


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of NVIDIA's version, for comparison: (535, 309, 1) of `535.309.01-1`."""
    return tuple(int(number) for number in re.findall(r"\d+", upstream(version)))


def branch(version: str) -> str:
    """Return the branch of a version, `535` of `535.309.01-1`; empty for an empty version."""
    return upstream(version).split(".", 1)[0]


def matches(wanted: str, version: str) -> bool:
    """Whether a version is one that is wanted.

    Args:
        wanted: a branch (`535`), NVIDIA's version (`535.309.01`), a package's in full, or empty for any.
        version: a version in full, NVIDIA's or a package's.
    """
    return wanted in ("", version) or f"{upstream(version)}.".startswith(f"{wanted}.")


def newest(versions: Iterable[str]) -> str:
    """Return the newest version, of equal ones the first; empty when there is none."""
    return max(versions, key=numbers, default="")


def below(wanted: str, limit: str) -> bool:
    """Whether every version that `wanted` admits is older than `limit`; false for an empty `wanted`."""
    parts = numbers(wanted)
    return parts < numbers(limit)[: len(parts)]


def kernel_order(release: str) -> list[tuple[int, str]]:
    """Return a key that sorts kernel releases from old to new."""
    return [
        (int(part), "") if part.isdigit() else (-1, part) for part in re.findall(r"\d+|[^\d.+_-]+", release)
    ]
