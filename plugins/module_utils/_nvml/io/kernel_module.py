# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The loaded kernel module of the NVIDIA driver, as the kernel tells it."""

from __future__ import annotations

from pathlib import Path

from ..kernel_module import KernelModule, parse_version

VERSION_FILE = Path("/proc/driver/nvidia/version")


def loaded(file: Path = VERSION_FILE) -> KernelModule:
    """Return the module that is loaded."""
    try:
        return parse_version(file.read_text(encoding="utf-8", errors="replace"))
    except FileNotFoundError:
        return KernelModule()
