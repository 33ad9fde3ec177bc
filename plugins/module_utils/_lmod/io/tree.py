# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A tree of module files: which files of it are the role's, and which machines use it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from ..lua import HEADER

# A folder in the tree with an empty file for each machine that the role has set up with it. It marks the tree
# as the role's; Lmod looks into no folder with a dot in front.
USERS = ".gpufarm"


def read(folder: Path) -> dict[str, str]:
    """Return the role's files in a tree, by their paths below it."""
    found = {}
    for path in sorted(folder.rglob("*.lua")):
        text = _text(path)
        if text is not None:
            found[str(path.relative_to(folder))] = text
    return found


def is_foreign(folder: Path) -> bool:
    """Tell whether a folder has something in it and is not marked as the role's."""
    return folder.is_dir() and not (folder / USERS).is_dir() and any(folder.iterdir())


def taken(folder: Path, paths: Iterable[str]) -> list[str]:
    """Return those of some paths below a tree at which something is that is not the role's."""
    return [path for path in paths if os.path.lexists(folder / path) and _text(folder / path) is None]


def users(folder: Path) -> list[str]:
    """Return the machines that use a tree."""
    marks = folder / USERS
    return sorted(path.name for path in marks.iterdir()) if marks.is_dir() else []


def remove(folder: Path, path: str) -> None:
    """Remove a file of a tree that another machine may be removing too, and folders that are empty then."""
    (folder / path).unlink(missing_ok=True)
    for parent in (folder / path).parents:
        if parent == folder:
            return
        try:
            parent.rmdir()
        except FileNotFoundError:
            continue
        except OSError:
            return


def _text(path: Path) -> str | None:
    """Return the text of a file of the role; None of anything else."""
    if path.is_symlink() or not path.is_file():
        return None
    try:
        text = path.read_text(encoding="utf-8")
    except ValueError:
        return None
    return text if text.startswith(f"{HEADER}\n") else None
