# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each health check means for people who do not see its finding: what is not well, and what to do."""

from __future__ import annotations

from collections.abc import Mapping

from .rules import RULES

# What is not well, by the name of the check; a sentence's end.
WRONG: Mapping[str, str] = {
    "nvml": "the driver does not answer",
    "gpu_responds": "the GPU is lost or hangs",
    "gpu_count": "fewer GPUs than expected, or than are on the PCI bus",
    "driver_match": "library and loaded kernel module are of different versions",
    "vbios": "GPUs of one model have different video BIOSes",
    "xid": "errors of the driver in the kernel's log, as NVIDIA's catalogue grades them",
    "sxid": "errors of NVSwitches in the kernel's log",
    "dcgm_health": "what DCGM watches",
    "dcgm_diag": "the active diagnostic of DCGM (`--dcgm-diag LEVEL` only)",
    "recovery_action": "the driver asks for a reset, a reboot or a drain",
    "inforom": "the InfoROM is corrupt",
    "persistence": "persistence mode is off",
    "ecc_mode": "error correction is off or waits for a reset",
    "ecc_uncorrected": "any uncorrectable memory error since the driver was loaded",
    "ecc_corrected": "many corrected memory errors, or many per minute",
    "sram": "uncorrectable errors of the SRAM",
    "row_remap_pending": "memory rows wait for a reset to be remapped",
    "row_remap_failed": "remapping of a memory row has failed",
    "row_remap_count": "many memory rows remapped",
    "retired_pages": "memory pages wait to be retired, or many are (before Ampere)",
    "nvlink_state": "fewer active NVLinks than expected",
    "nvlink_errors": "NVLink errors since the last run of the timer",
    "fabric_state": "the GPU has not joined the NVLink fabric",
    "pcie_width": "fewer PCIe lanes than GPU and slot have",
    "pcie_generation": "a slower PCIe generation while the GPU is busy",
    "pcie_replays": "many PCIe packets sent again per minute",
    "throttling": "clocks lowered by heat or power",
    "temperature": "the GPU is hot",
    "power": "the power cannot be read",
    "mig_mode": "MIG mode waits for a reset",
    "idle": "programs or memory on a GPU that should be idle (`--idle` only)",
}
# What to do about the checks that are not of `RULES`, which say it themselves.
_STEPS: Mapping[str, str] = {
    "nvml": "repair the driver",
    "gpu_responds": "drain the machine and reboot it",
    "gpu_count": "drain the machine; look for a GPU that is missing",
    "driver_match": "reboot the machine",
    "vbios": "bring the firmware in line",
    "xid": "do as the finding says, then acknowledge it with gpufarm-health --acknowledge",
    "sxid": "do as the finding says, then acknowledge it with gpufarm-health --acknowledge",
    "dcgm_health": "do as DCGM says",
    "dcgm_diag": "do as DCGM says",
}


def step(check: str) -> str:
    """Return what to do about a check that is not well."""
    return RULES[check].action if check in RULES else _STEPS[check]
