"""Which files of the repository a job opened."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import pickle
import re
import sysconfig
from collections.abc import Iterable, Iterator
from pathlib import Path

from proof.tree import Tree

NOTES = "PROOF_OPENED"  # names the file of notes in a job's environment
COMPILED = re.compile(r"__pycache__/([^./]+)\.[^/]*\.pyc[^/]*$")
ARCHIVES = "/.work/packed-modules/"
# Ansible loads all filters of a collection to find one, so that a filter is opened tells nothing. The second
# is what records.
UNTOLD = ("plugins/filter/", "scripts/proof/")


def have_processes_note(root: Path) -> None:
    """Have every Python process of this checkout's .venv note what it opens, if its environment says where.

    Args:
        root: the checkout, with scripts and .venv.
    """
    program = root / "scripts" / "proof" / "opened.py"
    path = Path(sysconfig.get_path("purelib", vars={"base": str(root / ".venv")})) / "proof_opened.pth"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(f".{os.getpid()}")
    partial.write_text(
        f"import os; {NOTES!r} in os.environ and __import__('runpy').run_path({str(program)!r})\n"
    )
    partial.replace(path)


def inputs_among(noted: Iterable[str], root: Path, tree: Tree) -> list[str]:
    """Return which of the opened files are inputs of a job, from the root of the repository and sorted.

    Args:
        noted: absolute paths as they were opened, by whatever links. Compiled files stand for their sources,
            archives of modules for what is packed in them.
        root: the repository.
        tree: its files; others were made by the job.
    """
    opened = {source for path in noted for source in _sources(path)}
    own = {str(path.relative_to(root)) for path in opened if path.is_relative_to(root)} & tree.texts.keys()
    return sorted(path for path in own if not path.startswith(UNTOLD))


def _sources(noted: str) -> Iterator[Path]:
    if ARCHIVES in noted:
        # _CachedModule in ansible/executor/module_common.py, which this checkout's own runs wrote
        archive = pickle.loads(Path(noted).read_bytes())  # noqa: S301
        yield from (Path(path).resolve() for path in archive.source_mapping)
    else:
        yield Path(COMPILED.sub(r"\1.py", noted)).resolve()
