# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel module of the NVIDIA driver, as the kernel tells it. No I/O."""

from __future__ import annotations

import re
from dataclasses import dataclass

# NVIDIA driver README, "The /proc Filesystem Interface"; the open modules name themselves in the same line.
_LINE = re.compile(r"NVRM version:.*?(?P<open>Open )?Kernel Module\b.*?\s(?P<version>[0-9]+(?:\.[0-9]+)+)\s")


@dataclass(frozen=True)
class KernelModule:
    """Version and kind (`open` or `proprietary`) of the loaded module; both empty when none is told."""

    version: str = ""
    kind: str = ""


def parse_version(text: str) -> KernelModule:
    """Read the content of /proc/driver/nvidia/version."""
    match = _LINE.search(text)
    if match is None:
        return KernelModule()
    return KernelModule(match["version"], "open" if match["open"] else "proprietary")
