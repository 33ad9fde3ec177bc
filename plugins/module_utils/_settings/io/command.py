# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-settings: set what a file remembers, as settings do not outlive a reboot."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from ..._mig.io.lock import locked
from ..._nvml.gpu import Gpu, GpuError, Survey, select
from ..._nvml.io import session
from ..._nvml.io.boot import ask_at_boot
from ..._nvml.io.guarded import Calls, Guarded
from ..plan import Board, Entry, differences, plan
from ..plan import problems as refusals
from . import board
from .apply import apply, partly
from .stored import load

PATIENCE = 120.0  # seconds, for a driver that is still loading


def restore(entries: Mapping[str, Entry]) -> list[str]:
    """Give GPUs their settings.

    Returns:
        a sentence for each setting that a GPU does not have; all others are as asked for.

    Raises:
        GpuError: when the driver does not answer, or another program changes the GPUs.
    """
    problems: list[str] = []
    guarded = Guarded()
    with locked():
        survey = ask_at_boot(guarded, session.survey, PATIENCE)
        for uuid, entry in entries.items():
            try:
                gpu = _gpu(survey, uuid)
                problems += guarded.change(partial(_restore, gpu, entry), partly(gpu))
            except GpuError as error:
                problems.append(str(error))
    return problems


def _restore(gpu: Gpu, entry: Entry, calls: Calls) -> list[str]:
    """Give one GPU those of its settings that it offers; return a sentence for each that it does not have."""
    found = _read(gpu, calls)
    possible = {name: value for name, value in entry.wanted.items() if not refusals(found, {name: value})}
    refused = refusals(found, entry.wanted)
    return [*refused, *apply(plan(found, possible, Entry(entry.wanted)), gpu, calls)[1]]


def _read(gpu: Gpu, calls: Calls) -> Board:
    with session.session(calls):
        return board.read(gpu, calls)


def check(entries: Mapping[str, Entry]) -> list[str]:
    """Return which settings of GPUs are not as asked for, a sentence for each.

    Raises:
        GpuError: when the driver does not answer, or another program changes the GPUs.
    """
    if not entries:
        return []
    guarded = Guarded()
    with locked():
        survey = guarded.ask(session.survey)
        return [
            problem
            for uuid, entry in entries.items()
            for problem in differences(guarded.ask(partial(_read, _gpu(survey, uuid))), entry.wanted)
        ]


def _gpu(survey: Survey, uuid: str) -> Gpu:
    [gpu] = select(survey.gpus, [uuid], survey.unreadable)
    return gpu


def main() -> int:
    """Set what the file on the command line remembers, or with --check compare with it.

    Returns:
        0 if all GPUs have their settings, otherwise 1.
    """
    work = check if sys.argv[1] == "--check" else restore
    try:
        problems = work(load(Path(sys.argv[-1])))
    except GpuError as error:
        problems = [str(error)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))
