# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Removes files that a role makes no longer, unless somebody has changed them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..dropped import UNITS, Dropped
from .things import NOTHING, states

PATIENCE = 120.0  # seconds


def remove(what: Dropped) -> tuple[list[str], list[str]]:
    """Remove files, and stop units before their files go.

    Args:
        what: files and units.

    Returns:
        The paths that are gone, and a sentence for each thing that stays.
    """
    found = states({"paths": what.files})["paths"]
    there = {path: state for path, state in found.items() if state != NOTHING}
    gone, kept = [], []
    for path, state in sorted(there.items()):
        if state != what.files[path]:
            kept.append(f"{path} is no longer made, and stays, as somebody has changed it.")
            continue
        try:
            if path.removeprefix(UNITS) in what.units:
                _systemctl("disable", "--now", path.removeprefix(UNITS))
            Path(path).unlink()
            gone.append(path)
        except (OSError, subprocess.SubprocessError) as error:
            kept.append(f"{path} is no longer made, and cannot be removed: {error}.")
    if any(path.startswith(UNITS) for path in gone):
        try:
            _systemctl("daemon-reload")
        except (OSError, subprocess.SubprocessError) as error:
            kept.append(f"systemd still has units whose files are gone, as it does not reload: {error}.")
    return gone, kept


def _systemctl(*words: str) -> None:
    subprocess.run(["systemctl", *words], check=True, capture_output=True, timeout=PATIENCE)
