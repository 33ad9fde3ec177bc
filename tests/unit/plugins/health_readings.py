"""Readings of a GPU in best health, from which the tests of the health engine depart."""

from __future__ import annotations

from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Finding, Settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import Machine, evaluate
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import Reading

UUID = "GPU-1"
BOOT = "boot-1"
WELL: dict[str, Any] = {
    "recovery_action": 0,
    "inforom": True,
    "persistence": True,
    "ecc_mode": [True, True],
    "ecc_corrected": 0,
    "ecc_uncorrected": 0,
    "sram": {"uncorrected": 0, "threshold_exceeded": False},
    "remapped_rows": {"corrected": 0, "uncorrected": 0, "pending": False, "failure": False},
    "retired_pages": {"single": 0, "double": 0, "pending": False},
    "nvlinks": {str(link): True for link in range(12)},
    "nvlink_errors": 0,
    "fabric": {"state": 3, "status": 0},
    "pcie_width": [16, 16],
    "pcie_generation": [4, 4],
    "pcie_replays": 0,
    "clock_reasons": 1,
    "clocks_mhz": {"sm": 1410, "memory": 1593},
    "max_sm_clock_mhz": 1410,
    "temperature": 40,
    "memory_temperature": 60,
    "slowdown_temperature": 92,
    "power_mw": 60000,
    "power_limit_mw": 400000,
    "default_power_limit_mw": 400000,
    "utilization": 95,
    "memory": {"total_mib": 81920, "used_mib": 2},
    "mig": {"current": False, "pending": False},
    "processes": [],
}


def gpu(hung_in: str = "", failures: dict[str, str] | None = None, **values: Any) -> Reading:
    return Reading(0, UUID, "NVIDIA A100", "0000:07:00.0", {**WELL, **values}, failures or {}, hung_in)


def machine(*gpus: Reading, **other: Any) -> Machine:
    return Machine(gpus=gpus, **{"driver_version": "550.1", "boot_id": BOOT, "now": 1000.0, **other})


def findings_of(
    one: Machine | Reading,
    settings: Settings | None = None,
    baseline: Baseline | None = None,
    idle: bool = False,
) -> dict[str, Finding]:
    """Return the findings by their checks, of which each is there once."""
    whole = one if isinstance(one, Machine) else machine(one)
    findings = evaluate(whole, settings or Settings(), baseline or Baseline(), idle)
    return {finding.check: finding for finding in findings}
