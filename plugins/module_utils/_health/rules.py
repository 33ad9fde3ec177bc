# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules by which one GPU is checked: from its readings, without I/O."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .baseline import Baseline
from .finding import (
    ADMINISTRATOR,
    CRITICAL,
    GCM,
    GPUD,
    HEALTHAGENT,
    INFORMATION,
    MACHINE,
    OK,
    PROGRAM,
    RESET,
    SKIPPED,
    UNKNOWN,
    VENDOR,
    WARNING,
    Finding,
    Settings,
)

NVML = "NVIDIA, NVML API reference"
DCGM = "NVIDIA DCGM, dcgm_errors.h"
AZNHC = "Azure/azurehpc-health-checks, customTests"
DEEPOPS = "NVIDIA/deepops, roles/nhc"
NVSENTINEL = "NVIDIA/NVSentinel, gpu-health-monitor/dcgmerrorsmapping.csv"

# nvml.h, nvmlClocksEventReasons: those that mean heat or power, not a setting of an administrator.
THROTTLING = {
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "hardware power brake",
}
# nvml.h, nvmlDeviceGpuRecoveryAction_t
RECOVERY = {
    1: (CRITICAL, RESET, "reset the GPU"),
    2: (CRITICAL, MACHINE, "reboot the machine"),
    3: (WARNING, ADMINISTRATOR, "drain the peer-to-peer traffic of the GPU"),
    4: (CRITICAL, RESET, "reset the GPU when no program uses it"),
    5: (WARNING, ADMINISTRATOR, "recover the IMEX domain"),
    6: (CRITICAL, RESET, "reset the GPU's bus"),
    7: (CRITICAL, MACHINE, "reboot the machine, baseboard included"),
}
DRAIN_AND_RESET = 4
FABRIC_COMPLETED = 3
FABRIC_STATES = {1: "not started", 2: "in progress"}
# An idle GPU lowers the generation of its link to save power; above this utilization in percent it is not
# idle.
BUSY = 10
# Above this utilization in percent a GPU is at full load and has its highest clocks, if nothing lowers them.
FULL_LOAD = 90
# nvml.h, nvmlClocksEventReasonGpuIdle: no reason at full load.
IDLE_CLOCKS = 0x01
# Least part of the highest clock at full load, and of the default power limit, that is fine.
LEAST_CLOCK = 0.5
LEAST_POWER = 0.5
# The name in the failures of a GPU that could not even be opened.
HANDLE = "handle"


@dataclass(frozen=True)
class Reading:
    """Readings of one GPU.

    `values` by the names of `_nvml.io.readings`; what a GPU does not support is not among them. `failures`
    holds the name of NVML's error for what could not be read, `hung_in` the NVML call that did not return,
    `stuck` a process that waits for it and could not be ended.
    """

    index: int
    uuid: str
    name: str
    pci_address: str
    values: Mapping[str, Any]
    failures: Mapping[str, str]
    hung_in: str = ""
    stuck: str = ""

    @property
    def identity(self) -> dict[str, Any]:
        """Its fields that tell which GPU it is."""
        names = ("index", "uuid", "name", "pci_address")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        """The GPU as messages name it."""
        return f"GPU {self.index}" + (f" ({self.name}, {self.pci_address})" if self.name else "")


@dataclass(frozen=True)
class Context:
    """Input of a rule: a GPU, expected values, earlier readings, seconds since the boot.

    `contained` says that the kernel's log shows a contained error of its memory, and none that is worse: it
    ended the programs that had it, and the others go on (NVIDIA, "GPU Memory Error Management").
    `needs_links` says that equal GPUs show that this one should have active NVLinks.
    """

    reading: Reading
    settings: Settings
    baseline: Baseline
    now: float
    idle: bool
    contained: bool = False
    needs_links: bool = False

    @property
    def memory_error(self) -> str:
        """Status of a GPU with an uncorrectable error of its memory."""
        return WARNING if self.contained else CRITICAL

    def get(self, name: str) -> Any:
        """Return what was read under a name; None when the GPU does not tell it."""
        return self.reading.values.get(name)


@dataclass(frozen=True)
class Verdict:
    """Status, what was found in words, and the numbers behind it; `level` if it is not the rule's."""

    status: str
    detail: str
    value: Any = None
    threshold: Any = None
    level: str = ""


