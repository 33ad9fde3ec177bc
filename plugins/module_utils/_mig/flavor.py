# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words with which a user says how a GPU is to be partitioned."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

# The form of the names in NVIDIA's MIG user guide, "MIG Device Names" and "Supported MIG Profiles": compute
# slices of a compute instance, slices and memory of its GPU instance, attributes.
_SLICES = "[1-9][0-9]?"
_MEMORY = "[0-9]{1,4}"
_ATTRIBUTES = r"(?:[+-][a-z]+(?:\.[a-z]+)?)*"
_COUNT = "[1-9][0-9]{0,2}"
_NAME = re.compile(
    rf"(?:(?P<width>{_SLICES})c\.)?"
    rf"(?P<gpu_instance>(?P<slices>{_SLICES})g(?:\.(?P<memory>{_MEMORY})gb)?(?P<attributes>{_ATTRIBUTES}))"
)
_COUNTED = re.compile(rf"(?P<count>{_COUNT})\s*x\s*(?P<name>\S+)")
_WIDTH = re.compile(r"([1-9][0-9]?)c")
# "7x 1g.10gb MIG GPUs" is how the forms of INFN Cloud word a flavor.
_SUFFIX = re.compile(r"\s+MIG GPUs?$")

MAX_COUNT = 999  # of three digits, more than any GPU has of anything
AS_FOUND = "None"
DISABLED = "disabled"
ENABLED = "enabled"
LAYOUT = "layout"

_ITEM = rf"{_COUNT}\s*x\s*(?:{_SLICES}c\.)?{_SLICES}g(?:\.{_MEMORY}gb)?{_ATTRIBUTES}"
# Pattern of all values of mig_partition_flavor, as a whole, for TOSCA templates and forms. It has no named
# groups, which other languages write otherwise.
FLAVOR_PATTERN = rf"{ENABLED}|\s*(?:{AS_FOUND}|{DISABLED}|{_ITEM}(?:\s*,\s*{_ITEM})*(?:\s+MIG GPUs?)?)\s*"


class FlavorError(ValueError):
    """A text that says no flavor, or a layout that says none."""


@dataclass(frozen=True)
class Item:
    """GPU instances of one kind that a GPU shall hold.

    `profile` is the name of their profile, `count` their number. `compute` has the widths of the compute
    instances in each, in compute slices, the widest first; None is one of full width. `start` is the first
    memory unit when the place is given.
    """

    profile: str
    count: int = 1
    compute: tuple[int, ...] | None = None
    start: int | None = None

    def __str__(self) -> str:
        """The item as messages name it."""
        text = f"{self.count}x {self.profile}"
        if self.compute is not None:
            text += f" ({compute_words(self.compute)})"
        return text if self.start is None else f"{text} at {self.start}"


@dataclass(frozen=True)
class Flavor:
    """A request for one GPU: its `kind`, and the instances when that is `layout`."""

    kind: str
    items: tuple[Item, ...] = ()

    def __str__(self) -> str:
        """The flavor as messages name it."""
        if self.kind != LAYOUT:
            return self.kind
        return ", ".join(str(item) for item in self.items) or "no partitions"


@dataclass(frozen=True)
class ProfileName:
    """Parts of the name of a profile: compute slices, memory in GB (None if it says none), attributes."""

    slices: int
    memory: int | None
    attributes: str


def compute_words(widths: Iterable[int]) -> str:
    """Return widths of compute instances as a person writes them, such as `2c, 1c`."""
    return ", ".join(f"{width}c" for width in widths) or "no compute instance"


def read_name(name: str) -> ProfileName:
    """Take the name of a GPU instance's profile apart.

    Args:
        name: such as `1g.10gb+me` or `1g`.

    Raises:
        FlavorError: when it has another form.
    """
    match = _NAME.fullmatch(name)
    if match is None or match["width"]:
        raise FlavorError(f"'{name}' is no name of a MIG profile: write one such as '3g.40gb'.")
    memory = int(match["memory"]) if match["memory"] else None
    return ProfileName(int(match["slices"]), memory, match["attributes"])


def parse_flavor(text: str) -> Flavor:
    """Read a flavor.

    Args:
        text: `None` (leave what is there), `disabled` (MIG mode off) or a layout such as `7x 1g.10gb MIG
            GPUs`, `1x 3g.40gb, 2x 2g.20gb` or `3x 1c.3g.40gb`.

    Returns:
        a Flavor of kind `None`, `disabled` or `layout`; compute instances share as few GPU instances as hold
        them when each, the widest first, goes into the first one with room.

    Raises:
        FlavorError: for any other text, in one sentence that names the text and the forms that are read.
    """
    if text.strip() in (AS_FOUND, DISABLED):
        return Flavor(text.strip())
    counts: dict[str, tuple[re.Match[str], int]] = {}
    for item in _SUFFIX.sub("", text.strip()).split(","):
        match = _COUNTED.fullmatch(item.strip())
        name = _NAME.fullmatch(match["name"]) if match else None
        if match is None or name is None:
            raise FlavorError(
                f"The MIG flavor '{text}' is not understood: write 'None', 'disabled', or counts and profiles"
                " such as '7x 1g.10gb', '1x 3g.40gb, 2x 2g.20gb' or '3x 1c.3g.40gb'."
            )
        if match["name"] in counts:
            raise FlavorError(
                f"The MIG flavor '{text}' names the profile {match['name']} twice: add up its counts."
            )
        counts[match["name"]] = name, int(match["count"])
    return Flavor(LAYOUT, tuple(_items(text, counts)))


