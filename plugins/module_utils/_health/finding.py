# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of a health report: findings, their statuses, the settings and thresholds of the checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

OK, SKIPPED, WARNING, UNKNOWN, CRITICAL = "ok", "skipped", "warning", "unknown", "critical"
# From the best to the worst. Skipped checks say nothing about health. Failed readings are worse
# than a warning, as anything may hide behind it, and not as bad as what is known to be broken.
ORDER = (SKIPPED, OK, WARNING, UNKNOWN, CRITICAL)

# Levels: who has to act on a finding, and on what.
INFORMATION = "information"  # nobody, for now
PROGRAM = "program"  # the user: the program on the GPU
ADMINISTRATOR = "administrator"  # the administrator: settings, cooling, cables
RESET = "reset"  # the administrator: the GPU needs a reset
MACHINE = "machine"  # the administrator: the machine needs to be drained and rebooted
VENDOR = "vendor"  # the vendor: the GPU has to be inspected or replaced
LEVELS = (INFORMATION, PROGRAM, ADMINISTRATOR, RESET, MACHINE, VENDOR)


class HealthError(Exception):
    """The check has no result; the text is a sentence for a user."""


@dataclass(frozen=True)
class Finding:
    """The outcome of one check of one GPU, or of the machine when `gpu` is empty.

    `action` says what to do (empty when nothing is), `level` who has to do it (of `LEVELS`, empty when
    nobody), `source` which document or project the rule is from.
    """

    check: str
    status: str
    detail: str
    action: str = ""
    source: str = ""
    gpu: str = ""
    value: Any = None
    threshold: Any = None
    level: str = ""

    @property
    def forbids_gpu(self) -> bool:
        """Whether the GPU must not be used before the administrator or the vendor has acted."""
        return self.status == CRITICAL and self.gpu != "" and self.level in (RESET, MACHINE, VENDOR)

    @property
    def forbids_machine(self) -> bool:
        """Whether no GPU of the machine can be used before the administrator has acted."""
        return self.status == CRITICAL and (self.gpu == "" or self.level == MACHINE)


def worst(findings: Iterable[Finding]) -> str:
    """Return the overall status: that of the worst finding, `unknown` when no check could be made."""
    statuses = [finding.status for finding in findings if finding.status != SKIPPED]
    return max(statuses, key=ORDER.index) if statuses else UNKNOWN


@dataclass(frozen=True)
class Threshold:
    """The largest value that is still fine, what it is a value of, and who says so."""

    default: float
    meaning: str
    source: str


HEALTHAGENT = "Azure/cyclecloud-healthagent, healthagent/defaults.yaml"
GCM = "facebookresearch/gcm, gcm/health_checks/checks"
XID_CATALOGUE = "NVIDIA, XID catalogue"
GPUD = "leptonai/gpud, components/accelerator/nvidia"

THRESHOLDS: Mapping[str, Threshold] = {
    "temperature_warning": Threshold(83, "temperature of the GPU in °C", HEALTHAGENT),
    "temperature_critical": Threshold(90, "temperature of the GPU in °C", HEALTHAGENT),
    "memory_temperature": Threshold(95, "temperature of the memory in °C", f"{GPUD}/temperature"),
    "graphics_error_programs": Threshold(
        3, "programs of one GPU that met XID 13 in this boot", XID_CATALOGUE
    ),
    "ecc_corrected": Threshold(50_000_000, "corrected memory errors since the driver was loaded", GCM),
    "ecc_corrected_per_minute": Threshold(100, "corrected memory errors per minute", HEALTHAGENT),
    "remapped_rows": Threshold(7, "memory rows remapped after uncorrectable errors", GPUD),
    "retired_pages_warning": Threshold(50, "memory pages retired", HEALTHAGENT),
    "retired_pages_critical": Threshold(63, "memory pages retired", HEALTHAGENT),
    "pcie_replays_per_minute_warning": Threshold(50, "PCIe packets sent again per minute", HEALTHAGENT),
    "pcie_replays_per_minute_critical": Threshold(200, "PCIe packets sent again per minute", HEALTHAGENT),
    "nvlink_errors": Threshold(0, "NVLink errors since the last recorded run", GPUD),
    "throttled_runs": Threshold(
        2, "recorded runs in a row that found the clocks lowered by heat or power", f"{GPUD}/hw-slowdown"
    ),
    "idle_memory_mib": Threshold(15, "memory in MiB that an idle GPU uses", GCM),
}