@dataclass(frozen=True)
class Rule:
    """A check.

    Attributes:
        needs: the reading that it checks.
        wrong: what is not well when it fails; the end of a sentence.
        grades: the statuses that it may then have, in words.
        action: what to do then.
        level: who has to do it, of `finding.LEVELS`.
        source: where the rule is from.
        check: checks a GPU that has the reading.
    """

    needs: str
    wrong: str
    grades: str
    action: str
    level: str
    source: str
    check: Callable[[Context], Verdict]


def _above(context: Context, what: str, value: float, unit: str, name: str, status: str = "") -> Verdict:
    """Compare with one threshold (of `status`), or with the pair `name`_warning and `name`_critical."""
    unit = f" {unit}" if unit else ""
    limits = [(name, status)] if status else [(f"{name}_critical", CRITICAL), (f"{name}_warning", WARNING)]
    for limit_name, limit_status in limits:
        limit = context.settings.limit(limit_name)
        if value > limit:
            return Verdict(limit_status, f"{what}: {value:g}{unit}, more than {limit:g}.", value, limit)
    return Verdict(OK, f"{what}: {value:g}{unit}.", value, context.settings.limit(limits[-1][0]))


def _recovery(context: Context) -> Verdict:
    value = context.get("recovery_action")
    if not value:
        return Verdict(OK, "The driver asks for no recovery.", value, 0)
    unknown = (WARNING, ADMINISTRATOR, f"do what action {value} of NVML means")
    status, level, words = RECOVERY.get(value, unknown)
    if value == DRAIN_AND_RESET and context.contained:
        status = WARNING
    return Verdict(status, f"The driver asks to {words}.", value, 0, level)


def _persistence(context: Context) -> Verdict:
    enabled = bool(context.get("persistence"))
    return Verdict(
        OK if enabled else WARNING, f"Persistence mode is {'on' if enabled else 'off'}.", enabled, True
    )


def _ecc_mode(context: Context) -> Verdict:
    current, pending = context.get("ecc_mode")
    if current != pending:
        return Verdict(
            WARNING, f"ECC goes {'on' if pending else 'off'} with the next reset.", [current, pending]
        )
    return Verdict(OK if current else WARNING, f"ECC is {'on' if current else 'off'}.", [current, pending])


def _ecc_uncorrected(context: Context) -> Verdict:
    count = context.get("ecc_uncorrected")
    words = f"Uncorrectable memory errors since the driver was loaded: {count}."
    return Verdict(context.memory_error if count else OK, words, count, 0)


def _ecc_corrected(context: Context) -> Verdict:
    value = context.get("ecc_corrected")
    total = _above(
        context, "Corrected memory errors since the driver was loaded", value, "", "ecc_corrected", WARNING
    )
    speed = context.baseline.per_minute(context.reading.uuid, "ecc_corrected", value, context.now)
    if total.status != OK or speed is None:
        return total
    rate = _above(
        context, "Corrected memory errors", speed, "per minute", "ecc_corrected_per_minute", WARNING
    )
    return rate if rate.status != OK else total


def _sram(context: Context) -> Verdict:
    sram = context.get("sram")
    if sram["threshold_exceeded"]:
        return Verdict(CRITICAL, "Uncorrectable errors of the SRAM exceed NVIDIA's limit for return.", sram)
    count = sram["uncorrected"]
    return Verdict(CRITICAL if count else OK, f"Uncorrectable errors of the SRAM: {count}.", count, 0)


def _remapped_rows(context: Context) -> Verdict:
    rows = context.get("remapped_rows")["uncorrected"]
    return _above(
        context, "Memory rows remapped after uncorrectable errors", rows, "", "remapped_rows", WARNING
    )


def _remap_pending(context: Context) -> Verdict:
    flag = bool(context.get("remapped_rows")["pending"])
    words = f"Memory rows wait for a reset to be remapped: {'yes' if flag else 'no'}."
    return Verdict(context.memory_error if flag else OK, words, flag, False)


def _remap_failed(context: Context) -> Verdict:
    flag = bool(context.get("remapped_rows")["failure"])
    words = f"Remapping of a memory row has failed: {'yes' if flag else 'no'}."
    return Verdict(CRITICAL if flag else OK, words, flag, False)


def _retired_pages(context: Context) -> Verdict:
    pages = context.get("retired_pages")
    if pages["pending"]:
        return Verdict(CRITICAL, "Memory pages wait for a reset to be retired.", pages)
    return _above(context, "Memory pages retired", pages["single"] + pages["double"], "", "retired_pages")


