# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The use of GPUs and of their slices, and who holds these, as metrics for Prometheus. No I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .page import Page

MEBIBYTE = 2**20
# Readings of a GPU: names of `_nvml.io.readings`.
READINGS = (
    "clocks_mhz",
    "ecc_corrected",
    "ecc_uncorrected",
    "memory",
    "power_limit_mw",
    "power_mw",
    "processes",
    "temperature",
    "utilization",
)


@dataclass(frozen=True)
class SliceUse:
    """A slice: a MIG device, or a whole GPU when MIG is off.

    `profile` is the MIG profile such as `1g.10gb`, or the GPU's model; `values` by the names of `READINGS`,
    as far as the slice tells them.
    """

    uuid: str
    profile: str
    values: Mapping[str, Any]


@dataclass(frozen=True)
class GpuUse:
    """A GPU, what it tells by the names of `READINGS`, and its slices."""

    index: int
    uuid: str
    name: str
    values: Mapping[str, Any]
    slices: tuple[SliceUse, ...] = ()


@dataclass(frozen=True)
class Holder:
    """One of the holders of a slice, and the start of the lease in seconds since 1970."""

    user: str
    server: str
    since: float


@dataclass(frozen=True)
class Use:
    """Metrics of a machine.

    `problem` says in a sentence why the driver did not tell everything, `holders_problem` why the hub's
    leases cannot be read; both are empty when all is well. `holders` is by the UUIDs of slices: those of
    one slice share it. `certificates` has the time at which each ends, in seconds since 1970, by the name of
    what shows it.
    """

    gpus: tuple[GpuUse, ...] = ()
    problem: str = ""
    holders: Mapping[str, Sequence[Holder]] = field(default_factory=dict)
    holders_problem: str = ""
    certificates: Mapping[str, float] = field(default_factory=dict)


def render(use: Use, now: float) -> str:
    """Return the metrics of a machine.

    Args:
        now: when it was read, in seconds since 1970.
    """
    page = Page()
    _add_gpus(page, use.gpus)
    _add_slices(page, use)
    page.add(
        "gpufarm_certificate_expiry_timestamp_seconds",
        "When a certificate ends.",
        [({"certificate": name}, end) for name, end in sorted(use.certificates.items())],
    )
    page.add(
        "gpufarm_gpu_metrics_up",
        "Whether the source of GPU metrics answered.",
        [
            ({"source": "nvml"}, float(not use.problem)),
            ({"source": "leases"}, float(not use.holders_problem)),
        ],
    )
    page.add("gpufarm_gpu_metrics_last_run_timestamp_seconds", "When the GPUs were read.", [({}, round(now))])
    return page.text()


def _add_gpus(page: Page, gpus: tuple[GpuUse, ...]) -> None:
    def told(*path: str, scale: float = 1) -> list[tuple[Mapping[str, str], float]]:
        found: list[tuple[Mapping[str, str], float]] = []
        for gpu in gpus:
            value = _value(gpu.values, *path)
            if value is not None:
                found.append(({"gpu": str(gpu.index), "uuid": gpu.uuid}, value * scale))
        return found

    page.add(
        "gpufarm_gpu_info",
        "The model of a GPU.",
        [({"gpu": str(one.index), "uuid": one.uuid, "model": one.name}, 1) for one in gpus],
    )
    for name, text, path, scale in (
        ("utilization_ratio", "Share of the time in which the GPU computed.", ("utilization",), 0.01),
        ("memory_total_bytes", "Memory of the GPU.", ("memory", "total_mib"), MEBIBYTE),
        ("memory_used_bytes", "Memory of the GPU in use.", ("memory", "used_mib"), MEBIBYTE),
        ("temperature_celsius", "Temperature of the GPU.", ("temperature",), 1),
        ("power_watts", "Power that the GPU draws.", ("power_mw",), 0.001),
        ("power_limit_watts", "Power that the GPU may draw.", ("power_limit_mw",), 0.001),
        ("processes", "Processes that compute on the GPU.", ("processes",), 1),
    ):
        page.add(f"gpufarm_gpu_{name}", text, told(*path, scale=scale))
    page.add(
        "gpufarm_gpu_clock_hertz",
        "Clock of a part of the GPU.",
        [
            ({**labels, "part": part}, value)
            for part in ("sm", "memory")
            for labels, value in told("clocks_mhz", part, scale=1_000_000)
        ],
    )
    page.add(
        "gpufarm_gpu_ecc_errors_total",
        "Memory errors since the driver was loaded.",
        [
            ({**labels, "kind": kind}, value)
            for kind in ("corrected", "uncorrected")
            for labels, value in told(f"ecc_{kind}")
        ],
        kind="counter",
    )


def _add_slices(page: Page, use: Use) -> None:
    slices = [
        ({"gpu": str(gpu.index), "uuid": one.uuid, "profile": one.profile}, one)
        for gpu in use.gpus
        for one in gpu.slices
    ]
    for name, text, path, scale in (
        (
            "utilization_ratio",
            "Share of the time in which the slice computed.",
            ("utilization",),
            0.01,
        ),
        ("memory_total_bytes", "Memory of the slice.", ("memory", "total_mib"), MEBIBYTE),
        ("memory_used_bytes", "Memory of the slice in use.", ("memory", "used_mib"), MEBIBYTE),
        ("processes", "Processes that compute on the slice.", ("processes",), 1),
    ):
        values = [(labels, _value(one.values, *path)) for labels, one in slices]
        page.add(
            f"gpufarm_slice_{name}",
            text,
            [(labels, value * scale) for labels, value in values if value is not None],
        )
    held = [(labels, use.holders[one.uuid]) for labels, one in slices if one.uuid in use.holders]
    page.add(
        "gpufarm_slice_holder",
        "Part of the slice that a notebook holds: 1, or an equal part where several share it.",
        [
            ({**labels, "user": holder.user, "server": holder.server}, 1 / len(holders))
            for labels, holders in held
            for holder in holders
        ],
    )
    page.add(
        "gpufarm_slice_held_since_timestamp_seconds",
        "Start of the oldest lease of the slice.",
        [(labels, min(holder.since for holder in holders)) for labels, holders in held],
    )


def _value(values: Mapping[str, Any], *path: str) -> float | None:
    """Return a number of the readings: a list counts as its length; None where it is not told."""
    value: Any = values
    for name in path:
        value = value.get(name)
        if value is None:
            return None
    return float(len(value)) if isinstance(value, list) else float(value)
