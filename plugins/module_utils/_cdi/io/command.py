# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-cdi: describe the GPUs to container engines, at boot and after partitions change."""

from __future__ import annotations

import sys

from ..._nvml.gpu import GpuError
from ..._nvml.io.boot import ask_at_boot
from ..._nvml.io.guarded import Guarded
from .. import spec
from . import host

PATIENCE = 120.0  # seconds, for a driver that is still loading


def main() -> int:
    """Write the specification, without which containers with GPUs are refused; return an exit status.

    GPUs that cannot be read are not in it, and are named in the log.
    """
    try:
        found = ask_at_boot(Guarded(), host.inspect, PATIENCE)
        survey = found.survey
        host.make_nodes(survey.gpus)
        specified = host.specify(found, lambda said: sys.stderr.write(f"{said}\n"))
        host.write(spec.text(specified) if specified else "")
    except (GpuError, OSError) as error:
        # The former one may name device nodes that belong to other slices by now.
        host.write("")
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stderr.writelines(f"{one}\n" for one in survey.unreadable)
    return 0