# Settings that are numbers.
NUMBERS = ("expected_gpus", "expected_nvlinks", "call_timeout")


@dataclass(frozen=True)
class Settings:
    """How to check: the content of the settings file, under the same names.

    `expected_gpus` and `expected_nvlinks` (of each GPU) are 0 when nothing in particular is expected.
    `xid_status` overrides the status of XIDs by their numbers. `call_timeout` is in seconds. `cordon` says
    whether GPUs that must not be used are cordoned. The commands are lists of words, run without a shell.
    """

    thresholds: Mapping[str, float] = field(default_factory=dict)
    expected_gpus: int = 0
    expected_nvlinks: int = 0
    disabled_checks: tuple[str, ...] = ()
    xid_status: Mapping[str, str] = field(default_factory=dict)
    call_timeout: float = 30
    textfile: str = ""
    cordon: bool = True
    drain_command: tuple[str, ...] = ()
    resume_command: tuple[str, ...] = ()

    def limit(self, name: str) -> float:
        """Return the largest value that is fine for a threshold of `THRESHOLDS`."""
        return self.thresholds.get(name, THRESHOLDS[name].default)


def problems(data: Mapping[str, Any], checks: Iterable[str]) -> list[str]:
    """Return what is wrong with settings, one sentence each.

    Args:
        data: settings by their names; all may be missing.
        checks: names of the checks that can be disabled.
    """
    return list(_name_problems(data, checks)) or list(_value_problems(data))


def parse_settings(data: Mapping[str, Any], checks: Iterable[str]) -> Settings:
    """Read settings.

    Args:
        data: settings by their names; all may be missing.
        checks: names of the checks that can be disabled.

    Raises:
        HealthError: when names or values are not understood, in sentences that name what is.
    """
    wrong = problems(data, checks)
    if wrong:
        raise HealthError(" ".join(wrong))
    return _settings(data)


def _settings(data: Mapping[str, Any]) -> Settings:
    values: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in data.items()
    }
    values["xid_status"] = {str(code): status for code, status in data.get("xid_status", {}).items()}
    return Settings(**values)


def _name_problems(data: Mapping[str, Any], checks: Iterable[str]) -> Iterator[str]:
    for kind, names, known in (
        ("setting", data, {one.name for one in fields(Settings)}),
        ("threshold", data.get("thresholds", {}), THRESHOLDS),
        ("check", data.get("disabled_checks", ()), checks),
    ):
        for name in names:
            if name not in known:
                yield f"There is no {kind} '{name}': choose among {', '.join(sorted(known))}."


def _value_problems(data: Mapping[str, Any]) -> Iterator[str]:
    numbers = {name: data[name] for name in NUMBERS if name in data}
    wrong = {
        name: value
        for name, value in {**data.get("thresholds", {}), **numbers}.items()
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0
    }
    for name, value in wrong.items():
        yield f"The value '{value}' of '{name}' is no number that is 0 or more: correct it."
    for code, status in data.get("xid_status", {}).items():
        if not str(code).isdecimal() or status not in (OK, WARNING, CRITICAL):
            yield (
                f"The status '{status}' of XID '{code}' is not understood: give a number and one of"
                f" '{OK}', '{WARNING}' and '{CRITICAL}'."
            )
    if not isinstance(data.get("cordon", True), bool):
        yield f"The value '{data['cordon']}' of 'cordon' is neither true nor false: correct it."
    if wrong:
        return
    settings = _settings(data)
    if settings.call_timeout <= 0:
        yield "The setting 'call_timeout' is 0: give the seconds that one call to the driver may take."
    for lower in ("temperature", "retired_pages", "pcie_replays_per_minute"):
        if settings.limit(f"{lower}_warning") > settings.limit(f"{lower}_critical"):
            yield f"The threshold '{lower}_warning' is above '{lower}_critical': correct one of them."