def _nvlink_state(context: Context) -> Verdict:
    links = context.get("nvlinks")
    active, down = sum(links.values()), sorted((link for link, up in links.items() if not up), key=int)
    expected = context.settings.expected_nvlinks
    words = f"NVLinks: {active} active, {len(down)} inactive" + (f" ({', '.join(down)})." if down else ".")
    if expected:
        return Verdict(CRITICAL if active < expected else OK, words, active, expected)
    if not active and context.needs_links:
        words += " Another GPU of the same model has active ones."
        return Verdict(WARNING, words, active, len(links))
    # Without any active link there is no bridge; with some, the others may be down or not be wired.
    return Verdict(WARNING if active and down else OK, words, active, len(links))


def _nvlink_errors(context: Context) -> Verdict:
    growth = context.baseline.growth(context.reading.uuid, "nvlink_errors", context.get("nvlink_errors"))
    if growth is None:
        return _no_baseline()
    return _above(context, "NVLink errors since the last recorded run", growth, "", "nvlink_errors", WARNING)


def _fabric(context: Context) -> Verdict:
    fabric = context.get("fabric")
    if fabric["state"] == FABRIC_COMPLETED and fabric["status"] == 0:
        return Verdict(OK, "The GPU has joined the NVLink fabric.", fabric)
    state = FABRIC_STATES.get(fabric["state"], f"done with status {fabric['status']}")
    return Verdict(CRITICAL, f"The GPU has not joined the NVLink fabric: registration is {state}.", fabric)


def _pcie_width(context: Context) -> Verdict:
    current, most = context.get("pcie_width")
    return Verdict(OK if current >= most else CRITICAL, f"PCIe lanes: {current} of {most}.", current, most)


def _pcie_generation(context: Context) -> Verdict:
    current, most = context.get("pcie_generation")
    load = context.get("utilization")
    if load is None or load <= BUSY:
        return Verdict(SKIPPED, "An idle GPU, or one whose load is not told, may use any PCIe generation.")
    return Verdict(
        OK if current >= most else WARNING, f"PCIe generation: {current} of {most}.", current, most
    )


def _pcie_replays(context: Context) -> Verdict:
    speed = context.baseline.per_minute(
        context.reading.uuid, "pcie_replays", context.get("pcie_replays"), context.now
    )
    if speed is None:
        return _no_baseline()
    return _above(context, "PCIe packets sent again", speed, "per minute", "pcie_replays_per_minute")


def throttling(mask: int) -> list[str]:
    """Return the words for those bits of nvmlClocksEventReasons that mean heat or power."""
    return [words for bit, words in THROTTLING.items() if mask & bit]


def _throttle(context: Context) -> Verdict:
    reasons = throttling(context.get("clock_reasons"))
    if not reasons:
        return Verdict(OK, "The clocks are not lowered by heat or power.", 0)
    runs = context.baseline.throttled.get(context.reading.uuid, 0) + 1
    limit = context.settings.limit("throttled_runs")
    words = f"The clocks are lowered by {', '.join(reasons)}, in {runs} run(s) in a row."
    return Verdict(CRITICAL if runs > limit else WARNING, words, runs, limit)


def _temperature(context: Context) -> Verdict:
    value, slowdown = context.get("temperature"), context.get("slowdown_temperature")
    if slowdown and value >= slowdown:
        return Verdict(
            CRITICAL, f"Temperature: {value} °C; the GPU slows down at {slowdown}.", value, slowdown
        )
    return _above(context, "Temperature", value, "°C", "temperature")


def _memory_temperature(context: Context) -> Verdict:
    value, most = context.get("memory_temperature"), context.get("max_memory_temperature")
    if not value:
        return Verdict(SKIPPED, "The GPU does not tell the temperature of its memory.")
    if most and value >= most:
        words = f"Temperature of the memory: {value} °C; the GPU slows down at {most}."
        return Verdict(CRITICAL, words, value, most)
    return _above(context, "Temperature of the memory", value, "°C", "memory_temperature", WARNING)


def _sm_clock(context: Context) -> Verdict:
    most, load = context.get("max_sm_clock_mhz"), context.get("utilization")
    if not most or load is None or load <= FULL_LOAD:
        return Verdict(SKIPPED, "Only a GPU at full load has its highest clock.")
    if (context.get("clock_reasons") or 0) & ~IDLE_CLOCKS:
        return Verdict(SKIPPED, "The driver has a reason to lower the clocks.")
    clock, least = context.get("clocks_mhz")["sm"], most * LEAST_CLOCK
    words = f"Clock at full load: {clock} of {most} MHz."
    return Verdict(OK if clock >= least else WARNING, words, clock, least)


