"""The hub's package as it is found where it is installed: its sources, and its entry points."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[3] / "packages" / "hub"


def make_importable(folder: Path) -> None:
    """Let this process import the hub.

    Args:
        folder: where its metadata can be written.
    """
    about = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    metadata = folder / f"gpufarm_hub-{about['version']}.dist-info"
    metadata.mkdir(parents=True, exist_ok=True)
    (metadata / "METADATA").write_text(f"Name: {about['name']}\nVersion: {about['version']}\n")
    groups = about["entry-points"].items()
    (metadata / "entry_points.txt").write_text(
        "".join(
            f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
            for group, points in groups
        )
    )
    sys.path[:0] = [str(PROJECT), str(folder)]
