# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-mig: make the partitions that a file names, as partitions do not outlive a reboot."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from ..._nvml.gpu import Gpu, GpuError, select
from ..._nvml.io.boot import session_at_boot
from ..._nvml.io.session import Nvml
from ..flavor import FlavorError, parse_layout
from ..plan import plan_flavor
from .apply import apply
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
    with locked(), session_at_boot(PATIENCE) as nvml:
        gpus = mark(nvml.gpus())
        for entry in layout:
            try:
                _restore(nvml, gpus, entry)
            except (FlavorError, GpuError) as error:
                problems.append(str(error))
    return problems


def differences(layout: list[dict[str, Any]]) -> list[str]:
    """Return which GPUs of a stored layout have other partitions now, a sentence for each.

    Args:
        layout: as for `restore`.

    Raises:
        GpuError: when the driver does not answer, or another program is partitioning.
    """
    with locked(), session_at_boot(0) as nvml:
        gpus = nvml.gpus()
        return [f"{entry['gpu']} has other partitions." for entry in layout if _differs(gpus, entry)]


def _differs(gpus: tuple[Gpu, ...], entry: dict[str, Any]) -> bool:
    try:
        [gpu] = select(gpus, [entry["gpu"]])
        return plan_flavor(gpu, parse_layout(entry["partitions"])).changed
    except (FlavorError, GpuError):
        return True


def _restore(nvml: Nvml, gpus: tuple[Gpu, ...], entry: dict[str, Any]) -> None:
    [gpu] = select(gpus, [entry["gpu"]])
    plan = plan_flavor(gpu, parse_layout(entry["partitions"]))
    if not plan.changed:
        make_nodes([gpu])
        return
    pending = apply(nvml, [plan]).pending
    if pending:
        raise GpuError(str(pending[0]))


def main() -> int:
    """Restore the layout of the file that the command line names, or with --check compare with it.

    Returns:
        0 if all GPUs have their partitions, otherwise 1.
    """
    work = differences if sys.argv[1] == "--check" else restore
    try:
        problems = work(json.loads(Path(sys.argv[-1]).read_text(encoding="utf-8"))["layout"])
    except GpuError as error:
        problems = [str(error)]
    sys.stderr.writelines(f"{problem}\n" for problem in problems)
    return int(bool(problems))
