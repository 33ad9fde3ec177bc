"""Jobs that prove the working tree, with reasons, and the order of the other jobs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from proof import landed
from proof.inputs import Inputs
from proof.landed import NoBase
from proof.tree import tree_of, working_tree
from proof.turns import by_age_of_proof


@dataclass(frozen=True)
class Choice:
    """Jobs that a change affects.

    Attributes:
        reason: a sentence that says what the tree was compared with, or why it was not.
        affected: for each job that must be run, the ways to the changed files among its inputs. A way is a
            list of files of which each names the next; the last one has changed. No ways where nothing was
            compared.
        order: all jobs, the one that was proved longest ago first.
    """

    reason: str
    affected: Mapping[str, list[list[str]]]
    order: list[str]


def affected(inputs: Inputs, changed: set[str]) -> dict[str, list[list[str]]]:
    """Return the jobs of which inputs are among changed files, and how they come to these."""
    found = {job: sorted(changed & paths.keys()) for job, paths in inputs.jobs.items()}
    return {job: [inputs.way(job, path) for path in paths] for job, paths in found.items() if paths}


def choose(root: Path, environment: Mapping[str, str]) -> Choice:
    """Compare the working tree with the state that the work in it began from.

    Args:
        root: the repository.
        environment: as for `landed.base`.
    """
    inputs = Inputs(working_tree(root))
    order = by_age_of_proof(inputs.jobs, [affected(inputs, paths).keys() for paths in landed.landings(root)])
    try:
        base = landed.base(root, environment)
    except NoBase as error:
        return Choice(f"All jobs count as affected: {error}.", {job: [] for job in inputs.jobs}, order)
    changed = landed.changed(root, base)
    # A file that was removed, or is no longer named, was an input of the jobs of the state before.
    found = affected(Inputs(tree_of(root, base)), changed) if changed else {}
    found = {job: ways for job, ways in found.items() if job in inputs.jobs} | affected(inputs, changed)
    return Choice(f"Compared with {base}: {len(changed)} files differ.", found, order)
