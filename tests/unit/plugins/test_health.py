"""The health engine: readings in, findings out."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import report
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import (
    THRESHOLDS,
    Finding,
    HealthError,
    Settings,
    parse_settings,
    worst,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.kernel_log import parse_message
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import (
    CHECKS,
    evaluate,
    next_baseline,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import RULES, Reading
from health_readings import BOOT, UUID, findings_of, gpu, machine

BEFORE = Baseline(
    boot_id=BOOT,
    time=880.0,
    counters={UUID: {"ecc_corrected": 100, "pcie_replays": 10, "nvlink_errors": 5}},
)


def with_baseline(**values: Any) -> dict[str, Finding]:
    same = {"ecc_corrected": 100, "pcie_replays": 10, "nvlink_errors": 5}
    return findings_of(gpu(**{**same, **values}), baseline=BEFORE)


def test_a_healthy_gpu_is_well_in_every_check() -> None:
    findings = with_baseline()
    assert {one.status for name, one in findings.items() if name in RULES and name != "idle"} == {"ok"}
    assert all(one.action == "" for one in findings.values())
    assert worst(findings.values()) == "ok"


@pytest.mark.parametrize(
    ("check", "status", "values"),
    [
        ("recovery_action", "critical", {"recovery_action": 1}),
        ("recovery_action", "critical", {"recovery_action": 7}),
        ("recovery_action", "warning", {"recovery_action": 3}),
        ("recovery_action", "warning", {"recovery_action": 99}),
        ("persistence", "warning", {"persistence": False}),
        ("ecc_mode", "warning", {"ecc_mode": [True, False]}),
        ("ecc_mode", "warning", {"ecc_mode": [False, False]}),
        ("ecc_uncorrected", "critical", {"ecc_uncorrected": 1}),
        ("ecc_corrected", "warning", {"ecc_corrected": 50_000_001}),
        ("sram", "critical", {"sram": {"uncorrected": 1, "threshold_exceeded": False}}),
        ("sram", "critical", {"sram": {"uncorrected": 0, "threshold_exceeded": True}}),
        ("row_remap_count", "warning", {"remapped_rows": {"uncorrected": 8, "pending": 0, "failure": 0}}),
        ("row_remap_pending", "critical", {"remapped_rows": {"uncorrected": 1, "pending": 1, "failure": 0}}),
        ("row_remap_failed", "critical", {"remapped_rows": {"uncorrected": 1, "pending": 0, "failure": 1}}),
        ("retired_pages", "critical", {"retired_pages": {"single": 0, "double": 1, "pending": True}}),
        ("retired_pages", "warning", {"retired_pages": {"single": 50, "double": 1, "pending": False}}),
        ("retired_pages", "critical", {"retired_pages": {"single": 60, "double": 4, "pending": False}}),
        ("nvlink_state", "warning", {"nvlinks": {"0": True, "1": False}}),
        ("nvlink_state", "ok", {"nvlinks": {"0": False, "1": False}}),
        ("fabric_state", "critical", {"fabric": {"state": 2, "status": 0}}),
        ("fabric_state", "critical", {"fabric": {"state": 3, "status": 5}}),
        ("pcie_width", "critical", {"pcie_width": [8, 16]}),
        ("pcie_generation", "warning", {"pcie_generation": [3, 4]}),
        ("pcie_generation", "skipped", {"pcie_generation": [1, 4], "utilization": 0}),
        ("throttling", "warning", {"clock_reasons": 0x08}),
        ("throttling", "ok", {"clock_reasons": 0x04 | 0x10 | 0x100}),
        ("temperature", "ok", {"temperature": 83}),
        ("temperature", "warning", {"temperature": 84}),
        ("temperature", "critical", {"temperature": 91}),
        ("temperature", "critical", {"temperature": 80, "slowdown_temperature": 80}),
        ("memory_temperature", "ok", {"memory_temperature": 95}),
        ("memory_temperature", "warning", {"memory_temperature": 100}),
        ("memory_temperature", "critical", {"memory_temperature": 94, "max_memory_temperature": 94}),
        ("memory_temperature", "skipped", {"memory_temperature": 0}),
        ("sm_clock", "warning", {"clocks_mhz": {"sm": 210, "memory": 1593}}),
        ("sm_clock", "ok", {"clocks_mhz": {"sm": 705, "memory": 1593}}),
        ("sm_clock", "skipped", {"clocks_mhz": {"sm": 210, "memory": 1593}, "utilization": 90}),
        ("sm_clock", "skipped", {"clocks_mhz": {"sm": 210, "memory": 1593}, "clock_reasons": 0x04}),
        ("power_limit", "warning", {"power_limit_mw": 100000}),
        ("power_limit", "ok", {"power_limit_mw": 200000}),
        ("mig_mode", "warning", {"mig": {"current": False, "pending": True}}),
    ],
)
def test_a_sick_gpu_is_found(check: str, status: str, values: dict[str, Any]) -> None:
    finding = findings_of(gpu(**values))[check]
    assert finding.status == status
    assert finding.gpu == UUID and finding.source
    assert bool(finding.action) == (status not in ("ok", "skipped"))


def test_what_a_gpu_does_not_support_is_skipped_never_failed() -> None:
    bare = Reading(0, UUID, "NVIDIA T4", "0000:07:00.0", {}, {})
    findings = findings_of(bare)
    assert {findings[name].status for name in RULES} == {"skipped"}
    assert findings["gpu_responds"].status == "ok"


def test_what_could_not_be_read_is_unknown() -> None:
    one = gpu(failures={"temperature": "UNKNOWN"})
    del one.values["temperature"]
    assert findings_of(one)["temperature"].status == "unknown"
    one = gpu(failures={"inforom": "CORRUPTED_INFOROM"})
    del one.values["inforom"]
    assert findings_of(one)["inforom"].status == "critical"


@pytest.mark.parametrize("error", ["GPU_IS_LOST", "RESET_REQUIRED"])
def test_a_lost_gpu_is_one_finding_not_twenty(error: str) -> None:
    lost = Reading(1, "", "", "", {}, {"handle": error})
    findings = findings_of(lost)
    assert findings["gpu_responds"].status == "critical"
    assert findings["gpu_responds"].gpu == "GPU 1"
    assert {findings[name].status for name in RULES} == {"skipped"}


def test_a_gpu_that_cannot_be_opened_is_critical() -> None:
    assert findings_of(Reading(1, "", "", "", {}, {"handle": "UNKNOWN"}))["gpu_responds"].status == "critical"


def test_a_hang_is_told_with_the_call() -> None:
    hung = Reading(0, UUID, "A", "0000:07:00.0", {}, {}, hung_in="nvmlDeviceGetTemperature within 30 s")
    finding = findings_of(hung)["gpu_responds"]
    assert finding.status == "critical" and "nvmlDeviceGetTemperature" in finding.detail
    assert findings_of(machine(hung_in="nvmlInit within 30 s"))["nvml"].status == "critical"


def test_a_driver_that_does_not_start_is_critical_and_nothing_else_is_asked() -> None:
    findings = findings_of(machine(error="The driver is not loaded."))
    assert findings["nvml"].status == "critical"
    assert "gpu_count" not in findings


# counters and baselines


@pytest.mark.parametrize(
    ("check", "values", "status"),
    [
        ("ecc_corrected", {"ecc_corrected": 100 + 200}, "ok"),  # in two minutes
        ("ecc_corrected", {"ecc_corrected": 100 + 201}, "warning"),
        ("pcie_replays", {"pcie_replays": 10 + 101}, "warning"),
        ("pcie_replays", {"pcie_replays": 10 + 401}, "critical"),
        ("pcie_replays", {"pcie_replays": 3}, "ok"),  # set back meanwhile
        ("nvlink_errors", {"nvlink_errors": 6}, "warning"),
    ],
)
def test_growth_is_checked_against_the_baseline(check: str, values: dict[str, int], status: str) -> None:
    assert with_baseline(**values)[check].status == status


def test_without_a_baseline_of_this_boot_growth_is_skipped() -> None:
    for baseline in (Baseline(), Baseline(boot_id="another", counters={UUID: {"pcie_replays": 0}})):
        findings = findings_of(gpu(pcie_replays=9999, nvlink_errors=9), baseline=baseline)
        assert {findings[name].status for name in ("pcie_replays", "nvlink_errors")} == {"skipped"}


def test_throttling_is_critical_after_several_recorded_runs() -> None:
    baseline = Baseline()
    seen = []
    for run in range(4):
        hot = machine(gpu(clock_reasons=0x40), now=1000.0 + 300 * run)
        seen.append(findings_of(hot, baseline=baseline)["throttling"].status)
        baseline = next_baseline(hot, baseline)
    assert seen == ["warning", "warning", "critical", "critical"]
    cool = machine(gpu(), now=9000.0)
    baseline = next_baseline(cool, baseline)
    assert findings_of(machine(gpu(clock_reasons=0x40)), baseline=baseline)["throttling"].status == "warning"


def test_runs_in_quick_succession_count_as_one() -> None:
    first = next_baseline(machine(gpu(clock_reasons=0x40), now=1000.0), Baseline())
    assert next_baseline(machine(gpu(clock_reasons=0x40), now=1010.0), first) == first


# expectations


def test_gpus_are_counted() -> None:
    assert findings_of(machine(gpu()), Settings(expected_gpus=2))["gpu_count"].status == "critical"
    assert findings_of(machine(gpu(), pci_gpus=2))["gpu_count"].status == "critical"
    assert findings_of(machine(gpu(), pci_gpus=0))["gpu_count"].status == "ok"
    assert findings_of(machine(gpu()), Settings(expected_gpus=1))["gpu_count"].status == "ok"


def test_versions_of_library_and_module_are_compared() -> None:
    assert findings_of(machine(gpu(), module_version="535.9"))["driver_match"].status == "warning"
    assert findings_of(machine(gpu(), module_version="550.1"))["driver_match"].status == "ok"
    assert findings_of(machine(gpu()))["driver_match"].status == "skipped"


def test_video_bioses_of_one_model_are_compared() -> None:
    assert findings_of(machine(gpu(vbios="1"), gpu(vbios="1")))["vbios"].status == "ok"
    assert findings_of(machine(gpu(vbios="1"), gpu(vbios="2")))["vbios"].status == "warning"
    assert findings_of(machine(gpu()))["vbios"].status == "skipped"


def test_expected_links_are_counted() -> None:
    links = {"0": True, "1": False}
    assert findings_of(gpu(nvlinks=links), Settings(expected_nvlinks=2))["nvlink_state"].status == "critical"
    assert findings_of(gpu(nvlinks=links), Settings(expected_nvlinks=1))["nvlink_state"].status == "ok"


def test_idle_is_checked_when_asked() -> None:
    assert findings_of(gpu(processes=[42]))["idle"].status == "skipped"
    assert "42" in findings_of(gpu(processes=[42]), idle=True)["idle"].detail
    assert findings_of(gpu(), idle=True)["idle"].status == "ok"
    used = {"total_mib": 81920, "used_mib": 300}
    assert findings_of(gpu(memory=used), idle=True)["idle"].status == "critical"
    mig = {"current": True, "pending": True}
    assert findings_of(gpu(memory=used, mig=mig), idle=True)["idle"].status == "ok"


def test_a_disabled_check_is_not_made() -> None:
    assert "persistence" not in findings_of(gpu(), Settings(disabled_checks=("persistence",)))


# errors in the kernel's log


def test_errors_of_the_log_are_told_once_for_each_code_and_gpu() -> None:
    line = "NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus."
    other = "NVRM: Xid (PCI:0000:0a:00): 13, Graphics Exception"
    events = [event for at, text in ((1, line), (2, other), (3, line)) if (event := parse_message(text, at))]
    every = evaluate(machine(gpu(), events=events), Settings(), Baseline())
    findings = [one for one in every if one.check == "xid"]
    assert [(one.status, one.gpu, one.value) for one in findings] == [("critical", UUID, 79), ("ok", "", 13)]
    assert "2 time(s)" in findings[0].detail
    acknowledged = Baseline(boot_id=BOOT, acknowledged=3)
    assert findings_of(machine(gpu(), events=events), baseline=acknowledged)["xid"].status == "ok"


def test_a_log_that_cannot_be_read_is_unknown_and_one_that_is_not_there_skipped() -> None:
    assert findings_of(machine(gpu(), events=None, log_error="No journalctl."))["xid"].status == "unknown"
    assert findings_of(machine(gpu(), events=None))["xid"].status == "skipped"


# settings


def test_settings_are_read() -> None:
    settings = parse_settings(
        {
            "thresholds": {"temperature_warning": 70},
            "xid_status": {13: "critical"},
            "drain_command": ["a", "b"],
        },
        CHECKS,
    )
    assert settings.limit("temperature_warning") == 70 and settings.limit("temperature_critical") == 90
    assert settings.xid_status == {"13": "critical"} and settings.drain_command == ("a", "b")
    assert findings_of(gpu(temperature=71), settings)["temperature"].status == "warning"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"threshold": {}}, "no setting 'threshold'"),
        ({"thresholds": {"heat": 1}}, "no threshold 'heat'"),
        ({"thresholds": {"temperature_warning": "hot"}}, "'hot' of 'temperature_warning'"),
        ({"thresholds": {"temperature_warning": 95}}, "is above 'temperature_critical'"),
        ({"disabled_checks": ["nvml"]}, "no check 'nvml'"),
        ({"xid_status": {"13": "bad"}}, "status 'bad' of XID '13'"),
        ({"call_timeout": 0}, "'call_timeout' is 0"),
        ({"expected_gpus": -1}, "'-1' of 'expected_gpus'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(data: dict[str, Any], words: str) -> None:
    with pytest.raises(HealthError, match=words):
        parse_settings(data, CHECKS)


def test_every_threshold_states_its_source() -> None:
    assert all(one.source and one.meaning for one in THRESHOLDS.values())


# reports


def test_the_worst_status_counts() -> None:
    def of(*statuses: str) -> str:
        return worst(Finding("x", status, "") for status in statuses)

    assert of("ok", "skipped") == "ok"
    assert of("ok", "warning", "unknown") == "unknown"
    assert of("critical", "unknown") == "critical"
    assert of("skipped") == of() == "unknown"


def test_reports_tell_what_is_wrong() -> None:
    findings = evaluate(machine(gpu(temperature=95)), Settings(), Baseline())
    lines = report.text(findings).splitlines()
    assert lines[0] == f"CRITICAL: {UUID} temperature: Temperature: 95 °C; the GPU slows down at 92."
    assert len(lines) == 2 and lines[1].endswith("-> administrator: check the cooling")
    metrics = report.prometheus(findings, 1.0).splitlines()
    assert f'gpufarm_health_check{{check="temperature",gpu="{UUID}"}} 2' in metrics
    assert "gpufarm_health_status 2" in metrics


def test_metrics_hold_each_series_once_and_escape_labels() -> None:
    findings = [
        Finding("xid", "ok", "", gpu='a"b\\c'),
        Finding("xid", "critical", "", gpu='a"b\\c'),
        Finding("idle", "skipped", ""),
    ]
    lines = report.prometheus(findings, 1.0).splitlines()
    series = [line for line in lines if line.startswith("gpufarm_health_check{")]
    assert series == ['gpufarm_health_check{check="xid",gpu="a\\"b\\\\c"} 2']
