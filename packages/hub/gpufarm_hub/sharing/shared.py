# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices that several notebooks hold at once: which ones, for whom, and how many notebooks. No I/O.

The driver lets the programs of the notebooks take turns on the slice (time-slicing). They have neither memory
of their own nor protection from one another's faults there (NVIDIA GPU Operator, "Time-Slicing GPUs in
Kubernetes"), so a site shares slices only among the members of groups that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Behind the profile in the name of the choice, as NVIDIA's device plugin for Kubernetes names resources that
# it shares (`renameByDefault`). No profile ends with it.
SUFFIX = ".shared"


@dataclass(frozen=True)
class SharedProfile:
    """A profile whose slices may be shared.

    Attributes:
        profile: of the slices, such as ``1g.10gb``.
        notebooks: how many may hold one slice at once, at least two.
        groups: groups whose members may choose it.
    """

    profile: str
    notebooks: int
    groups: frozenset[str]


def read(entries: Iterable[Mapping[str, Any]]) -> list[SharedProfile]:
    """Return what the role's variable ``jupyterhub_shared_slices`` says."""
    return [
        SharedProfile(entry["profile"], int(entry["notebooks"]), frozenset(entry["groups"]))
        for entry in entries
    ]


def choices(shared: Iterable[SharedProfile], groups: Iterable[str]) -> dict[str, SharedProfile]:
    """Return what a user in these groups may choose, by the name of the choice (`name`)."""
    groups = frozenset(groups)
    return {name(one.profile): one for one in shared if one.groups & groups}


def name(profile: str) -> str:
    """Return the name of the choice of a shared slice, such as ``1g.10gb.shared``."""
    return f"{profile}{SUFFIX}"


def number(shared: Iterable[SharedProfile], profile: str) -> int:
    """Return how many notebooks may share a slice of a profile; 1 where they may not."""
    return next((one.notebooks for one in shared if one.profile == profile), 1)
