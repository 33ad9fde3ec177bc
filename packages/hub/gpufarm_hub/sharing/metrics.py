# SPDX-License-Identifier: GPL-3.0-or-later
"""Slices and queue as Prometheus metrics, beside the hub's own at ``/hub/metrics``. They name no users."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from .desk import Desk
from .leases import Lease
from .slices import count_by_profile


class SliceCollector(Collector):
    """Reads files only: a driver that hangs must not stop the hub.

    Args:
        desk: the desk of this machine.
    """

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    def describe(self) -> Iterator[GaugeMetricFamily]:
        """Return nothing: the hub starts also while the files cannot be read."""
        return iter(())

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the metrics."""
        use = self._desk.use.read()
        notebooks = use.get("notebooks", {})
        # Several notebooks may hold one slice, which counts once.
        leases = self._desk.leases.all()
        held = _slices(leases)
        working = _slices(lease for lease in leases if notebooks.get(lease.owner, {}).get("working"))
        idle = _slices(lease for lease in leases if lease.owner not in notebooks)
        waiting = Counter(place.ticket.profile for place in self._desk.leases.queue([]))
        profiles = sorted({*use.get("profiles", {}), *held, *waiting})
        for name, text, counts in (
            ("slices", "GPU slices of the machine", use.get("profiles", {})),
            ("slices_held", "GPU slices that notebooks hold", held),
            ("slices_working", "GPU slices that notebooks hold and compute on", working),
            ("slices_without_notebook", "GPU slices that are held by notebooks that do not run", idle),
            ("waiting", "Notebooks that wait for GPU slices", waiting),
        ):
            family = GaugeMetricFamily(f"gpufarm_hub_{name}", f"{text}, by profile.", labels=["profile"])
            for profile in profiles:
                family.add_metric([profile], counts.get(profile, 0))
            yield family
        yield GaugeMetricFamily(
            "gpufarm_hub_measured_timestamp_seconds",
            "When the use of notebooks was measured last.",
            value=use.get("measured", 0),
        )


def _slices(leases: Iterable[Lease]) -> Counter[str]:
    return count_by_profile({piece for lease in leases for piece in lease.pieces})
