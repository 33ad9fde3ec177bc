# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of the GPUs of a machine. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from .compare import Value

# Readings that are settings of a GPU or a build of it; the others change from moment to moment.
READINGS = (
    "vbios",
    "persistence",
    "compute_mode",
    "ecc_mode",
    "max_sm_clock_mhz",
    "power_limit_mw",
    "pcie_width",
)


def properties(told: Mapping[str, Any]) -> dict[str, Value]:
    """Return the properties of the GPUs of a machine.

    Args:
        told: what the module gpu_info returned, also when it failed.
    """
    if "gpus" not in told:
        return {"gpu.unreadable": str(told.get("msg", "not asked"))}
    driver = told["driver"]
    found: dict[str, Value] = {
        "gpu.count": len(told["gpus"]),
        "gpu.driver": driver["version"],
        "gpu.kernel_module": driver["kernel_module_kind"],
    }
    for gpu in told["gpus"]:
        found.update(
            {f"gpu.{gpu['index']}.{name}": value for name, value in _of_gpu(gpu, told["slices"]).items()}
        )
    for gpu in told["unreadable"]:
        found[f"gpu.{gpu['index']}.unreadable"] = gpu["reason"]
    return found


def _of_gpu(gpu: Mapping[str, Any], slices: list[Mapping[str, Any]]) -> dict[str, Value]:
    readings = gpu["readings"]
    layout = Counter(one["profile"] for one in slices if one["gpu"] == gpu["uuid"])
    found: dict[str, Value] = {
        "model": gpu["name"],
        "memory_mib": gpu["memory_mib"],
        "mig": "on" if gpu["mig_enabled"] else "off",
        "slices": ", ".join(f"{number}x {profile}" for profile, number in sorted(layout.items())) or "none",
        "cordoned": "yes" if gpu["cordoned"] else "no",
    }
    found.update({name: str(readings[name]) for name in READINGS if name in readings})
    if "pcie_generation" in readings:  # the present one falls while the GPU is idle
        found["largest_pcie_generation"] = readings["pcie_generation"][1]
    if readings.get("nvlinks") is not None:
        found["active_nvlinks"] = sum(readings["nvlinks"].values())
    return found
