# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of Slurm. No I/O."""

from __future__ import annotations

import re


def release(text: str) -> str:
    """Return the release in a text with a version, such as `24.11` of `slurm-wlm 24.11.5`; empty if none.

    The first two numbers are the release; daemons of other releases do not understand one another's messages
    in any case (https://slurm.schedmd.com/upgrades.html, "Release Cycle").
    """
    found = re.search(r"(\d+\.\d+)\.\d+", text)
    return found[1] if found else ""
