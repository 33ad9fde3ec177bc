# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-mig: make the partitions that a file names, as partitions do not outlive a reboot."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..._cordon.cordon import Cordon, check_change
from ..._cordon.cordon import mark as mark_cordons
from ..._cordon.io import folder
from ..._nvml.gpu import REPAIR, Gpu, GpuError, Survey, select
from ..._nvml.io import session
from ..._nvml.io.boot import ask_at_boot
from ..._nvml.io.guarded import Calls, Guarded
from ..flavor import FlavorError, parse_layout
from ..plan import Plan, plan_flavor
from ..stored import read
from .apply import Outcome, apply, partly
from .holders import mark
from .lock import locked
from .nodes import make_nodes

PATIENCE = 120.0  # seconds, for a driver that is still loading


def restore(layout: list[dict[str, Any]]) -> list[str]:
    """Give each GPU of a stored layout its partitions.

    Args:
        layout: for each GPU its UUID (`gpu`) and `partitions`, in the form of the option `layout` of the
            module mig_partition.

    Returns:
        what could not be had, a sentence for each GPU; the other GPUs have theirs.

    Raises:
        GpuError: when the driver does not answer, or another program is partitioning.
    """
    problems = []
    guarded = Guarded()
    with locked():
        survey = ask_at_boot(guarded, session.survey, PATIENCE)
        cordons = folder.read()
        survey = replace(survey, gpus=mark_cordons(mark(survey.gpus), cordons))
        for entry in layout:
            try:
                _restore(guarded, survey, entry, cordons)
            except (FlavorError, GpuError) as error:
                problems.append(str(error))
    return problems


def differences(layout: list[dict[str, Any]]) -> list[str]:
    """Return which GPUs of a stored layout have other partitions now, a sentence for each.

    Prints the MIG mode of all GPUs, as a layout tells nothing of those whose mode is to be off.

    Args:
        layout: as for `restore`.

    Raises:
        GpuError: when the driver does not answer, or another program is partitioning.
    """
    with locked():
        survey = Guarded().ask(session.survey)
        sys.stdout.writelines(f"{gpu.uuid} MIG mode {_mode(gpu)}\n" for gpu in survey.gpus)
        return [found for found in (_difference(survey, entry) for entry in layout) if found]


def _mode(gpu: Gpu) -> str:
    return "on" if gpu.mig_enabled else "off"


def _difference(survey: Survey, entry: dict[str, Any]) -> str:
    try:
        gpu = _gpu(survey, entry)
        changed = plan_flavor(gpu, parse_layout(entry["partitions"])).changed
    except (FlavorError, GpuError) as error:
        return str(error)
    return f"{entry['gpu']} has other partitions." if changed else ""


def _gpu(survey: Survey, entry: dict[str, Any]) -> Gpu:
    for failed in survey.unreadable:
        if failed.uuid == entry["gpu"]:
            raise GpuError(f"{failed}{REPAIR}")
    [gpu] = select(survey.gpus, [entry["gpu"]], survey.unreadable)
    return gpu


def _restore(guarded: Guarded, survey: Survey, entry: dict[str, Any], cordons: Mapping[str, Cordon]) -> None:
    gpu = _gpu(survey, entry)
    plan = plan_flavor(gpu, parse_layout(entry["partitions"]))
    if not plan.changed:
        make_nodes([gpu])
        return
    check_change(gpu, cordons)
    pending = guarded.change(lambda calls: _apply(calls, plan), partly([gpu])).pending
    if pending:
        raise GpuError(str(pending[0]))


def _apply(calls: Calls, plan: Plan) -> Outcome:
    with session.session(calls) as nvml:
        return apply(nvml, [plan])


def _layout(file: Path) -> list[dict[str, Any]]:
    try:
        return read(file.read_text(encoding="utf-8", errors="replace"), str(file))
    except OSError as error:
        raise GpuError(f"{file} cannot be read: {error.strerror}.") from error


def main() -> int:
    """Restore the layout of the file that the command line names, or with --check compare with it.

    Returns:
        0 if all GPUs have their partitions, otherwise 1.
    """
    work = differences if sys.argv[1] == "--check" else restore
    file = Path(sys.argv[-1])
    try:
        problems = work(_layout(file))
    except GpuError as error:
        problems = [str(error)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))