def _items(text: str, counts: dict[str, tuple[re.Match[str], int]]) -> Iterable[Item]:
    """Yield the GPU instances of a flavor, those that hold several compute instances after the others."""
    parts: dict[str, list[int]] = {}
    for name, (match, count) in counts.items():
        slices, width = int(match["slices"]), int(match["width"] or match["slices"])
        if width > slices:
            raise FlavorError(
                f"The MIG flavor '{text}' asks for {name}, but {match['gpu_instance']} has only {slices}"
                f" compute slices: ask for {slices}c at most."
            )
        if width == slices:
            yield Item(match["gpu_instance"], count)
        else:
            parts.setdefault(match["gpu_instance"], []).extend([width] * count)
    for gpu_instance, widths in parts.items():
        packed = _pack(sorted(widths, reverse=True), read_name(gpu_instance).slices)
        for compute in dict.fromkeys(packed):
            yield Item(gpu_instance, packed.count(compute), compute)


def _pack(widths: list[int], slices: int) -> list[tuple[int, ...]]:
    bins: list[list[int]] = []
    for width in widths:
        place = next((one for one in bins if sum(one) + width <= slices), None)
        if place is None:
            bins.append([width])
        else:
            place.append(width)
    return [tuple(one) for one in bins]


def parse_layout(entries: Iterable[Mapping[str, Any]]) -> Flavor:
    """Read a layout.

    Args:
        entries: each has `profile` (such as `3g.40gb`), and may have `count` (1), `start` (first memory unit;
            then the count is 1) and `compute_instances` (names such as `1c.3g.40gb` or `1c`, each after a
            count such as `2x` if there are several; without it one of full width, an empty list for none).

    Returns:
        a Flavor of kind `layout`, with no instances for no entries.

    Raises:
        FlavorError: in one sentence that names the entry and what is wrong with it.
    """
    return Flavor(LAYOUT, tuple(_item(number, entry) for number, entry in enumerate(entries, start=1)))


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``problems``, a sentence if the flavor is wrong.

    Args:
        settings: the variables of the role ``mig`` without its name.
    """
    flavor = str(settings["partition_flavor"])
    try:
        if flavor != ENABLED:
            parse_flavor(flavor)
    except FlavorError as error:
        return {"problems": [str(error)]}
    return {"problems": []}


def _item(number: int, entry: Mapping[str, Any]) -> Item:
    where = f"Entry {number} of the MIG layout"
    if not isinstance(entry, Mapping):
        raise FlavorError(f"{where} is '{entry}': write a mapping such as {{profile: 3g.40gb}}.")
    unknown = set(entry) - {"profile", "count", "start", "compute_instances"}
    if unknown:
        raise FlavorError(
            f"{where} has the key '{min(map(str, unknown))}', which means nothing: keys are profile, count,"
            " start and compute_instances."
        )
    name = str(entry.get("profile"))
    match = _NAME.fullmatch(name)
    if match is None or match["width"]:
        raise FlavorError(
            f"{where} names the profile '{name}', which is no GPU instance: write a name such as '3g.40gb',"
            " and what it is divided into as compute_instances."
        )
    count, start = entry.get("count"), entry.get("start")
    if count is None:
        count = 1
    if not _is_number(count) or not 1 <= count <= MAX_COUNT:
        raise FlavorError(
            f"{where} has the count '{count}': write a number from 1 to {MAX_COUNT}, or leave the entry out."
        )
    if start is not None and (not _is_number(start) or start < 0):
        raise FlavorError(f"{where} has the start '{start}': write a number of memory units from 0 on.")
    if start is not None and count != 1:
        raise FlavorError(
            f"{where} wants {count} instances that start at {start}, where only one can: write an entry for"
            " each."
        )
    names = entry.get("compute_instances")
    compute = None if names is None else _compute(where, names, match["gpu_instance"], int(match["slices"]))
    return Item(name, count, compute, start)


def _is_number(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _compute(where: str, names: Any, gpu_instance: str, slices: int) -> tuple[int, ...] | None:
    if not isinstance(names, (list, tuple)):
        raise FlavorError(
            f"{where} has no list of compute instances but '{names}': write ['1c.{gpu_instance}']."
        )
    widths = []
    for text in map(str, names):
        counted = _COUNTED.fullmatch(text.strip())
        name = counted["name"] if counted else text.strip()
        short, match = _WIDTH.fullmatch(name), _NAME.fullmatch(name)
        if short is None and (match is None or match["gpu_instance"] != gpu_instance):
            raise FlavorError(
                f"{where} has the compute instance '{text}', which is none of {gpu_instance}: write"
                f" '1c.{gpu_instance}', '2x 1c.{gpu_instance}' or the like."
            )
        width = int(short[1]) if short else int((match and match["width"]) or slices)
        widths += [width] * (int(counted["count"]) if counted else 1)
    if sum(widths) > slices:
        raise FlavorError(
            f"{where} divides {gpu_instance} into compute instances of {sum(widths)} compute slices, but it"
            f" has only {slices}: leave some out."
        )
    return None if widths == [slices] else tuple(sorted(widths, reverse=True))
