# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPUs and slices of the cluster the form offers, and for how long. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.spawning.form import Offer

# scontrol(1) and sinfo(1), NODE STATE CODES, of nodes that get no new jobs.
AWAY = frozenset(
    {
        "DOWN",
        "DRAIN",
        "ERROR",
        "FAIL",
        "INVALID_REG",
        "MAINTENANCE",
        "NOT_RESPONDING",
        "POWERED_DOWN",
        "UNKNOWN",
    }
)

# A type of GPUs and how many there are; the colon and the word after it are left out where there is no type.
GRES = re.compile(r"gpu:(\w[\w.+-]*):(\d+)", re.ASCII)

# The name of a profile of slices has the memory of one, such as 1g.10gb.
MEMORY = re.compile(r"\d+g\.(\d+)gb")


class OffersError(ValueError):
    """The output of Slurm is not the answer to the question."""


@dataclass(frozen=True)
class Partition:
    """A queue for jobs.

    Attributes:
        name: of it.
        hours: for which a job may run; 0 for any number.
    """

    name: str
    hours: float


@dataclass(frozen=True)
class Node:
    """A machine of the cluster.

    Attributes:
        name: of it in Slurm.
        address: at which it is reached.
        partitions: names of those it is in.
        features: words by which jobs choose it.
        takes_jobs: whether it gets new jobs.
        total: its GPUs and slices by type.
        used: how many of them jobs have.
    """

    name: str
    address: str
    partitions: tuple[str, ...]
    features: tuple[str, ...]
    takes_jobs: bool
    total: Mapping[str, int]
    used: Mapping[str, int]


def read_partition(text: str, wanted: str) -> Partition | None:
    """Return a partition; None if there is none of that name.

    Args:
        text: lines of a name, with an asterisk after that of the default, and a time limit, as
            ``sinfo --noheader --format=%P|%l`` prints them.
        wanted: its name; empty for the default one.
    """
    for name, _bar, limit in (line.strip().partition("|") for line in text.splitlines()):
        if name.rstrip("*") == wanted if wanted else name.endswith("*"):
            return Partition(name.rstrip("*"), hours(limit))
    return None


def hours(limit: str) -> float:
    """Return the hours of a time limit such as ``1-12:00:00``, ``30:00`` or ``infinite``, which is 0 here.

    Raises:
        OffersError: it is none.
    """
    if limit in ("infinite", "n/a"):
        return 0.0
    found = re.fullmatch(r"(?:(\d+)-)?(?:(\d+):)?(\d+):(\d+)", limit)
    if not found:
        raise OffersError(f"sinfo printed {limit!r:.40} as a time limit")
    days, whole, minutes, seconds = (int(part or 0) for part in found.groups())
    return 24 * days + whole + minutes / 60 + seconds / 3600


def read_nodes(text: str) -> list[Node]:
    """Return the nodes in what ``scontrol --json show nodes`` has printed.

    Raises:
        OffersError: that is no list of nodes.
    """
    try:
        return [_node(entry) for entry in json.loads(text)["nodes"]]
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise OffersError(f"scontrol printed no list of nodes ({error!r:.200})") from error


def _node(entry: Mapping[str, Any]) -> Node:
    return Node(
        name=entry["name"],
        address=entry["address"],
        partitions=tuple(entry["partitions"]),
        features=tuple(entry["active_features"]),
        takes_jobs=not AWAY.intersection(entry["state"]),
        total=_count(entry["gres"]),
        used=_count(entry["gres_used"]),
    )


def _count(text: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for kind, number in GRES.findall(text):
        found[kind] = found.get(kind, 0) + int(number)
    return found


def offers(nodes: Iterable[Node]) -> tuple[list[Offer], int]:
    """Return an offer for each type of GPUs and slices, and how many are on nodes that get no jobs now."""
    ours = list(nodes)
    serving = [node for node in ours if node.takes_jobs]
    found = []
    for kind in sorted({kind for node in serving for kind in node.total}):
        total = sum(node.total.get(kind, 0) for node in serving)
        used = sum(node.used.get(kind, 0) for node in serving)
        memory = MEMORY.match(kind)
        size = int(memory[1]) << 30 if memory else 0
        found.append(Offer(kind, memory=size, free=max(total - used, 0), total=total))
    missing = sum(sum(node.total.values()) for node in ours if not node.takes_jobs)
    return found, missing


def refusal(nodes: Iterable[Node], kind: str, count: int, held: int, limit: Limit) -> str:
    """Return why a user gets no such GPUs or slices, in a sentence for them; empty if the job may be queued.

    Args:
        nodes: of the cluster.
        kind: type of the GPUs or slices.
        count: how many are asked for.
        held: how many the user's other notebooks have.
        limit: the user's.
    """
    most = max((node.total.get(kind, 0) for node in nodes), default=0)
    if not most:
        return f"There is no GPU slice {kind:.40} in the cluster; choose one that the form offers."
    if count > most:
        return f"No machine of the cluster has more than {most} of {kind}; choose at most {most}."
    if held + count > limit.slices:
        return (
            f"You may hold {limit.slices} GPU slice{'' if limit.slices == 1 else 's'} at once (limit "
            f"{limit.name}) and your other notebooks have {held}; choose fewer, or stop another one first."
        )
    return ""
