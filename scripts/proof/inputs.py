"""The inputs of a job: all files that it needs, and by what way."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from functools import cached_property

from proof.jobs import Job, jobs
from proof.names import Names, Reference
from proof.references import references
from proof.tree import Tree

WORD = re.compile(r"\w+")


class Inputs:
    """The inputs of all jobs in one state of the repository.

    Args:
        tree: the files of that state.
    """

    def __init__(self, tree: Tree) -> None:
        self.names = Names(tree)
        self._references: dict[str, frozenset[Reference]] = {}

    @cached_property
    def jobs(self) -> dict[str, dict[str, str | None]]:
        """Inputs by name of job: the path of each and of the file that names it; None for the job's own."""
        return {name: self._of(job) for name, job in jobs(self.names.tree).items()}

    def _of(self, job: Job) -> dict[str, str | None]:
        found: dict[str, str | None] = dict.fromkeys(sorted(job.roots | job.read))
        followed = set(job.roots)
        groups = self._groups(job)
        waiting = sorted(job.roots)
        for path in waiting:  # which grows
            for reference in sorted(self._named_by(path), key=lambda reference: reference.path):
                if reference.path.startswith(job.unused) or (
                    reference.groups and not reference.groups & groups
                ):
                    continue
                found.setdefault(reference.path, path)
                if reference.followed and reference.path not in followed:
                    followed.add(reference.path)
                    found[reference.path] = path
                    waiting.append(reference.path)
        return found

    def _groups(self, job: Job) -> set[str]:
        """Words that may name a group of machines, from a job's files and inventories that they name."""
        named = {reference.path for path in job.roots for reference in self._named_by(path)}
        inventories = {path for path in named if path.startswith("inventories/")}
        return {
            word for path in job.roots | inventories for word in WORD.findall(self.names.tree.texts[path])
        }

    def _named_by(self, path: str) -> frozenset[Reference]:
        if path not in self._references:
            self._references[path] = references(path, self.names)
        return self._references[path]

    def way(self, job: str, path: str) -> list[str]:
        """Return how a job comes to a file: files that name one another, from its own to that one."""
        way: list[str] = []
        step: str | None = path
        while step:
            way.insert(0, step)
            step = self.jobs[job][step]
        return way
