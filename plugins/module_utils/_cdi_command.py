# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-cdi: describe the GPUs to container engines, at boot and after partitions change."""

from __future__ import annotations

import sys

from . import _cdi, _cdi_host
from ._gpu import GpuError
from ._nvml_boot import session_at_boot

PATIENCE = 120.0  # seconds, for a driver that is still loading


def main() -> int:
    """Write the specification; without one, containers that ask for GPUs are refused. Return an exit code."""
    try:
        with session_at_boot(PATIENCE) as nvml:
            _cdi_host.make_nodes(nvml)
            specified = _cdi_host.specify(nvml)
        _cdi_host.write(_cdi.text(specified) if specified else "")
    except (GpuError, OSError) as error:
        # The former one may name device nodes that belong to other slices by now.
        _cdi_host.write("")
        sys.stderr.write(f"{error}\n")
        return 1
    return 0
