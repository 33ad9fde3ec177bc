# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Make the partitions that a file names, as partitions do not outlive a reboot.

Usage: restore.py /etc/gpufarm/mig.json
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from partitions._gpu import GpuError, select
from partitions._mig_apply import apply
from partitions._mig_flavor import FlavorError, parse_layout
from partitions._mig_lock import locked
from partitions._mig_nodes import make_nodes
from partitions._mig_plan import plan_flavor
from partitions._nvml import session


def restore(layout: list[dict[str, Any]]) -> None:
    """Give each GPU of a stored layout its partitions.

    :arg layout: for each GPU its UUID (`gpu`) and `partitions`, in the form of the option `layout` of the
        module mig_partition
    :raises GpuError: when one of them cannot be had, or a GPU needs a reset; all GPUs are left as they are
        then
    """
    with locked(), session() as nvml:
        gpus = nvml.gpus()
        plans = []
        for entry in layout:
            gpu = select(gpus, [entry["gpu"]])[0]
            plans.append(plan_flavor(gpu, parse_layout(entry["partitions"])))
        if any(plan.changed for plan in plans):
            pending = apply(nvml, plans).pending
            if pending:
                raise GpuError(" ".join(map(str, pending)))
        else:
            make_nodes(gpus)


def main() -> None:
    """Restore the layout of the file that the command line names."""
    try:
        restore(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["layout"])
    except (FlavorError, GpuError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
