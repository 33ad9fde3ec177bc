# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cordons: GPUs and slices that are given to nobody until an administrator ends that. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace

from .._nvml.gpu import Gpu, GpuError, Process

HEALTH, ADMINISTRATOR = "health", "administrator"
# NVML's UUIDs of GPUs and MIG devices; they are names of files.
_UUID = re.compile(r"(?:GPU|MIG)-[0-9A-Za-z-]{1,80}")
SUFFIX = ".json"


@dataclass(frozen=True)
class Cordon:
    """A GPU or slice that is given to nobody.

    `gpu` is its UUID, `since` a time in UTC (ISO 8601), `by` is `HEALTH` or `ADMINISTRATOR`. `since` and `by`
    are empty for a file that says nothing that can be read; then `gpu` is its name.
    """

    gpu: str
    reason: str
    since: str = ""
    by: str = ""

    def __str__(self) -> str:
        """The cordon as messages tell it, with the command that ends it."""
        origin = "".join(
            f" {word} {value}" for word, value in (("by", self.by), ("since", self.since)) if value
        )
        return f"{self.gpu} is cordoned{origin} ({self.reason}); '{self.end}' ends the cordon"

    @property
    def end(self) -> str:
        """The command that ends it."""
        return f"gpufarm-health uncordon {self.gpu}"


def cordon(gpu: str, reason: str, since: str, by: str) -> Cordon:
    """Return a new cordon.

    Raises:
        GpuError: when the UUID is none, or there is no reason.
    """
    if not _UUID.fullmatch(gpu):
        raise GpuError(
            f"'{gpu}' is no UUID of a GPU or slice: give one that 'nvidia-smi -L' shows, such as"
            " GPU-4a0cbd4e-5cd6-4a1e-a7f0-7a3f0ea7a2b6."
        )
    # Errors in the kernel's log hold names of users' programs, and administrators read this on terminals.
    words = "".join(one if one.isprintable() else " " for one in reason).strip()
    if not words:
        raise GpuError(
            f"The cordon of {gpu} has no reason: give one with --reason, for the next administrator."
        )
    return Cordon(gpu, words, since, by)


def dump(one: Cordon) -> str:
    """Return a cordon as the text of its file."""
    return json.dumps(asdict(one), indent=1) + "\n"


def parse(name: str, text: str) -> Cordon:
    """Return the cordon of a file; one that cannot be read counts as a cordon too.

    Args:
        name: of the file.
        text: its content.
    """
    gpu = subject(name)
    try:
        data = json.loads(text)
        found = Cordon(**{key: data[key] for key in ("gpu", "reason", "since", "by")})
    except (ValueError, TypeError, KeyError, RecursionError):
        return damaged(name, "its file is damaged")
    if found.gpu != gpu or found.by not in (HEALTH, ADMINISTRATOR):
        return damaged(name, "its file is damaged")
    if not all(isinstance(value, str) and value.isprintable() for value in (found.reason, found.since)):
        return damaged(name, "its file is damaged")
    return found


def damaged(name: str, reason: str) -> Cordon:
    """Return the cordon that a file is which cannot be read."""
    return Cordon(subject(name), reason)


def subject(name: str) -> str:
    """Return the GPU or slice of the file of that name; the name itself if no cordon has such a file."""
    shown = "".join(one if one.isprintable() else "?" for one in name)
    return shown[: -len(SUFFIX)] if shown.endswith(SUFFIX) else shown


def of_gpu(gpu: Gpu, cordons: Mapping[str, Cordon]) -> list[Cordon]:
    """Return the cordons of a GPU and of its slices."""
    slices = (one.uuid for instance in gpu.instances for one in instance.compute_instances)
    return [cordons[uuid] for uuid in (gpu.uuid, *slices) if uuid in cordons]


def mark(gpus: Iterable[Gpu], cordons: Mapping[str, Cordon]) -> tuple[Gpu, ...]:
    """Return the GPUs with the cordons of slices among the users of these, so that no plan destroys them."""
    return tuple(replace(gpu, processes=(*gpu.processes, *_users(gpu, cordons))) for gpu in gpus)


def _users(gpu: Gpu, cordons: Mapping[str, Cordon]) -> Iterator[Process]:
    for instance in gpu.instances:
        for compute in instance.compute_instances:
            if compute.uuid in cordons:
                yield Process(None, f"a cordon, as {cordons[compute.uuid]}", instance.id, compute.id)


def check_change(gpu: Gpu, cordons: Mapping[str, Cordon]) -> None:
    """Refuse a change of a GPU that is cordoned.

    Raises:
        GpuError: when it is.
    """
    if gpu.uuid in cordons:
        raise GpuError(
            f"The partitions of {gpu} are not changed, as {cordons[gpu.uuid]}: run that command when the GPU"
            " is repaired, or leave the GPU out of the selected ones."
        )
