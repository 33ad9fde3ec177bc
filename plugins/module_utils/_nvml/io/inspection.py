# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver, GPUs and their readings in one session."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ..gpu import REPAIR, Gpu, GpuError, Survey, Unreadable, select
from . import readings
from .guarded import Calls
from .session import Driver, session

LOST = "GPU_IS_LOST"


@dataclass(frozen=True)
class Inspection:
    """The driver, all GPUs, those that were selected, and values and failures of their readings by UUID."""

    driver: Driver
    survey: Survey
    gpus: tuple[Gpu, ...]
    readings: dict[str, tuple[dict[str, Any], dict[str, str]]]


def inspect(selectors: list[str], calls: Calls) -> Inspection:
    """Return what NVML tells; a GPU that fails between the survey and its readings is unreadable, too.

    Args:
        selectors: as for `select`; if empty, all GPUs that can be read.

    Raises:
        GpuError: when NVML does not answer, or a selected GPU cannot be read.
    """
    with session(calls) as nvml:
        driver = nvml.driver()
        survey = nvml.survey()
        answers = {}
        for gpu in _selected(survey, selectors):
            try:
                answers[gpu.uuid] = _read(gpu, calls)
            except readings.Failed as error:
                survey = _without(survey, gpu, f"NVML was asked for its readings and answered: {error}.")
    if not survey.gpus and survey.unreadable:
        raise GpuError(f"{' '.join(map(str, survey.unreadable))}{REPAIR}")
    return Inspection(driver, survey, _selected(survey, selectors), answers)


def _selected(survey: Survey, selectors: list[str]) -> tuple[Gpu, ...]:
    return select(survey.gpus, selectors, survey.unreadable) if selectors else survey.gpus


def _read(gpu: Gpu, calls: Calls) -> tuple[dict[str, Any], dict[str, str]]:
    reader = readings.Reader(partial(_report, calls, gpu.index))
    values, failures = reader.gpu(reader.open(gpu.uuid, calls.hung))
    if LOST in failures.values():
        raise readings.Failed(LOST)
    return values, failures


def _report(calls: Calls, index: int, call: str) -> None:
    calls.report(call, index)


def _without(survey: Survey, gpu: Gpu, reason: str) -> Survey:
    failed = Unreadable(gpu.index, gpu.uuid, gpu.pci_address, reason)
    unreadable = sorted((*survey.unreadable, failed), key=lambda one: one.index)
    return replace(
        survey, gpus=tuple(one for one in survey.gpus if one is not gpu), unreadable=tuple(unreadable)
    )
