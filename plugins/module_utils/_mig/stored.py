# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stored layout, from which partitions are made at boot: of each GPU, and who had them made. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._nvml.gpu import GpuError

FILE = "/etc/gpufarm/mig.json"
Entry = Mapping[str, Any]


def read(text: str, file: str = FILE) -> list[dict[str, Any]]:
    """Return the entries of the stored layout.

    Args:
        text: content of the file.
        file: its path, for the message.

    Raises:
        GpuError: it is no layout, as after a change by hand.
    """
    try:
        entries = [dict(entry) for entry in json.loads(text)["layout"]]
        if not all(isinstance(one["gpu"], str) and isinstance(one["partitions"], list) for one in entries):
            raise TypeError("an entry has no GPU or no list of partitions")
    except (ValueError, LookupError, TypeError) as error:
        raise GpuError(
            f"{file} holds no layout of partitions ({error}): remove it, and run the role mig again."
        ) from error
    return entries


def merged(
    stored: Iterable[Entry], chosen: Iterable[Entry], machine: Sequence[str], owner: str
) -> list[dict[str, Any]]:
    """Put the layout of the chosen GPUs into the stored one.

    An entry that stays as it is keeps its owner: who asks for what is there already has made nothing.

    Args:
        stored: entries of the file, each with the UUID of its GPU (`gpu`), and its `owner` if that is known.
        chosen: for each GPU that was partitioned now its UUID, whether it is in MIG mode (`mig_enabled`), and
            its partitions.
        machine: UUIDs of all GPUs that are in the machine; an empty one is that of a GPU that cannot be read
            and may be any, so no entry goes.
        owner: who asks.

    Returns:
        the entries to store: one for each GPU that is in the machine and in MIG mode.
    """
    before = {str(entry["gpu"]): dict(entry) for entry in stored}
    asked = {str(entry["gpu"]): dict(entry) for entry in chosen}
    here = before if "" in machine else machine
    found = {gpu: entry for gpu, entry in before.items() if gpu in here and gpu not in asked}
    for gpu, entry in asked.items():
        if entry["mig_enabled"]:
            former = before.get(gpu, {})
            same = {key: value for key, value in former.items() if key != "owner"} == entry
            found[gpu] = entry | {"owner": former.get("owner", owner) if same else owner}
    return [found[gpu] for gpu in sorted(found)]


def divided(stored: Iterable[Entry], owner: str) -> tuple[list[str], list[dict[str, Any]]]:
    """Tell what of the stored layout may be taken away.

    Args:
        stored: entries of the file.
        owner: who asks.

    Returns:
        the UUIDs of the GPUs that this owner had partitioned, and the entries of other owners; what was
        stored before owners were goes with any owner.
    """
    listed = [dict(entry) for entry in stored]
    own = [str(entry["gpu"]) for entry in listed if entry.get("owner", owner) == owner]
    return own, [entry for entry in listed if entry["gpu"] not in own]
