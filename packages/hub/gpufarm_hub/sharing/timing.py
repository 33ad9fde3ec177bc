# SPDX-License-Identifier: GPL-3.0-or-later
"""How long users wait for slices and decisions take: Prometheus histograms beside the hub's own metrics."""

from __future__ import annotations

from prometheus_client import Histogram

# With waiting for the lock, reading, checking and writing of leases and queue; NVML is asked before.
DECISION = Histogram(
    "gpufarm_hub_decision_seconds",
    "Time in which it is decided who gets GPU slices, by step: enter the queue, take slices.",
    ["step"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
# Seconds from request to lease; 0 if a slice was free.
WAIT = Histogram(
    "gpufarm_hub_wait_seconds",
    "Time for which users waited for the GPU slices that they got.",
    buckets=(1, 10, 60, 300, 900, 3600, 14400, 43200, 86400),
)