def _power_limit(context: Context) -> Verdict:
    limits = [context.get(name) for name in ("power_limit_mw", "default_power_limit_mw")]
    if None in limits:
        return Verdict(SKIPPED, "The GPU does not tell its power limit.")
    limit, default = (round(one / 1000) for one in limits)
    words, least = f"Power limit: {limit} W; the default is {default} W.", default * LEAST_POWER
    return Verdict(OK if limit >= least else WARNING, words, limit, least)


def _power(context: Context) -> Verdict:
    watts = round(context.get("power_mw") / 1000)
    return Verdict(OK, f"Power: {watts} W.", watts)


def _mig_mode(context: Context) -> Verdict:
    mig = context.get("mig")
    same = mig["current"] == mig["pending"]
    words = f"MIG mode is {'on' if mig['current'] else 'off'}"
    words += "." if same else f" and goes {'on' if mig['pending'] else 'off'} with the next reset."
    return Verdict(OK if same else WARNING, words, mig["current"], mig["pending"])


def _idle(context: Context) -> Verdict:
    if not context.idle:
        return Verdict(SKIPPED, "Whether the GPU is idle was not asked.")
    programs = context.get("processes")
    if programs:
        return Verdict(CRITICAL, f"Programs use the GPU: PIDs {', '.join(map(str, programs))}.", programs)
    # MIG instances take memory themselves.
    if (context.get("mig") or {}).get("current") or context.get("memory") is None:
        return Verdict(OK, "No program uses the GPU.", programs)
    return _above(context, "Memory in use without a program", context.get("memory")["used_mib"], "MiB",
                  "idle_memory_mib", CRITICAL)  # fmt: skip


def _no_baseline() -> Verdict:
    return Verdict(SKIPPED, "No earlier run of this boot is recorded to compare with.")


_INSPECT = "run NVIDIA's field diagnostic; the GPU may have to be returned"
_RESET = "reset the GPU when no program uses it"

