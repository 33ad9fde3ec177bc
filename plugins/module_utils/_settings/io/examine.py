# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs that requests name, and their settings, in one session."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from ..._nvml.gpu import Gpu, Survey, Unreadable
from ..._nvml.io.guarded import Calls
from ..._nvml.io.session import session
from ..plan import Board
from ..request import Values
from .apply import boards


@dataclass(frozen=True)
class Examined:
    """All GPUs, and of those that are named or known: wanted settings, GPUs by UUID, settings, failures."""

    survey: Survey
    wanted: dict[str, Values]
    gpus: dict[str, Gpu]
    boards: list[Board]
    failed: tuple[Unreadable, ...]


def examine(
    requests: Sequence[tuple[list[str], Values]],
    known: Container[str],
    choose: Callable[[Survey, list[str]], Sequence[Gpu]],
    calls: Calls,
) -> Examined:
    """Return what there is of the GPUs of requests.

    Args:
        requests: selectors and settings; a later one counts where two name a GPU.
        known: UUIDs of GPUs that have settings already.
        choose: finds the GPUs of selectors.

    Raises:
        GpuError: when NVML does not answer, or a selected GPU cannot be read.
    """
    with session(calls) as nvml:
        survey = nvml.survey()
        wanted: dict[str, Values] = {}
        for selectors, values in requests:
            for gpu in choose(survey, selectors):
                wanted.setdefault(gpu.uuid, {}).update(values)
        gpus = {gpu.uuid: gpu for gpu in survey.gpus if gpu.uuid in wanted or gpu.uuid in known}
        return Examined(survey, wanted, gpus, *boards(gpus.values(), calls))
