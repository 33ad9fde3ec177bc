"""The files of the repository as text, in the working tree or in a commit."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import subprocess
import tarfile
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath


@dataclass(frozen=True)
class Tree:
    """Files by their paths from the root of the repository.

    Attributes:
        texts: content by path; bytes that are no UTF-8 are replaced.
    """

    texts: Mapping[str, str]

    @cached_property
    def folders(self) -> Mapping[str, list[str]]:
        """The paths of all files below each folder, sorted; the root is left out."""
        found = defaultdict(list)
        for path in sorted(self.texts):
            for parent in PurePosixPath(path).parents[:-1]:
                found[str(parent)].append(path)
        return dict(found)

    def below(self, folder: str) -> list[str]:
        """Return the paths of all files below a folder, sorted; none if there is no such folder."""
        return self.folders.get(folder, [])


def git(root: Path, *words: str) -> bytes:
    """Run a command of git in the repository and return its output.

    Raises:
        subprocess.CalledProcessError: git failed.
    """
    return subprocess.run(["git", "-C", root, *words], check=True, capture_output=True).stdout


def working_tree(root: Path) -> Tree:
    """Read the working tree: what git tracks and new files that it does not ignore."""
    listing = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").decode()
    paths = {path for path in listing.split("\0") if path and (root / path).is_file()}
    return Tree({path: (root / path).read_text(errors="replace") for path in paths})


def tree_of(root: Path, commit: str) -> Tree:
    """Read the tree of a commit."""
    texts = {}
    with tarfile.open(fileobj=io.BytesIO(git(root, "archive", commit))) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content:
                texts[member.name] = content.read().decode(errors="replace")
    return Tree(texts)