RULES: Mapping[str, Rule] = {
    "recovery_action": Rule(
        needs="recovery_action",
        wrong="the driver asks for a reset, a reboot or a drain",
        grades="critical or warning",
        action="do as the driver asks",
        level=RESET,
        source=f"{NVML}, nvmlDeviceGpuRecoveryAction_t",
        check=_recovery,
    ),
    "inforom": Rule(
        needs="inforom",
        wrong="the InfoROM is corrupt",
        grades="critical",
        action="reset the GPU; return it if that does not help",
        level=RESET,
        source=f"{NVSENTINEL}, DCGM_FR_CORRUPT_INFOROM",
        check=lambda _context: Verdict(OK, "The InfoROM is valid."),
    ),
    "persistence": Rule(
        needs="persistence",
        wrong="persistence mode is off",
        grades="warning",
        action="start nvidia-persistenced",
        level=ADMINISTRATOR,
        source=f"{GPUD}/persistence-mode",
        check=_persistence,
    ),
    "ecc_mode": Rule(
        needs="ecc_mode",
        wrong="error correction is off or waits for a reset",
        grades="warning",
        action="switch ECC on and reset the GPU",
        level=ADMINISTRATOR,
        source=f"{GPUD}/ecc",
        check=_ecc_mode,
    ),
    "ecc_uncorrected": Rule(
        needs="ecc_uncorrected",
        wrong="any uncorrectable memory error since the driver was loaded",
        grades="critical; warning if contained",
        action=_RESET,
        level=RESET,
        source=HEALTHAGENT,
        check=_ecc_uncorrected,
    ),
    "ecc_corrected": Rule(
        needs="ecc_corrected",
        wrong="many corrected memory errors, or many per minute",
        grades="warning",
        action="watch the GPU",
        level=INFORMATION,
        source=f"{GCM}; {HEALTHAGENT}",
        check=_ecc_corrected,
    ),
    "sram": Rule(
        needs="sram",
        wrong="uncorrectable errors of the SRAM",
        grades="critical",
        action=_INSPECT,
        level=VENDOR,
        source=f"{NVML}, nvmlEccSramErrorStatus_v1_t",
        check=_sram,
    ),
    "row_remap_pending": Rule(
        needs="remapped_rows",
        wrong="memory rows wait for a reset to be remapped",
        grades="critical; warning if contained",
        action=_RESET,
        level=RESET,
        source=f"{GPUD}/remapped-rows; {NVSENTINEL}",
        check=_remap_pending,
    ),
    "row_remap_failed": Rule(
        needs="remapped_rows",
        wrong="remapping of a memory row has failed",
        grades="critical",
        action=_INSPECT,
        level=VENDOR,
        source=f"{GPUD}/remapped-rows; {NVSENTINEL}",
        check=_remap_failed,
    ),
    "row_remap_count": Rule(
        needs="remapped_rows",
        wrong="many memory rows remapped",
        grades="warning",
        action="plan a return",
        level=VENDOR,
        source=f"{GPUD}/remapped-rows",
        check=_remapped_rows,
    ),
    "retired_pages": Rule(
        needs="retired_pages",
        wrong="memory pages wait to be retired, or many are (before Ampere)",
        grades="warning, critical",
        action="reset the GPU when no program uses it; return it from 64 pages on",
        level=RESET,
        source=HEALTHAGENT,
        check=_retired_pages,
    ),
    "nvlink_state": Rule(
        needs="nvlinks",
        wrong="fewer active NVLinks than expected, or none where equal GPUs have some, not through bridges",
        grades="critical; warning if none are expected",
        action="drain the machine and reboot it",
        level=MACHINE,
        source=f"{AZNHC}; {NVSENTINEL}, DCGM_FR_NVLINK_DOWN",
        check=_nvlink_state,
    ),
    "nvlink_errors": Rule(
        needs="nvlink_errors",
        wrong="NVLink errors since the last run of the timer",
        grades="warning",
        action="check cables and bridges",
        level=ADMINISTRATOR,
        source=f"{GPUD}/nvlink",
        check=_nvlink_errors,
    ),
    "fabric_state": Rule(
        needs="fabric",
        wrong="the GPU has not joined the NVLink fabric",
        grades="critical",
        action="restart the fabric manager",
        level=ADMINISTRATOR,
        source=f"{DCGM}, DCGM_FR_FABRIC_MANAGER_TRAINING_ERROR",
        check=_fabric,
    ),
    "pcie_width": Rule(
        needs="pcie_width",
        wrong="fewer PCIe lanes than GPU and slot have",
        grades="critical",
        action="seat the card anew",
        level=ADMINISTRATOR,
        source=f"{DEEPOPS}; {DCGM}, DCGM_FR_PCIE_WIDTH",
        check=_pcie_width,
    ),
    "pcie_generation": Rule(
        needs="pcie_generation",
        wrong="a slower PCIe generation while the GPU is busy",
        grades="warning",
        action="seat the card anew and check the firmware's settings",
        level=ADMINISTRATOR,
        source=f"{DCGM}, DCGM_FR_PCIE_GENERATION",
        check=_pcie_generation,
    ),
    "pcie_replays": Rule(
        needs="pcie_replays",
        wrong="many PCIe packets sent again per minute",
        grades="warning, critical",
        action="seat the card anew",
        level=ADMINISTRATOR,
        source=HEALTHAGENT,
        check=_pcie_replays,
    ),
    "throttling": Rule(
        needs="clock_reasons",
        wrong="clocks lowered by heat or power",
        grades="warning; critical in several runs",
        action="check cooling and power supply",
        level=ADMINISTRATOR,
        source=f"{HEALTHAGENT}; {GPUD}/hw-slowdown",
        check=_throttle,
    ),
    "temperature": Rule(
        needs="temperature",
        wrong="the GPU is hot",
        grades="warning, critical",
        action="check the cooling",
        level=ADMINISTRATOR,
        source=f"{HEALTHAGENT}; {GPUD}/temperature",
        check=_temperature,
    ),
    "memory_temperature": Rule(
        needs="memory_temperature",
        wrong="the memory of the GPU is hot",
        grades="warning; critical at the limit of the GPU",
        action="check the cooling",
        level=ADMINISTRATOR,
        source=f"{NVML}, nvmlTemperatureThresholds_t; {GPUD}/temperature",
        check=_memory_temperature,
    ),
    "sm_clock": Rule(
        needs="clocks_mhz",
        wrong="a low clock at full load, and the driver tells no reason",
        grades="warning",
        action="reset the GPU when no program uses it; if that does not help, check the power supply",
        level=RESET,
        source=f"{NVML}, nvmlClocksEventReasons; {AZNHC}, azure_gpu_app_clocks",
        check=_sm_clock,
    ),
    "power_limit": Rule(
        needs="default_power_limit_mw",
        wrong="the power limit is far below the default",
        grades="warning",
        action="set the power limit with nvidia-smi --power-limit",
        level=ADMINISTRATOR,
        source=f"{NVML}, nvmlDeviceGetPowerManagementDefaultLimit; {GPUD}/power",
        check=_power_limit,
    ),
    "power": Rule(
        needs="power_mw",
        wrong="the power cannot be read",
        grades="unknown",
        action="drain the machine and reboot it",
        level=MACHINE,
        source=f"{DCGM}, DCGM_FR_POWER_UNREADABLE",
        check=_power,
    ),
    "mig_mode": Rule(
        needs="mig",
        wrong="MIG mode waits for a reset",
        grades="warning",
        action="reset the GPU when it is idle",
        level=RESET,
        source=f"{NVML}, nvmlDeviceGetMigMode",
        check=_mig_mode,
    ),
    "idle": Rule(
        needs="processes",
        wrong="programs or memory on a GPU that should be idle (`--idle` only)",
        grades="critical",
        action="end what uses the GPU",
        level=PROGRAM,
        source=GCM,
        check=_idle,
    ),
}

