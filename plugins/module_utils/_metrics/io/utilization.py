# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Utilization of GPU instances, from NVML's GPU performance monitoring (GPM), on Hopper GPUs and later."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable
from typing import Any

try:
    import pynvml
except ImportError:
    pynvml = None

from ..._nvml.io.readings import Failed, NotTold, Reader

# nvml.h, NVML_GPM_METRIC_GRAPHICS_UTIL: "Percentage of time any compute/graphics app was active on the GPU"
GRAPHICS_UTIL = 1
# Seconds between the two samples that a metric is computed from.
WINDOW = 1.0


def utilization(reader: Reader, device: Any, instances: Iterable[int]) -> dict[int, float]:
    """Return for how much of a second GPU instances computed.

    Args:
        reader: asks NVML.
        device: handle of the GPU, in MIG mode.
        instances: ids of GPU instances.

    Returns:
        per cent by the ids of GPU instances; empty where NVML does not report it.
    """
    samples: dict[int, tuple[Any, Any]] = {}
    try:
        if not reader.ask("nvmlGpmQueryDeviceSupport", device).isSupportedDevice:
            return {}
        for instance in instances:
            samples[instance] = reader.ask("nvmlGpmSampleAlloc"), reader.ask("nvmlGpmSampleAlloc")
        for instance, (first, _second) in samples.items():
            reader.ask("nvmlGpmMigSampleGet", device, instance, first)
        time.sleep(WINDOW if samples else 0)
        for instance, (_first, second) in samples.items():
            reader.ask("nvmlGpmMigSampleGet", device, instance, second)
        shares = {instance: _share(reader, *pair) for instance, pair in samples.items()}
        return {instance: share for instance, share in shares.items() if share is not None}
    # Without the right to read performance counters, or when an instance has gone meanwhile.
    except (Failed, NotTold):
        return {}
    finally:
        for pair in samples.values():
            for sample in pair:
                with contextlib.suppress(Failed, NotTold):
                    reader.ask("nvmlGpmSampleFree", sample)


def _share(reader: Reader, first: Any, second: Any) -> float | None:
    request = pynvml.c_nvmlGpmMetricsGet_t()
    request.version = pynvml.NVML_GPM_METRICS_GET_VERSION
    request.numMetrics = 1
    request.sample1, request.sample2 = first, second
    request.metrics[0].metricId = GRAPHICS_UTIL
    found = reader.ask("nvmlGpmMetricsGet", request).metrics[0]
    # A call that succeeds may still lack a metric, as was seen on an H200 with a sample that was not taken.
    if found.nvmlReturn != pynvml.NVML_SUCCESS or not math.isfinite(found.value):
        return None
    return min(100.0, max(0.0, float(found.value)))
