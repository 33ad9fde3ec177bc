# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of the NVIDIA driver, as the kernel lists them: also those about which NVML does not tell."""

from __future__ import annotations

import re
from pathlib import Path

# NVIDIA driver README, "The /proc Filesystem Interface"
FOLDER = Path("/proc/driver/nvidia/gpus")


def listed(folder: Path | None = None) -> dict[str, str]:
    """Return the UUIDs of all GPUs by PCI address; empty where the driver does not know them (any more)."""
    found = {}
    for file in sorted((folder or FOLDER).glob("*/information")):
        try:
            text = file.read_text(encoding="utf-8", errors="replace")
        except OSError:
            text = ""
        # A UUID that the driver does not know is written in question marks.
        match = re.search(r"^GPU UUID:\s*(GPU-[0-9a-f-]+)$", text, re.MULTILINE)
        found[file.parent.name.lower()] = match[1] if match else ""
    return found
