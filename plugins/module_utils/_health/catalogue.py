# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The meaning of each health check, for people who do not see its finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .rules import RULES


@dataclass(frozen=True)
class Meaning:
    """Problem, possible statuses and remedy of a failed check, in words."""

    wrong: str
    grades: str
    step: str


_OF_OTHERS: Mapping[str, Meaning] = {
    "nvml": Meaning(
        "the driver does not answer",
        "critical",
        "repair the driver",
    ),
    "gpu_responds": Meaning(
        "the GPU is lost or hangs",
        "critical",
        "drain the machine and reboot it",
    ),
    "gpu_count": Meaning(
        "fewer GPUs than expected, or than are on the PCI bus",
        "critical",
        "drain the machine; look for a GPU that is missing",
    ),
    "driver_match": Meaning(
        "library and loaded kernel module are of different versions",
        "warning",
        "reboot the machine",
    ),
    "vbios": Meaning(
        "GPUs of one model have different video BIOSes",
        "warning",
        "bring the firmware in line",
    ),
    "cordon": Meaning(
        "a GPU or slice is given to nobody",
        "warning",
        "repair it and run gpufarm-health uncordon",
    ),
    "xid": Meaning(
        "errors of the driver in the kernel's log, as NVIDIA's catalogue grades them",
        "per error",
        "do as the finding says, then acknowledge it with gpufarm-health --acknowledge",
    ),
    "graphics_errors": Meaning(
        "many programs met XID 13 on one GPU",
        "warning",
        "run 'dcgmi diag -r 3' on the GPU when no program uses it",
    ),
    "sxid": Meaning(
        "errors of NVSwitches in the kernel's log",
        "critical if fatal, else warning",
        "do as the finding says, then acknowledge it with gpufarm-health --acknowledge",
    ),
    "dcgm_health": Meaning(
        "what DCGM watches",
        "as DCGM says",
        "do as DCGM says",
    ),
    "dcgm_diag": Meaning(
        "the active diagnostic of DCGM (`--dcgm-diag LEVEL` only)",
        "critical; warning for settings",
        "do as DCGM says",
    ),
}
MEANINGS: Mapping[str, Meaning] = {
    **_OF_OTHERS,
    **{name: Meaning(rule.wrong, rule.grades, rule.action) for name, rule in RULES.items()},
}
