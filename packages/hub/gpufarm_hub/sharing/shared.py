# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices that several notebooks hold at once: which ones, for whom, and how many notebooks. No I/O.

The driver lets the programs of the notebooks take turns on the slice (time-slicing), or compute at the same
time (MPS). In turns, they have neither memory of their own nor protection from one another's faults (NVIDIA
GPU Operator, "Time-Slicing GPUs in Kubernetes"). By MPS, a fault of one ends them all (docs/unproved.md).
So a site shares slices only among the members of groups that it names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# Texts that Ansible takes for true, as a value given by `-e` may be.
TRUE = frozenset({"y", "yes", "on", "1", "true", "t"})
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
        mps: whether their programs compute at the same time, and not in turns.
    """

    profile: str
    notebooks: int
    groups: frozenset[str]
    mps: bool = False


def read(entries: Iterable[Mapping[str, Any]]) -> list[SharedProfile]:
    """Return what the role's variable ``jupyterhub_shared_slices`` says."""
    return [
        SharedProfile(
            entry["profile"],
            int(entry["notebooks"]),
            frozenset(entry["groups"]),
            str(entry.get("mps", False)).lower() in TRUE,
        )
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
