# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Holders of partitions, whether or not a program uses them at the moment, as services declare them.

A service that hands out partitions keeps a file in a folder, readable by root only, replaces it atomically,
and removes it when it is removed itself::

    {"service": "jupyterhub.service",
     "holders": [{"who": "the notebook of alice", "unit": "jupyterhub-notebook-alice.service",
                  "slices": ["MIG-6d6f7a2e-..."]}]}

`slices` are UUIDs of MIG devices or of whole GPUs. An entry counts as long as the service runs, which keeps
it right, or the entry's `unit`, if it has one, or while there is the control group that its `cgroup` names, a
folder below /sys/fs/cgroup. So what a dead service has left stands in nobody's way, and what outlives its
service, such as a batch job, keeps its slices.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ..._nvml.gpu import Gpu, GpuError, Process
from .lock import FOLDER
from .services import state

HOLDERS = FOLDER / "holders.d"
CGROUPS = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Holder:
    """Somebody who holds partitions, as long as one of some units runs or a control group is there."""

    who: str
    units: tuple[str, ...]
    slices: tuple[str, ...]
    cgroup: str = ""


def mark(gpus: Iterable[Gpu], folder: Path = HOLDERS) -> tuple[Gpu, ...]:
    """Return the GPUs with those who hold partitions among the users of these.

    Raises:
        GpuError: when a file cannot be read, or systemd does not answer.
    """
    return with_holders(tuple(gpus), holding(read(folder), _runs, _is_group))


def read(folder: Path) -> list[Holder]:
    """Return what the files of a folder say.

    Raises:
        GpuError: when one of them cannot be read.
    """
    holders = []
    for file in sorted(folder.glob("*.json")):
        try:
            holders += parse(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            continue  # its service has just removed it
        except (OSError, ValueError) as error:
            raise GpuError(
                f"{file}, which tells who holds partitions, cannot be read ({error}): run this as root,"
                " restart the service that the file is named after, or remove the file if that is gone."
            ) from error
    return holders


def parse(text: str) -> list[Holder]:
    """Return what a file says.

    Raises:
        ValueError: when it is not of the form that the module's description shows.
    """
    content: Any = json.loads(text)
    try:
        service = content["service"]
        holders = [
            Holder(
                one["who"],
                (service, *([one["unit"]] if "unit" in one else [])),
                tuple(one["slices"]),
                one.get("cgroup", ""),
            )
            for one in content["holders"]
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError(f"not a list of holders: {error!r}") from error
    words = [word for one in holders for word in (one.who, *one.units, *one.slices, one.cgroup)]
    if not all(isinstance(word, str) for word in words):
        raise ValueError("not a list of holders: a value is no text")
    return holders


def holding(
    holders: Iterable[Holder], runs: Callable[[str], bool], is_group: Callable[[str], bool]
) -> list[Holder]:
    """Return those with a unit that runs or a control group; each unit is asked about once at most."""
    running: dict[str, bool] = {}

    def is_up(unit: str) -> bool:
        if unit not in running:
            running[unit] = runs(unit)
        return running[unit]

    return [one for one in holders if any(is_up(unit) for unit in one.units) or is_group(one.cgroup)]


def with_holders(gpus: tuple[Gpu, ...], holders: Iterable[Holder]) -> tuple[Gpu, ...]:
    """Return the GPUs with holders among the users of their partitions; other slices are nobody's."""
    some = list(holders)
    return tuple(replace(gpu, processes=(*gpu.processes, *_users(gpu, some))) for gpu in gpus)


def _runs(unit: str) -> bool:
    # A unit that is stopping still uses its partitions.
    return state(unit) not in ("inactive", "failed")


def _is_group(path: str) -> bool:
    # A path that leads elsewhere names no group.
    return bool(path) and ".." not in Path(path).parts and (CGROUPS / path.lstrip("/")).is_dir()


def _users(gpu: Gpu, holders: list[Holder]) -> list[Process]:
    places: dict[str, tuple[int | None, int | None]] = {
        compute.uuid: (instance.id, compute.id)
        for instance in gpu.instances
        for compute in instance.compute_instances
        if compute.uuid
    }
    places[gpu.uuid] = (None, None)
    return [
        Process(None, holder.who, *places[uuid])
        for holder in holders
        for uuid in holder.slices
        if uuid in places
    ]
