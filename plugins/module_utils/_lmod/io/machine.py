# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Tells what a machine has that modules are made of, and whose the tree is that they go to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..._environments.io import versions
from ..._environments.plan import KERNELS
from ..._host.io.patience import answers
from . import tree

RIVAL = Path("/usr/share/modules/init/bash")
# The role notebook_environments writes it.
ENVIRONMENTS = Path("/etc/gpufarm/environments.json")


def inspect(folder: Path, files: list[str]) -> dict[str, Any]:
    """Return whose a tree is."""
    return {
        "unsafe": versions.unsafe(folder),
        "foreign": tree.is_foreign(folder),
        "shared": versions.is_shared(folder),
        "taken": tree.taken(folder, files),
    }


def toolkits(patterns: list[str]) -> list[str]:
    """Return folders with the compiler of CUDA, each once: a link beside it has its version shortened."""
    found = {path for pattern in patterns for path in Path("/").glob(pattern.lstrip("/"))}
    folders: dict[Path, str] = {}
    for path in sorted(found, key=lambda path: (path.is_symlink(), path)):
        if (path / "bin" / "nvcc").is_file():
            folders.setdefault(path.resolve(), str(path))
    return sorted(folders.values())


def environments() -> list[dict[str, str]]:
    """Return the environments of notebooks that are for all users; groups of a hub mean nothing here."""
    if not ENVIRONMENTS.is_file():
        return []
    told = json.loads(ENVIRONMENTS.read_text(encoding="utf-8"))["environments"]
    offered = [(one, Path(one["path"])) for one in told if not one["groups"]]
    return [
        {"name": one["name"], "title": one["title"], "version": path.parent.name, "folder": str(path.parent)}
        for one, path in offered
        if path.name == KERNELS and (path.parent / "bin" / "python").exists()
    ]


def found(
    folder: Path, files: Sequence[str], prefixes: Sequence[str], patterns: Sequence[str], patience: float
) -> dict[str, Any]:
    """Return what the machine has.

    Args:
        folder: of the tree.
        files: paths below the folder that are to be written.
        prefixes: folders of installations.
        patterns: of folders with CUDA toolkits.
        patience: seconds that file systems have to answer.

    Returns:
        The result of the module ``environment_modules_info``.

    Raises:
        OSError: something cannot be read.
    """
    questions = {
        "tree": lambda: inspect(folder, list(files)),
        "toolkits": lambda: toolkits(list(patterns)),
        "environments": environments,
    }
    there = answers({prefix: partial(Path(prefix).is_dir) for prefix in sorted({*prefixes})}, patience)
    rest = answers(questions, patience)
    silent = sorted({*prefixes} - there.keys())
    silent += [
        name
        for name, key in ((str(folder), "tree"), ("The folder of CUDA toolkits", "toolkits"))
        if key not in rest
    ]
    return {
        "silent": silent,
        "missing": sorted(prefix for prefix, is_there in there.items() if not is_there),
        "rival": RIVAL.is_file(),
        "tree": rest.get("tree", {}),
        "toolkits": rest.get("toolkits", []),
        "environments": rest.get("environments", []),
    }
