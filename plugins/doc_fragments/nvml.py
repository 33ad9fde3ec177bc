# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation that the modules which talk to NVML share."""

from __future__ import annotations


class ModuleDocFragment:
    """Requirements of these modules on the target."""

    DOCUMENTATION = r"""
attributes:
  check_mode:
    support: full
    description: In check mode the module reads and plans, and changes nothing.
  idempotent:
    support: full
    description: A second run changes nothing.
requirements:
  - an NVIDIA driver that is loaded (its library C(libnvidia-ml.so.1) is what the module talks to)
  - the Python package nvidia-ml-py 11.525 or later
notes:
  - Where the roles of this collection have installed C(/opt/gpufarm/gpu), an environment that holds
    nvidia-ml-py, the module goes on with the Python of that. Elsewhere the host's own needs the package.
author:
  - gpufarm maintainers (@gpufarm)
"""

    CALL_TIMEOUT = r"""
options:
  call_timeout:
    description:
      - Seconds that one call to the driver may take. A child process makes the calls, and is killed when one
        takes longer.
      - A GPU whose driver hangs counts as one that cannot be read.
    type: float
    default: 30
"""
