# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole of a health check: the machine and its GPUs, checked from readings, without I/O."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from .._cordon.cordon import Cordon
from . import equals
from .baseline import Baseline, Hang
from .finding import (
    ADMINISTRATOR,
    CRITICAL,
    MACHINE,
    OK,
    SKIPPED,
    UNKNOWN,
    WARNING,
    XID_CATALOGUE,
    Finding,
    Settings,
    problems,
)
from .kernel_log import GRAPHICS_EXCEPTION, Event, Grade, contained, grade, short_address
from .rules import NVML, RULES, Context, Reading, check_gpu, throttling

# The counters that a baseline holds.
COUNTERS = ("ecc_corrected", "nvlink_errors", "pcie_replays")

LOG_CHECKS = ("xid", "graphics_errors", "sxid")
MACHINE_CHECKS = (
    "nvml",
    "gpu_count",
    "driver_match",
    "vbios",
    "cordon",
    *LOG_CHECKS,
    "dcgm_health",
    "dcgm_diag",
)
# `nvml` and `gpu_responds` are what all others rest on, so they cannot be disabled.
CHECKS = tuple(name for name in (*MACHINE_CHECKS, *RULES) if name != "nvml")


@dataclass(frozen=True)
class Machine:
    """Readings of a machine.

    `error` says in a sentence why NVML does not start, `hung_in` which call outside any GPU did not return,
    `stuck` which process waits for it and could not be ended.
    `module_version` is that of the loaded kernel module, `pci_gpus` the number of NVIDIA's display and 3D
    controllers on the PCI bus; they are empty and 0 when the machine does not tell. `events` is None when
    there is no log of the kernel to read, or when it could not be read for the reason in `log_error`. `dcgm`
    holds findings of DCGM, `cordons` the GPUs and slices that are cordoned. `now` is in seconds since the
    boot.
    """

    gpus: Sequence[Reading] = ()
    error: str = ""
    hung_in: str = ""
    stuck: str = ""
    driver_version: str = ""
    module_version: str = ""
    pci_gpus: int = 0
    events: Sequence[Event] | None = ()
    log_error: str = ""
    dcgm: Sequence[Finding] = ()
    cordons: Sequence[Cordon] = ()
    boot_id: str = ""
    now: float = 0.0


def evaluate(machine: Machine, settings: Settings, baseline: Baseline, idle: bool = False) -> list[Finding]:
    """Check a machine.

    Args:
        baseline: what earlier runs saw, in any boot.
        idle: whether the GPUs are expected to be idle, as after a job.

    Returns:
        a finding for each check of the machine and of each GPU, in a fixed order.
    """
    baseline = baseline.of_boot(machine.boot_id)
    findings = [_nvml(machine)]
    if findings[0].status == OK:
        findings += [_count(machine, settings), _driver_match(machine), _vbios(machine)]
    findings += _cordons(machine)
    findings += _log(machine, settings, baseline)
    findings += machine.dcgm
    harmless = _contained(machine, baseline)
    for reading in machine.gpus:
        is_contained = bool(reading.pci_address) and short_address(reading.pci_address) in harmless
        needs_links = equals.needs_links(reading, machine.gpus)
        context = Context(reading, settings, baseline, machine.now, idle, is_contained, needs_links)
        findings += check_gpu(context)
    return [_with_level(one) for one in findings if one.check not in settings.disabled_checks]


def _with_level(finding: Finding) -> Finding:
    """Return a finding of the machine or of DCGM with its level, which follows from its status."""
    if finding.level or finding.status in (OK, SKIPPED):
        return finding
    return replace(finding, level=MACHINE if finding.status == CRITICAL else ADMINISTRATOR)


