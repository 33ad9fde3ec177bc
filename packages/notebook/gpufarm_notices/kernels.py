# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels of a notebook server that runs beside shared environments: all but that of its own Python.

The packages of the server are not for users, who could neither add to them nor rely on them.
"""

from __future__ import annotations

import sys
from pathlib import Path

from jupyter_client.kernelspec import NATIVE_KERNEL_NAME, KernelSpecManager


class SharedKernels(KernelSpecManager):  # type: ignore[misc]
    """Finds the kernels of the shared environments and those of the user."""

    def _ensure_native_kernel_default(self) -> bool:
        return False

    def find_kernel_specs(self) -> dict[str, str]:
        """Return the folders of the kernels by their names."""
        found: dict[str, str] = super().find_kernel_specs()
        return {name: folder for name, folder in found.items() if not _is_own(name, folder)}


def _is_own(name: str, folder: str) -> bool:
    return name == NATIVE_KERNEL_NAME and Path(sys.prefix) in Path(folder).parents
