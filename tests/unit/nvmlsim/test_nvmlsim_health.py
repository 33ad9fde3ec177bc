# SPDX-License-Identifier: GPL-3.0-or-later
"""The health of simulated GPUs, as a caller of NVML meets it; what is supported where is as nvml.h says."""

from __future__ import annotations

import ctypes
import itertools
import re
from collections.abc import Callable
from typing import Any

import pynvml as n
import pytest
import sim_nvml
from sim_host import Host

from lab.nvmlsim.build import SOURCE

VOLATILE, AGGREGATE = n.NVML_VOLATILE_ECC, n.NVML_AGGREGATE_ECC
CORRECTED, UNCORRECTED = n.NVML_MEMORY_ERROR_TYPE_CORRECTED, n.NVML_MEMORY_ERROR_TYPE_UNCORRECTED


def fields(device: Any, *ids: int) -> list[int | None]:
    """Return the values of some fields, None where one is not supported."""
    found = n.nvmlDeviceGetFieldValues(device, list(ids))
    return [None if value.nvmlReturn else value.value.ullVal for value in found]


def events_of(device: Any) -> Any:
    events = n.nvmlEventSetCreate()
    n.nvmlDeviceRegisterEvents(device, n.nvmlEventTypeXidCriticalError, events)
    return events


def test_a_gpu_from_the_factory_is_well(make_host: Callable[..., Host]) -> None:
    make_host("h100-80gb", "t4")
    for device in (sim_nvml.gpu(0), sim_nvml.gpu(1)):
        n.nvmlDeviceValidateInforom(device)
        assert n.nvmlDeviceGetEccMode(device) == [1, 1]
        assert n.nvmlDeviceGetTotalEccErrors(device, UNCORRECTED, AGGREGATE) == 0
        assert n.nvmlDeviceGetCurrPcieLinkWidth(device) == n.nvmlDeviceGetMaxPcieLinkWidth(device)
        assert n.nvmlDeviceGetCurrentClocksEventReasons(device) == n.nvmlClocksEventReasonGpuIdle
        slowdown = n.nvmlDeviceGetTemperatureThreshold(device, n.NVML_TEMPERATURE_THRESHOLD_SLOWDOWN)
        assert n.nvmlDeviceGetTemperature(device, n.NVML_TEMPERATURE_GPU) < slowdown
        assert n.nvmlDeviceGetPowerUsage(device) < n.nvmlDeviceGetEnforcedPowerLimit(device)
        assert fields(device, n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) == [0]


# ---- sensors and links ----


def test_sensors_say_what_was_set(make_host: Callable[..., Host]) -> None:
    host = make_host("h100-80gb")
    host.set(0, "temperature=93", "power=690000", "power_limit=500000", "clock_sm=345")
    host.set(0, "throttle=hw_slowdown,hw_thermal_slowdown", "memory_temperature=101", "display=1")
    device = sim_nvml.gpu()
    assert n.nvmlDeviceGetTemperature(device, n.NVML_TEMPERATURE_GPU) == 93
    assert n.nvmlDeviceGetTemperatureV(device, n.NVML_TEMPERATURE_GPU) == 93
    assert n.nvmlDeviceGetMarginTemperature(device) == -6
    assert n.nvmlDeviceGetPowerUsage(device) == 690000
    assert n.nvmlDeviceGetEnforcedPowerLimit(device) == 500000
    assert n.nvmlDeviceGetPowerManagementDefaultLimit(device) == 700000
    assert n.nvmlDeviceGetClockInfo(device, n.NVML_CLOCK_SM) == 345
    assert n.nvmlDeviceGetMaxClockInfo(device, n.NVML_CLOCK_SM) == 1980
    assert n.nvmlDeviceGetCurrentClocksThrottleReasons(device) == 0x48
    assert n.nvmlDeviceGetDisplayActive(device) == 1
    assert fields(device, n.NVML_FI_DEV_MEMORY_TEMP) == [101]


def test_the_power_limit_stays_within_its_range(make_host: Callable[..., Host]) -> None:
    make_host("t4")
    device = sim_nvml.gpu()
    assert n.nvmlDeviceGetPowerManagementLimitConstraints(device) == [60000, 70000]
    n.nvmlDeviceSetPowerManagementLimit(device, 65000)
    assert n.nvmlDeviceGetPowerManagementLimit(device) == 65000
    assert sim_nvml.code(n.nvmlDeviceSetPowerManagementLimit, device, 70001) == n.NVML_ERROR_INVALID_ARGUMENT


