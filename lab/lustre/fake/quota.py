# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas of a file system: limits, projects, and what is used, counted in its folder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import state


def file_of(name: str) -> Path:
    return state.VAR / f"quota.{name}.json"


def read(name: str) -> dict[str, Any]:
    """Return `limits` (soft KB, hard KB, soft files, hard files) by kind and number, `projects` by folder."""
    empty: dict[str, Any] = {"limits": {}, "projects": {}}
    return dict(json.loads(file_of(name).read_text())) if file_of(name).exists() else empty


def keep(name: str, known: dict[str, Any]) -> None:
    file_of(name).write_text(json.dumps(known))


def project_of(projects: dict[str, int], relative: str) -> int:
    """Return the project of a path: that of the nearest folder with one, which is how it is inherited."""
    above = [
        (len(folder), one)
        for folder, one in projects.items()
        if folder == "." or relative == folder or relative.startswith(f"{folder}/")
    ]
    return max(above, default=(0, 0))[1]


def walk(root: Path) -> Iterator[Path]:
    yield root
    for folder, folders, files in os.walk(root):
        for one in (*folders, *files):
            yield Path(folder) / one


def used(name: str, kind: str, number: int) -> tuple[int, int]:
    """Return KB and files of a user, a group or a project."""
    projects = read(name)["projects"]
    root = state.VAR / "data" / name
    size = count = 0
    for file in walk(root):
        found = file.lstat()
        project = project_of(projects, str(file.relative_to(root)))
        if {"u": found.st_uid, "g": found.st_gid, "p": project}[kind] == number:
            size += found.st_blocks // 2
            count += 1
    return size, count


def exceeded(name: str, path: str, uid: int, gid: int, size: int, files: int) -> bool:
    """Whether KB and files more would go over a hard limit of the user, the group or the project."""
    known = read(name)
    relative = str(Path(path).relative_to(state.VAR / "data" / name))
    project = project_of(known["projects"], relative)
    for kind, number in (("u", uid), ("g", gid), ("p", project)):
        _soft, hard, _soft_files, hard_files = known["limits"].get(f"{kind}{number}", [0, 0, 0, 0])
        if hard or hard_files:
            used_size, used_files = used(name, kind, number)
            if 0 < hard < used_size + size or 0 < hard_files < used_files + files:
                return True
    return False
