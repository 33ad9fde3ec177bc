"""Levels of findings: who has to act, and whether a GPU or the machine must not be used before."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import (
    CRITICAL,
    LEVELS,
    Finding,
    Settings,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.kernel_log import Event, parse_message
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import (
    evaluate,
    next_baseline,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import HANDLE, RULES
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import identified
from health_readings import UUID, findings_of, gpu, machine

AFTER_ECC = {
    "ecc_uncorrected": 1,
    "remapped_rows": {"corrected": 0, "uncorrected": 1, "pending": True, "failure": False},
    "recovery_action": 4,
}
OTHER = "0000:08:00"


def xids(*codes: int, address: str = "0000:07:00") -> list[Event]:
    found = [parse_message(f"NVRM: Xid (PCI:{address}): {code}, x", n) for n, code in enumerate(codes, 1)]
    return [event for event in found if event is not None]


def of_gpu(codes: tuple[int, ...], **values: Any) -> list[Finding]:
    findings = evaluate(machine(gpu(**values), events=xids(*codes)), Settings(), Baseline())
    return [one for one in findings if one.gpu == UUID]


@pytest.mark.parametrize(
    ("values", "check", "level", "gpu_forbidden", "machine_forbidden"),
    [
        ({"temperature": 91}, "temperature", "administrator", False, False),
        ({"persistence": False}, "persistence", "administrator", False, False),
        ({"ecc_uncorrected": 1}, "ecc_uncorrected", "reset", True, False),
        ({"recovery_action": 2}, "recovery_action", "machine", True, True),
        ({"recovery_action": 5}, "recovery_action", "administrator", False, False),
        ({"sram": {"uncorrected": 0, "threshold_exceeded": True}}, "sram", "vendor", True, False),
        ({"mig": {"current": False, "pending": True}}, "mig_mode", "reset", False, False),
        ({"hung_in": "nvmlX"}, "gpu_responds", "machine", True, True),
        ({"failures": {"inforom": "RESET_REQUIRED"}}, "gpu_responds", "reset", True, False),
        ({"failures": {"inforom": "GPU_IS_LOST"}}, "gpu_responds", "machine", True, True),
        ({}, "temperature", "", False, False),
    ],
)
def test_findings_of_a_gpu(
    values: dict[str, Any], check: str, level: str, gpu_forbidden: bool, machine_forbidden: bool
) -> None:
    found = findings_of(gpu(**values))[check]
    assert (found.level, found.forbids_gpu, found.forbids_machine) == (
        level,
        gpu_forbidden,
        machine_forbidden,
    )


def test_each_rule_has_a_level() -> None:
    assert {rule.level for rule in RULES.values()} <= set(LEVELS)


def test_what_concerns_the_machine_does_not_forbid_one_gpu() -> None:
    found = findings_of(machine(gpu(), pci_gpus=2))["gpu_count"]
    assert (found.level, found.forbids_gpu, found.forbids_machine) == ("machine", False, True)


@pytest.mark.parametrize(
    ("code", "level", "gpu_forbidden"),
    [
        (13, "program", False),
        (63, "information", False),
        (48, "reset", True),
        (95, "reset", True),
        (79, "machine", True),
        (54, "vendor", True),
        (163, "administrator", False),
    ],
)
def test_errors_of_the_driver(code: int, level: str, gpu_forbidden: bool) -> None:
    found = next(one for one in of_gpu((code,)) if one.check == "xid")
    assert (found.level, found.forbids_gpu) == (level, gpu_forbidden)


@pytest.mark.parametrize("codes", [(94,), (48, 63, 94), (95, 94), (13, 94, 31)])
def test_after_a_contained_error_the_other_programs_go_on(codes: tuple[int, ...]) -> None:
    findings = of_gpu(codes, **AFTER_ECC)
    bad = {f"{one.check} {one.value}" for one in findings if one.status == CRITICAL}
    # An uncontained error before it stays what it was.
    assert bad == ({"xid 95"} if 95 in codes else set())
    after = {one.check: one for one in findings}
    for check in ("ecc_uncorrected", "row_remap_pending", "recovery_action"):
        assert (after[check].status, after[check].level) == ("warning", "reset")
    assert after["row_remap_pending"].action == "reset the GPU when no program uses it"


@pytest.mark.parametrize("codes", [(), (48, 63), (94, 48), (94, 95), (94, 79), (94, 64), (94, 140)])
def test_without_a_contained_error_or_after_a_worse_one_the_gpu_must_not_be_used(
    codes: tuple[int, ...],
) -> None:
    after = {one.check: one for one in of_gpu(codes, **AFTER_ECC)}
    for check in ("ecc_uncorrected", "row_remap_pending", "recovery_action"):
        assert after[check].forbids_gpu


def test_the_contained_error_of_another_gpu_does_not_count() -> None:
    events = xids(94, address=OTHER)
    broken = gpu(**AFTER_ECC)
    assert findings_of(machine(broken, events=events))["ecc_uncorrected"].forbids_gpu


def test_a_row_that_cannot_be_remapped_is_for_the_vendor_all_the_same() -> None:
    rows = {"corrected": 0, "uncorrected": 1, "pending": False, "failure": True}
    found = {one.check: one for one in of_gpu((94,), remapped_rows=rows)}["row_remap_failed"]
    assert found.forbids_gpu and found.level == "vendor"


def test_a_contained_error_that_was_acknowledged_is_one_still() -> None:
    """The errors of another GPU were dealt with; the counters of this one stay until a reset."""
    findings = evaluate(machine(gpu(**AFTER_ECC), events=xids(94)), Settings(), Baseline(acknowledged=99))
    assert not any(one.forbids_gpu for one in findings)


def test_a_contained_error_is_remembered_where_the_log_cannot_be_read() -> None:
    seen = machine(gpu(**AFTER_ECC), events=xids(94))
    after = next_baseline(seen, Baseline())
    blind = machine(gpu(**AFTER_ECC), events=None, log_error="The kernel's log cannot be read.")
    assert not any(one.forbids_gpu for one in evaluate(blind, Settings(), after))
    assert next_baseline(blind, after).contained == ["0000:07:00"]
    assert any(one.forbids_gpu for one in evaluate(blind, Settings(), Baseline()))


def test_an_error_that_a_site_calls_critical_takes_the_gpu_out_of_service() -> None:
    calm = evaluate(machine(gpu(), events=xids(31)), Settings(), Baseline())
    assert not any(one.forbids_gpu for one in calm)
    strict = evaluate(machine(gpu(), events=xids(31)), Settings(xid_status={"31": CRITICAL}), Baseline())
    [found] = [one for one in strict if one.check == "xid"]
    assert found.forbids_gpu and found.level == "reset" and not found.forbids_machine


def test_a_gpu_that_fell_off_the_bus_has_the_name_that_the_kernel_knows() -> None:
    lost = replace(gpu(), uuid="", pci_address="", values={}, failures={HANDLE: "GPU_IS_LOST"})
    other = replace(gpu(), index=1, uuid="GPU-2", pci_address="0000:08:00.0")
    listed = {"0000:07:00.0": UUID, "0000:08:00.0": "GPU-2"}
    first, second = identified((lost, other), (), listed)
    assert (first.uuid, first.pci_address, second) == (UUID, "0000:07:00.0", other)
    assert identified((lost, other), (), {**listed, "0000:09:00.0": "GPU-3"})[0] == lost
    findings = evaluate(machine(first, events=xids(79)), Settings(), Baseline())
    assert {one.gpu for one in findings if one.forbids_gpu} == {UUID}