# Meaning of one failed call for the whole GPU (nvml.h, nvmlReturn_t), level and remedy.
FATAL_ERRORS = {
    "GPU_IS_LOST": ("has fallen off the bus", MACHINE, "drain the machine and reboot it"),
    "RESET_REQUIRED": ("needs a reset before it can be used again", RESET, _RESET),
}
# Readings whose failure is itself what the check looks for.
TELLING_ERRORS = {"inforom": ("CORRUPTED_INFOROM", CRITICAL, "The InfoROM is corrupt.")}


def check_gpu(context: Context) -> list[Finding]:
    """Return the findings of one GPU: of `gpu_responds`, and of the checks of `RULES` that are on."""
    reading = context.reading
    findings = [_responds(reading)]
    dead = findings[0].status == CRITICAL and not reading.hung_in
    for name, rule in RULES.items():
        if name in context.settings.disabled_checks:
            continue
        verdict = _unchecked(rule, reading, dead) or rule.check(context)
        healthy = verdict.status in (OK, SKIPPED)
        findings.append(
            Finding(
                name,
                verdict.status,
                verdict.detail,
                action="" if healthy else rule.action,
                source=rule.source,
                gpu=reading.uuid or str(reading),
                value=verdict.value,
                threshold=verdict.threshold,
                level="" if healthy else verdict.level or rule.level,
            )
        )
    return findings


def _responds(reading: Reading) -> Finding:
    gpu = reading.uuid or str(reading)
    if reading.hung_in:
        return Finding(
            "gpu_responds",
            CRITICAL,
            f"{reading} hangs: the driver did not return from {reading.hung_in}.",
            "drain the machine and reboot it",
            "a hang of the driver has no other way to show",
            gpu,
            level=MACHINE,
        )
    for error, (words, level, action) in FATAL_ERRORS.items():
        if error in reading.failures.values():
            source = f"{NVML}, NVML_ERROR_{error}"
            return Finding("gpu_responds", CRITICAL, f"{reading} {words}.", action, source, gpu, level=level)
    if HANDLE in reading.failures:
        words = f"{reading} cannot be opened: {reading.failures[HANDLE]}."
        action = "drain the machine and reboot it"
        return Finding("gpu_responds", CRITICAL, words, action, NVML, gpu, level=MACHINE)
    return Finding("gpu_responds", OK, f"{reading} answers.", "", NVML, gpu)


def _unchecked(rule: Rule, reading: Reading, dead: bool) -> Verdict | None:
    """Return a verdict where there is nothing to check; None where there is."""
    if rule.needs in reading.values:
        return None
    error = reading.failures.get(rule.needs)
    if dead or (reading.hung_in and error is None):
        return Verdict(SKIPPED, "It was not asked, as the GPU does not respond.")
    if error is None:
        return Verdict(SKIPPED, "The GPU does not tell it, or not in its present mode.")
    telling, status, words = TELLING_ERRORS.get(rule.needs, ("", "", ""))
    if error == telling:
        return Verdict(status, words)
    return Verdict(UNKNOWN, f"NVML could not tell it: {error}.")
