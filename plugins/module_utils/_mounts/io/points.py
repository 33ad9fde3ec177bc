# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the file system of a path is mounted on this machine."""

from __future__ import annotations

from pathlib import Path

from ..table import Mount, mount_of, parse


def mounted(path: str) -> Mount | None:
    """Return the mount that a path lies on; None for the file system of the machine's root.

    A folder that users fill is on the file system of the root only while its own one is away.

    Args:
        path: absolute path without symbolic links.
    """
    table = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace")
    mount = mount_of(path, parse(table))
    return None if mount is None or mount.path == "/" else mount
