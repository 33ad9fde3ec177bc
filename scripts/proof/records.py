"""Which files of the repository a job opened, and where that is recorded."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from proof.tree import Tree

FOLDER = Path("tests/contract/opened")
COMPILED = re.compile(r"__pycache__/([^./]+)\.[^/]*\.pyc[^/]*$")
# Ansible loads all filters of a collection to find one, so that a filter is opened tells nothing. The second
# is what records.
UNTOLD = ("plugins/filter/", "scripts/proof/")


def file_of(job: str) -> Path:
    """Return the file of a job's record, from the root of the repository."""
    return FOLDER / f"{job.replace(' ', '-')}.txt"


def inputs_among(noted: Iterable[str], root: Path, tree: Tree) -> list[str]:
    """Return which of the opened files are inputs of a job, from the root of the repository and sorted.

    Args:
        noted: absolute paths as they were opened, by whatever links. Compiled files stand for their sources.
        root: the repository.
        tree: its files; others were made by the job.
    """
    opened = {Path(COMPILED.sub(r"\1.py", path)).resolve() for path in noted}
    own = {str(path.relative_to(root)) for path in opened if path.is_relative_to(root)} & tree.texts.keys()
    return sorted(path for path in own if not path.startswith(UNTOLD))
