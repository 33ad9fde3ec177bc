# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels of mounted software trees, such as those of CernVM-FS: nothing is built for them. No I/O."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Where the kernels are, each in a folder of its own: a user sees only those that are offered to them.
FOLDER = "/etc/gpufarm"
PYTHON = re.compile(r"[A-Za-z0-9_./+-]+")
# Nothing of the notebook server: its Python must not be taken for that of the tree.
PRELUDE = "unset PYTHONHOME PYTHONPATH VIRTUAL_ENV\nPATH=/usr/local/bin:/usr/bin:/bin\n"
BASH = ["/bin/bash", "--noprofile", "--norc"]
TIMEOUT = 300  # seconds; a tree that is fetched over a network is slow at first


@dataclass(frozen=True)
class Tree:
    """A tree: commands of bash that set it up, and its Python then; the rest is as in `Environment`."""

    name: str
    title: str
    groups: tuple[str, ...]
    setup: str
    python: str

    @property
    def path(self) -> str:
        """The folder in which Jupyter finds the kernel."""
        return f"{FOLDER}/kernels/{self.name}"


def is_tree(entry: Mapping[str, Any]) -> bool:
    """Tell whether an entry of ``notebook_environments_more`` is a mounted tree."""
    return bool(entry.get("setup") or entry.get("python"))


def read(entry: Mapping[str, Any], title: str) -> Tree:
    """Return the tree of an entry whose name is usable.

    Raises:
        ValueError: it cannot be one; the text is a sentence.
    """
    name, setup, python = entry["name"], entry.get("setup") or "", entry.get("python") or "python"
    if entry.get("lock"):
        raise ValueError(
            f"The environment {name} has a lock, and a setup or python of a mounted tree; give one of both."
        )
    if not PYTHON.fullmatch(python):
        raise ValueError(
            f"The python of the environment {name} is {python!r:.60}; give a path, or the name of a program"
            " that its setup finds."
        )
    if "\x00" in setup:
        raise ValueError(f"The setup of the environment {name} holds a zero byte; give commands of bash.")
    return Tree(name, title, tuple(entry.get("groups") or ()), setup, python)


def made(tree: Tree) -> dict[str, Any]:
    """Return what the role makes of a tree.

    Returns:
        ``name``, ``title``; ``probe``, a command that fails if the tree is not there or has no ipykernel; and
        ``files``, texts by paths below `FOLDER`.
    """
    python = shlex.quote(tree.python)
    folder = f"kernels/{tree.name}/kernels/{tree.name}"
    lines = [
        "#!/bin/bash",
        "# Of Ansible's role notebook_environments: the kernel of a mounted software tree.",
        # A script that is read by "source" would take the file of the connection for its own argument.
        "connection_file=$1",
        "set --",
        f"{PRELUDE}{tree.setup}",
        f'exec {python} -m ipykernel_launcher -f "$connection_file"',
    ]
    start = "\n".join(lines) + "\n"
    kernel = {
        # A file, as Jupyter puts values in place of {words} of arguments, and commands of bash hold such.
        "argv": [*BASH, f"{FOLDER}/{folder}/start.sh", "{connection_file}"],
        "display_name": tree.title,
        "language": "python",
        "metadata": {"debugger": True},
    }
    probe = f"{PRELUDE}{tree.setup}\nexec {python} -c 'import ipykernel.kernelapp'"
    return {
        "name": tree.name,
        "title": tree.title,
        "probe": ["timeout", str(TIMEOUT), *BASH, "-c", probe],
        "files": {f"{folder}/start.sh": start, f"{folder}/kernel.json": json.dumps(kernel, indent=2) + "\n"},
    }
