# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python with the binding of NVML: modules find it by themselves."""

from __future__ import annotations

import sys
from pathlib import Path

from ansible.module_utils.common.respawn import has_respawned, respawn_module

from .session import GPU_PYTHON


def use_gpu_python() -> None:
    """Run the module with the Python that has the binding, where it is installed. Call this before all else.

    Where it is not, the module goes on with this one, which may have the binding, too.
    """
    if sys.executable != GPU_PYTHON and Path(GPU_PYTHON).exists() and not has_respawned():
        respawn_module(GPU_PYTHON)
