# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Carry out plans for the settings of GPUs, each for itself."""

from __future__ import annotations

from collections.abc import Iterable

from ..._nvml.gpu import Gpu, GpuError, Unreadable
from ..._nvml.io.guarded import Calls
from ..._nvml.io.session import session
from ..plan import Board, Plan, differences
from . import board


def boards(gpus: Iterable[Gpu], calls: Calls) -> tuple[list[Board], tuple[Unreadable, ...]]:
    """Return the settings of GPUs, and the GPUs that do not tell them."""
    found, failed = [], []
    for gpu in gpus:
        try:
            found.append(board.read(gpu, calls))
        except board.Failure as error:
            failed.append(error.unreadable)
    return found, tuple(failed)


def partly(gpu: Gpu) -> str:
    """Return in a sentence what a change leaves when a call of it does not return."""
    return f"The settings of {gpu} may be changed in part."


def apply(plan: Plan, gpu: Gpu, calls: Calls) -> tuple[Board, list[str]]:
    """Set what a plan says, in a session of its own, and read the GPU again.

    Returns:
        the GPU as it is then, and a sentence for each setting that it does not have.

    Raises:
        GpuError: when NVML does not start.
    """
    problems = []
    with session(calls):
        for step in plan.steps:
            try:
                board.change(gpu, step.name, step.after, calls)
            except GpuError as error:
                problems.append(str(error))
        try:
            now = board.read(gpu, calls)
        except GpuError as error:
            return plan.board, [*problems, str(error)]
    if not problems:
        problems = differences(now, {step.name: step.after for step in plan.steps})
    return now, problems