def test_a_margin_is_known_from_hopper_on(make_host: Callable[..., Host]) -> None:
    make_host("a100-80gb")
    assert sim_nvml.code(n.nvmlDeviceGetMarginTemperature, sim_nvml.gpu()) == n.NVML_ERROR_NOT_SUPPORTED


def test_links_go_down_and_err(make_host: Callable[..., Host]) -> None:
    host = make_host("v100-32gb", "a100-80gb", "h200-141gb", "b200-180gb", "t4")
    host.set(1, "nvlink_down=0,11", "nvlink_crc=7", "pcie_width=8", "pcie_generation=1", "pcie_replay=60")
    assert [fields(sim_nvml.gpu(i), n.NVML_FI_DEV_NVLINK_LINK_COUNT)[0] for i in range(5)] == [
        6,
        12,
        18,
        18,
        None,
    ]
    device = sim_nvml.gpu(1)
    assert [n.nvmlDeviceGetNvLinkState(device, link) for link in range(12)] == [0, *[1] * 10, 0]
    assert sim_nvml.code(n.nvmlDeviceGetNvLinkState, device, 12) == n.NVML_ERROR_INVALID_ARGUMENT
    assert sim_nvml.code(n.nvmlDeviceGetNvLinkState, sim_nvml.gpu(4), 0) == n.NVML_ERROR_NOT_SUPPORTED
    assert n.nvmlDeviceGetNvLinkErrorCounter(device, 0, n.NVML_NVLINK_ERROR_DL_CRC_FLIT) == 7
    assert fields(
        device, n.NVML_FI_DEV_NVLINK_CRC_FLIT_ERROR_COUNT_TOTAL, n.NVML_FI_DEV_PCIE_REPLAY_COUNTER
    ) == [7, 60]
    assert n.nvmlDeviceGetCurrPcieLinkWidth(device) == 8
    assert n.nvmlDeviceGetCurrPcieLinkGeneration(device) == 1
    assert n.nvmlDeviceGetMaxPcieLinkGeneration(device) == 4
    assert n.nvmlDeviceGetPcieReplayCounter(device) == 60


def test_the_fabric_is_hoppers(make_host: Callable[..., Host]) -> None:
    host = make_host("h200-141gb", "h100-94gb", "a100-80gb")

    def info(index: int) -> tuple[int, int, int]:
        found = n.c_nvmlGpuFabricInfo_v2_t()
        get = n._nvmlGetFunctionPointer("nvmlDeviceGetGpuFabricInfoV")
        n._nvmlCheckReturn(get(sim_nvml.gpu(index), ctypes.byref(found)))
        return found.state, found.status, found.healthMask

    assert info(0) == (n.NVML_GPU_FABRIC_STATE_COMPLETED, n.NVML_SUCCESS, 0xAA)
    assert info(1) == (n.NVML_GPU_FABRIC_STATE_NOT_SUPPORTED, n.NVML_SUCCESS, 0)
    assert sim_nvml.code(info, 2) == n.NVML_ERROR_NOT_SUPPORTED
    host.set(0, "fabric=in_progress")
    assert info(0)[0] == n.NVML_GPU_FABRIC_STATE_IN_PROGRESS
    host.set(0, "fabric=failed")
    assert info(0)[:2] == (n.NVML_GPU_FABRIC_STATE_COMPLETED, n.NVML_ERROR_UNKNOWN)


# ---- memory ----


def test_errors_are_volatile_until_a_reset_and_aggregate_after_it(make_host: Callable[..., Host]) -> None:
    host = make_host("a100-80gb")
    host.set(0, "ecc_corrected=5", "ecc_uncorrected=3", "sram_uncorrected=2", "sram_threshold=1")
    device = sim_nvml.gpu()

    def totals() -> list[int]:
        kinds = itertools.product((CORRECTED, UNCORRECTED), (VOLATILE, AGGREGATE))
        return [n.nvmlDeviceGetTotalEccErrors(device, *kind) for kind in kinds]

    assert totals() == [5, 5, 5, 5]
    at = [n.NVML_MEMORY_LOCATION_DRAM, n.NVML_MEMORY_LOCATION_SRAM]
    assert [n.nvmlDeviceGetMemoryErrorCounter(device, UNCORRECTED, VOLATILE, place) for place in at] == [3, 2]
    assert fields(device, n.NVML_FI_DEV_ECC_DBE_VOL_TOTAL, n.NVML_FI_DEV_ECC_DBE_VOL_DEV) == [5, 3]
    status = n.c_nvmlEccSramErrorStatus_v1_t()
    n.nvmlDeviceGetSramEccErrorStatus(device, ctypes.byref(status))
    assert (status.volatileUncParity, status.bThresholdExceeded) == (2, 1)
    host.control("reset", "0")
    assert totals() == [0, 5, 0, 5]
    n.nvmlDeviceClearEccErrorCounts(device, AGGREGATE)
    assert totals() == [0, 0, 0, 0]


