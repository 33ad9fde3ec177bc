"""The states that have landed; the file .ci/landed names the one that the work in this tree began from."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

from proof.tree import git

FILE = ".ci/landed"
# Names the branch that the work is to land on, in a clone that has it.
TARGET = "CI_TARGET_BRANCH"
COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
REMEMBERED = 40  # moves of the file that are looked back at


class NoBase(Exception):
    """There is no landed state to compare with; the message says why."""


def is_ancestor(root: Path, commit: str, descendant: str) -> bool:
    """Return whether a commit is in the history of another, or is that one; false if this clone lacks it."""
    try:
        git(root, "merge-base", "--is-ancestor", commit, descendant)
    except subprocess.CalledProcessError:
        return False
    return True


def base(root: Path, environment: Mapping[str, str]) -> str:
    """Return the commit that this tree is to be compared with.

    Args:
        root: the repository.
        environment: names the target branch, in hosted CI; else the tree itself names the commit.

    Raises:
        NoBase: there is none; everything must be proved.
    """
    target = environment.get(TARGET)
    if target:
        try:
            return git(root, "merge-base", "HEAD", target).decode().strip()
        except subprocess.CalledProcessError as error:
            raise NoBase(
                f"this clone has no common commit of HEAD and {target}, which {TARGET} names"
            ) from error
    if not (root / FILE).is_file():
        raise NoBase(f"there is no file {FILE}")
    commit = (root / FILE).read_text().strip()
    problem = why_not(root, commit)
    if problem:
        raise NoBase(f"{FILE}: {problem}")
    return commit


def why_not(root: Path, commit: str, target: str = "HEAD") -> str:
    """Return why a commit cannot be the one that the work began from, or one before it; nothing if it can.

    Args:
        root: the repository.
        commit: the commit.
        target: branch that the work is to land on; without it no commit of the history is too late.
    """
    if not COMMIT.fullmatch(commit):
        return f"expected the full hash of one commit, found {commit[:80]!r}"
    if not is_ancestor(root, commit, "HEAD"):
        return f"{commit} is not in the history of HEAD, or this clone is shallow"
    if not is_ancestor(root, commit, target):
        return f"{commit} is later than the commit of {target} that the work began from; name that one"
    return ""


def changed(root: Path, commit: str) -> set[str]:
    """Return the paths that differ between a commit and the working tree, with new and removed files."""
    return _differ(root, commit) | _paths(git(root, "ls-files", "-z", "--others", "--exclude-standard"))


def _differ(root: Path, *commits: str) -> set[str]:
    """The paths that differ between two commits, or between one and the working tree."""
    return _paths(git(root, "diff", "--name-only", "--no-renames", "-z", *commits))


def _paths(output: bytes) -> set[str]:
    return {path for path in output.decode().split("\0") if path}


def landings(root: Path) -> list[set[str]]:
    """Return the paths that each of the last landings changed, oldest landing first.

    Each commit that moved the file named a state that had landed; all between two of these landed together.
    """
    moves = git(root, "log", f"--max-count={REMEMBERED}", "--format=%H", "--", FILE).decode().split()
    states: list[str] = []
    for move in reversed(moves):
        try:
            commit = git(root, "cat-file", "blob", f"{move}:{FILE}").decode().strip()
        except subprocess.CalledProcessError:
            continue  # this move removed it
        if commit not in states and not why_not(root, commit):
            states.append(commit)
    return [_differ(root, *pair) for pair in pairwise(states)]