def next_baseline(machine: Machine, baseline: Baseline) -> Baseline:
    """Return the baseline that a recorded run leaves."""
    earlier = baseline.of_boot(machine.boot_id)
    harmless = sorted(_contained(machine, earlier))
    hung = [Hang(gpu.stuck, gpu.hung_in, gpu.identity) for gpu in machine.gpus if gpu.stuck]
    if machine.stuck:
        hung.insert(0, Hang(machine.stuck, machine.hung_in))
    current = replace(earlier, hung=hung, contained=harmless)
    return current.record(
        machine.now,
        {
            gpu.uuid: {name: gpu.values[name] for name in COUNTERS if name in gpu.values}
            for gpu in machine.gpus
            if gpu.uuid
        },
        {
            gpu.uuid: bool(throttling(gpu.values["clock_reasons"]))
            for gpu in machine.gpus
            if "clock_reasons" in gpu.values
        },
    )


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of the role and choose those of the command.

    Args:
        settings: the role's variables without ``gpu_health_``, and ``textfile``, the path of the metrics.

    Returns:
        ``problems``, each a sentence; if there are none, ``settings``, which the command reads.
    """
    chosen = {one.name: settings[one.name] for one in fields(Settings) if one.name in settings}
    wrong = problems(chosen, CHECKS)
    return {"problems": wrong} if wrong else {"problems": [], "settings": chosen}


def _nvml(machine: Machine) -> Finding:
    if machine.hung_in:
        return Finding(
            "nvml",
            CRITICAL,
            f"The driver hangs: it did not return from {machine.hung_in}.",
            "drain the machine and reboot it",
            "a hang of the driver has no other way to show",
        )
    if machine.error:
        return Finding("nvml", CRITICAL, machine.error, "repair the driver", f"{NVML}, nvmlInit")
    return Finding("nvml", OK, f"Driver {machine.driver_version} answers.", "", f"{NVML}, nvmlInit")


def _count(machine: Machine, settings: Settings) -> Finding:
    found, expected = len(machine.gpus), settings.expected_gpus or machine.pci_gpus
    origin = "are expected" if settings.expected_gpus else "are on the PCI bus"
    # The bus may show fewer than NVML has, as in a container; more is what must not be.
    bad = found != expected if settings.expected_gpus else found < expected
    return Finding(
        "gpu_count",
        CRITICAL if bad else OK,
        f"NVML tells of {found} GPU(s)" + (f", {expected} {origin}." if expected else "."),
        "drain the machine; look for a GPU that is missing" if bad else "",
        "leptonai/gpud, gpu-counts; Azure/azurehpc-health-checks, check_gpu_count",
        value=found,
        threshold=expected or None,
    )


def _driver_match(machine: Machine) -> Finding:
    source = "NVIDIA/deepops, roles/nhc, check_nv_drv_version"
    library, module = machine.driver_version, machine.module_version
    if not module:
        return Finding(
            "driver_match", SKIPPED, "The kernel does not tell the version of its module.", "", source
        )
    if library == module:
        return Finding("driver_match", OK, f"Library and kernel module are {library}.", "", source)
    words = f"The library is of driver {library}, the loaded kernel module of {module}."
    return Finding(
        "driver_match", WARNING, words, "reboot the machine", source, value=module, threshold=library
    )


def _vbios(machine: Machine) -> Finding:
    source = "Azure/azurehpc-health-checks, azure_gpu_vbios"
    versions: dict[str, set[str]] = {}
    for gpu in machine.gpus:
        if "vbios" in gpu.values:
            versions.setdefault(gpu.name, set()).add(gpu.values["vbios"])
    mixed = [f"{model} has {', '.join(sorted(found))}" for model, found in versions.items() if len(found) > 1]
    if mixed:
        words = f"GPUs of one model have different video BIOSes: {'; '.join(mixed)}."
        return Finding("vbios", WARNING, words, "bring the firmware in line", source)
    if not versions:
        return Finding("vbios", SKIPPED, "No GPU tells its video BIOS.", "", source)
    return Finding("vbios", OK, "GPUs of one model have the same video BIOS.", "", source)


def _cordons(machine: Machine) -> list[Finding]:
    source = "the files of the cordons"
    if not machine.cordons:
        return [Finding("cordon", OK, "No GPU or slice is cordoned.", "", source)]
    return [
        Finding("cordon", WARNING, f"{one}.", f"run '{one.end}' after the repair", source, one.gpu)
        for one in machine.cordons
    ]


def _events(machine: Machine, baseline: Baseline) -> list[Event]:
    """Return the errors in the log that the administrator has not dealt with."""
    return [event for event in machine.events or () if event.time > baseline.acknowledged]


def _contained(machine: Machine, baseline: Baseline) -> frozenset[str]:
    """Return the PCI addresses of GPUs with a contained memory error, acknowledged or not.

    Its counters stay until the GPU is reset, also when the log cannot be read.
    """
    return frozenset(baseline.contained) if machine.events is None else contained(machine.events)


def _log(machine: Machine, settings: Settings, baseline: Baseline) -> list[Finding]:
    """Return a finding for each error and GPU in the log, or one each that says that there is none."""
    if machine.events is None and machine.log_error:
        return [Finding(check, UNKNOWN, machine.log_error, "repair the journal") for check in LOG_CHECKS]
    if machine.events is None:
        words = "The journal holds no line of the kernel for this user; in a container there is none."
        return [Finding(check, SKIPPED, words) for check in LOG_CHECKS]
    uuids = {short_address(gpu.pci_address): gpu.uuid for gpu in machine.gpus if gpu.pci_address}
    groups: dict[tuple[str, int, str, bool], list[Event]] = {}
    events = _events(machine, baseline)
    harmless = _contained(machine, baseline)
    for event in events:
        groups.setdefault((event.kind, event.code, event.address, event.fatal), []).append(event)
    findings = [
        _error(group, grade(group[-1], settings.xid_status, group[-1].address in harmless), uuids)
        for group in groups.values()
    ]
    findings.append(_graphics_errors(events, settings, uuids))
    for check, kind in (("xid", "XID"), ("sxid", "SXid")):
        if not any(finding.check == check for finding in findings):
            findings.append(
                Finding(check, OK, f"The kernel has logged no {kind} in this boot.", "", _LOG_SOURCE)
            )
    return findings


def _graphics_errors(events: Sequence[Event], settings: Settings, uuids: Mapping[str, str]) -> Finding:
    """Check the GPU on which most programs met XID 13: one program may be wrong, many are not."""
    name, limit = "graphics_errors", settings.limit("graphics_error_programs")
    programs: dict[str, set[str]] = {}
    for event in events:
        if event.kind == "XID" and event.code == GRAPHICS_EXCEPTION and event.program:
            programs.setdefault(event.address, set()).add(event.program)
    address = max(programs, key=lambda one: len(programs[one]), default="")
    count = len(programs.get(address, ()))
    if count <= limit:
        return Finding(name, OK, f"Programs that met XID 13 on one GPU: {count}.", "", XID_CATALOGUE)
    return Finding(
        name,
        WARNING,
        f"{count} programs met XID 13 on {address}, more than {limit:g}.",
        "run 'dcgmi diag -r 3' on the GPU when no program uses it",
        XID_CATALOGUE,
        uuids.get(address, ""),
        value=count,
        threshold=limit,
    )


_LOG_SOURCE = "NVIDIA, XID catalogue; kernel's log of this boot"


def _error(events: Sequence[Event], graded: Grade, uuids: Mapping[str, str]) -> Finding:
    last = events[-1]
    words = f"{last.kind} {last.code} ({graded.name}) of {last.address}, {len(events)} time(s)"
    return Finding(
        last.kind.lower(),
        graded.status,
        f"{words}: {last.text or 'the kernel says no more'}",
        graded.action,
        _LOG_SOURCE,
        uuids.get(last.address, ""),
        value=last.code,
        level=graded.level,
    )
