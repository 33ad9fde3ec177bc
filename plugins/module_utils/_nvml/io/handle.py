# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""NVML's handle of a GPU, also beside a GPU that is lost."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from typing import Any

try:
    import pynvml
except ImportError:
    pynvml = None


def by_uuid(uuid: str, hung: Collection[int] = ()) -> Any:
    """Return the handle of a GPU.

    NVML may open other GPUs while it searches for a UUID, and fails when any of them is lost (nvml.h,
    nvmlDeviceGetHandleByUUID). So the GPUs are opened one by one then, and beside one that hangs.

    Args:
        hung: indexes of GPUs that are not opened.

    Raises:
        NVMLError: when the GPU cannot be opened.
    """
    try:
        if hung:
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        return pynvml.nvmlDeviceGetHandleByUUID(uuid)
    except pynvml.NVMLError:
        for index in range(pynvml.nvmlDeviceGetCount()):
            if index in hung:
                continue
            with contextlib.suppress(pynvml.NVMLError):
                handle = pynvml.nvmlDeviceGetHandleByIndex(index)
                if pynvml.nvmlDeviceGetUUID(handle) == uuid:
                    return handle
        raise
