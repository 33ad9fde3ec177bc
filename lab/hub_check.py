"""Faults that users must not see: a slice leased twice, a user overtaken; and histograms. Pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

CAPABILITY = re.compile(r"/dev/nvidia-caps/\S+")
BUCKET = re.compile(r"^(?P<name>\w+)_bucket\{(?P<labels>[^}]*)\} (?P<count>\S+)$", re.MULTILINE)
LABEL = re.compile(r'(\w+)="([^"]*)"')


def shared(sample: Mapping[str, Any]) -> list[str]:
    """Return what two notebooks hold at once in one sample of `lab/hub_watch.py`, one sentence each.

    The leases say who holds a slice; the device nodes that systemd allows to a unit say who can use one.
    """
    leased = Counter(piece["uuid"] for lease in sample["leases"].values() for piece in lease["slices"])
    nodes = Counter(node for allowed in sample["units"].values() for node in set(CAPABILITY.findall(allowed)))
    return [f"{uuid} is leased {count} times" for uuid, count in leased.items() if count > 1] + [
        f"{node} is open to {count} notebooks" for node, count in nodes.items() if count > 1
    ]


def overtaken(events: Iterable[Mapping[str, Any]], total: int) -> list[str]:
    """Return who got a slice although the free ones were all for people in front of them.

    Args:
        events: lines of the hub's audit log, of people who want one slice each and hold nothing before. Users
            who are called at once are not recorded as waiting.
        total: slices of the machine.
    """
    waiting: list[str] = []
    free = total
    someone_waited = False
    found = []
    for event in events:
        user = event["user"]
        if event["event"] == "waiting":
            waiting.append(user)
        elif event["event"] == "taken":
            if user in waiting:
                place = waiting.index(user)
                waiting.remove(user)
                someone_waited = True
                if place >= free:
                    found.append(f"{user} got a slice when {place} were in front and {free} slices free")
            elif someone_waited and waiting:
                found.append(f"{user} came later than {len(waiting)} who wait, and got a slice")
            free -= 1
        elif event["event"] in ("missed", "left") and user in waiting:
            waiting.remove(user)
        elif event["event"] in ("returned", "lost"):
            free += 1
    return found


def buckets(metrics: str, name: str) -> dict[float, float]:
    """Return the counts of a histogram in Prometheus' text format, up to each bound, over all its labels."""
    counts: dict[float, float] = {}
    for match in BUCKET.finditer(metrics):
        if match["name"] == name:
            bound = float(dict(LABEL.findall(match["labels"]))["le"])
            counts[bound] = counts.get(bound, 0) + float(match["count"])
    return dict(sorted(counts.items()))


def quantile(share: float, counts: Mapping[float, float]) -> float:
    """Return the value below which a share of a histogram lies, as `histogram_quantile` of Prometheus does.

    Args:
        share: between 0 and 1.
        counts: as `buckets` returns them; at least one value was observed.
    """
    bounds = sorted(counts)
    rank = share * counts[bounds[-1]]
    below, seen = 0.0, 0.0
    for bound in bounds:
        if counts[bound] >= rank:
            if bound == float("inf"):
                return below
            width = counts[bound] - seen
            return below + (bound - below) * ((rank - seen) / width if width else 1.0)
        below, seen = bound, counts[bound]
    return below