def test_without_ecc_nothing_is_counted(make_host: Callable[..., Host]) -> None:
    host = make_host("a30")
    device = sim_nvml.gpu()
    n.nvmlDeviceSetEccMode(device, 0)
    assert n.nvmlDeviceGetEccMode(device) == [1, 0]
    host.control("reset", "0")
    assert n.nvmlDeviceGetEccMode(device) == [0, 0]
    code = sim_nvml.code(n.nvmlDeviceGetTotalEccErrors, device, UNCORRECTED, VOLATILE)
    assert code == n.NVML_ERROR_NOT_SUPPORTED
    host.set(0, "ecc=on")
    assert n.nvmlDeviceGetEccMode(device) == [1, 1]


def test_mig_mode_hides_the_volatile_errors_of_the_gpu_and_its_rows(a100: Host) -> None:
    a100.set(0, "ecc_uncorrected=3", "sram_uncorrected=2", "remapped_uncorrected=1")
    device = sim_nvml.gpu()
    assert n.nvmlDeviceGetRemappedRows(device)[1] == 1
    instance = sim_nvml.create_at(device, 9, 0, 4)
    n.nvmlGpuInstanceCreateComputeInstance(instance, n.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    mig = sim_nvml.mig_devices(device)[0]
    dram, sram = n.NVML_MEMORY_LOCATION_DRAM, n.NVML_MEMORY_LOCATION_SRAM
    asked = [
        (device, VOLATILE, dram),
        (device, AGGREGATE, dram),
        (mig, VOLATILE, dram),
        (mig, VOLATILE, sram),
    ]
    codes = [
        sim_nvml.code(n.nvmlDeviceGetMemoryErrorCounter, who, UNCORRECTED, counter, where)
        for who, counter, where in asked
    ]
    no = n.NVML_ERROR_NOT_SUPPORTED
    assert codes == [no, n.NVML_SUCCESS, no, n.NVML_SUCCESS]
    assert n.nvmlDeviceGetTotalEccErrors(device, UNCORRECTED, VOLATILE) == 5
    assert sim_nvml.code(n.nvmlDeviceGetRemappedRows, device) == no
    assert sim_nvml.code(n.nvmlDeviceGetUtilizationRates, mig) == no


def test_rows_are_remapped_from_ampere_on_and_pages_retired_before(make_host: Callable[..., Host]) -> None:
    host = make_host("a30", "t4")
    new, old = sim_nvml.gpu(0), sim_nvml.gpu(1)
    host.set(0, "remapped_corrected=1", "remapped_uncorrected=2", "remap_pending=1", "remap_failure=1")
    host.set(1, "retired_single=2", "retired_double=1", "retired_pending=1")
    assert n.nvmlDeviceGetRemappedRows(new) == (1, 2, 1, 1)
    assert n.nvmlDeviceGetRowRemapperHistogram(new).none == 1
    assert (
        len(n.nvmlDeviceGetRetiredPages(old, n.NVML_PAGE_RETIREMENT_CAUSE_MULTIPLE_SINGLE_BIT_ECC_ERRORS))
        == 2
    )
    assert len(n.nvmlDeviceGetRetiredPages_v2(old, n.NVML_PAGE_RETIREMENT_CAUSE_DOUBLE_BIT_ECC_ERROR)) == 1
    assert n.nvmlDeviceGetRetiredPagesPendingStatus(old) == 1
    no = n.NVML_ERROR_NOT_SUPPORTED
    assert sim_nvml.code(n.nvmlDeviceGetRemappedRows, old) == no
    assert sim_nvml.code(n.nvmlDeviceGetRetiredPages, new, 0) == no
    ids = (n.NVML_FI_DEV_REMAPPED_UNC, n.NVML_FI_DEV_RETIRED_DBE)
    assert [fields(new, *ids), fields(old, *ids)] == [[2, None], [None, 1]]
    host.control("boot")
    assert n.nvmlDeviceGetRemappedRows(new) == (1, 2, 0, 1)
    assert n.nvmlDeviceGetRetiredPagesPendingStatus(old) == 0


def test_a_corrupted_inforom_and_an_action_to_recover(make_host: Callable[..., Host]) -> None:
    host = make_host("a30")
    host.set(0, "inforom_corrupted=1", "recovery_action=2")
    assert sim_nvml.code(n.nvmlDeviceValidateInforom, sim_nvml.gpu()) == n.NVML_ERROR_CORRUPTED_INFOROM
    assert fields(sim_nvml.gpu(), n.NVML_FI_DEV_GET_GPU_RECOVERY_ACTION) == [2]


@pytest.mark.parametrize(
    "pair",
    [
        *("throttle=hot", "nvlink_down=12", "nvlink_down=-1", "ecc=yes", "lost=2"),
        *("fabric=fine", "temperature=-5", "temperature=1e3", "ecc_corrected_before=1", "retired_single=65"),
    ],
)
def test_what_cannot_be_is_refused(make_host: Callable[..., Host], pair: str) -> None:
    host = make_host("a100-80gb")
    before = (host.directory / "state").read_text()
    with pytest.raises(AssertionError, match=f"{pair} cannot be set on 0"):
        host.set(0, pair)
    assert (host.directory / "state").read_text() == before


def test_the_help_tells_every_key(make_host: Callable[..., Host]) -> None:
    told = make_host().simgpu("set", "--help").stdout
    source = (SOURCE / "fields.c").read_text()
    keys = re.findall(r"FIELD\((\w+)\), (?:NUMBER|WORD|WORDS|LINKS),", source)
    assert len(keys) > 30
    assert [key for key in keys if not re.search(rf"\b{key}\b", told)] == []


def test_the_status_tells_what_was_disturbed(make_host: Callable[..., Host]) -> None:
    host = make_host("a30:2")
    host.set(1, "temperature=95", "throttle=hw_slowdown")
    lines = host.simgpu("status").stdout.splitlines()
    assert lines[3] == "  temperature=95 throttle=8"
    assert len(lines) == 4


# ---- Xids ----


def test_an_xid_is_an_event_and_a_line_in_the_kernel_log(make_host: Callable[..., Host]) -> None:
    host = make_host()
    run = host.directory / "run"
    run.mkdir()
    host.simgpu("init", "--run", run, "a30:2")
    host.simgpu("xid", 0, 13)
    events = events_of(sim_nvml.gpu(0))
    n.nvmlDeviceRegisterEvents(sim_nvml.gpu(1), n.nvmlEventTypeXidCriticalError, events)
    assert sim_nvml.code(n.nvmlEventSetWait_v2, events, 1) == n.NVML_ERROR_TIMEOUT
    host.simgpu("xid", 1, 79)
    host.simgpu("xid", 0, 48, "--text", "twice")
    found = [n.nvmlEventSetWait_v2(events, 1000) for _ in range(2)]
    assert [(event.eventType, event.eventData) for event in found] == [(8, 79), (8, 48)]
    assert n.nvmlDeviceGetIndex(found[0].device) == 1
    assert found[0].gpuInstanceId == 0xFFFFFFFF
    assert sim_nvml.code(n.nvmlEventSetWait_v2, events, 1) == n.NVML_ERROR_TIMEOUT
    n.nvmlEventSetFree(events)
    assert sim_nvml.code(n.nvmlEventSetWait_v2, events, 1) == n.NVML_ERROR_INVALID_ARGUMENT
    lines = [line.partition(",-;")[2] for line in (run / "kernel.log").read_text().splitlines()]
    assert lines[1:] == [
        "NVRM: Xid (PCI:0000:0f:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.",
        "NVRM: Xid (PCI:0000:07:00): 48, pid='<unknown>', name=<unknown>, twice",
    ]


def test_an_xid_can_be_a_slices(a100: Host) -> None:
    instance = sim_nvml.create_at(sim_nvml.gpu(), 9, 4, 4)
    n.nvmlGpuInstanceCreateComputeInstance(instance, n.NVML_COMPUTE_INSTANCE_PROFILE_3_SLICE)
    events = events_of(sim_nvml.gpu())
    a100.control("xid", sim_nvml.mig_uuids(sim_nvml.gpu())[0], "31")
    event = n.nvmlEventSetWait_v2(events, 1000)
    assert (event.eventData, event.gpuInstanceId, event.computeInstanceId) == (31, 2, 0)


def test_only_the_events_of_registered_gpus_arrive(make_host: Callable[..., Host]) -> None:
    host = make_host("a30:2")
    events = events_of(sim_nvml.gpu(1))
    for number in range(1, 20):  # more than the host remembers
        host.control("xid", "0", str(number))
    host.control("xid", "1", "48")
    assert n.nvmlEventSetWait_v2(events, 1000).eventData == 48
    unsupported = n.nvmlEventTypeClock
    code = sim_nvml.code(n.nvmlDeviceRegisterEvents, sim_nvml.gpu(0), unsupported, events)
    assert code == n.NVML_ERROR_NOT_SUPPORTED
