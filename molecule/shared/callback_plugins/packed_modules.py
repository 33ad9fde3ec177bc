"""Modules that one run of Ansible has packed are there for the next: packing is 40 % of what a run computes.

Ansible packs each module with all that it imports into an archive, and keeps the archives until its run ends
(_find_module_utils in ansible/executor/module_common.py). Here a run begins with the archives of the runs
before it that had the same sources, and leaves its own behind if the sources are still the same at its end.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

from ansible import constants
from ansible.plugins.callback import CallbackBase

ROOT = Path(__file__).resolve().parents[3]
# The lock file stands for Ansible and the collections that come with it.
SOURCES = (
    ROOT / "requirements" / "controller.lock",
    ROOT / "plugins" / "modules",
    ROOT / "plugins" / "module_utils",
)
FOLDER = ROOT / ".work" / "packed-modules"
FORGET_AFTER = 86400  # seconds without a run
IN_THE_MAKING = (".lock", "-part")


def digest(sources: Sequence[Path]) -> str:
    """One name for the content of files, and of the Python files below folders."""
    content = hashlib.sha256()
    for source in sources:
        for path in sorted(source.rglob("*.py")) if source.is_dir() else [source]:
            data = path.read_bytes()
            content.update(f"{path.relative_to(source)} {len(data)}\n".encode() + data)
    return content.hexdigest()[:16]


class PackedModules:
    """The archives of one state of the sources.

    Args:
        folder: where those of all states are kept.
        sources: files and folders that the content of archives depends on.
        run: folder where Ansible looks for archives, and writes them, during one run.
    """

    def __init__(self, folder: Path, sources: Sequence[Path], run: Path) -> None:
        self.folder, self.sources, self.run = folder, sources, run
        self.kept = folder / digest(sources)

    def fetch(self) -> None:
        """Give the run what is kept; forget states of the sources that no run has had for long."""
        self.run.mkdir(parents=True, exist_ok=True)
        self.kept.mkdir(parents=True, exist_ok=True)
        os.utime(self.kept)
        for archive in self.kept.iterdir():
            if not archive.name.endswith(IN_THE_MAKING):
                with contextlib.suppress(FileExistsError):  # of the playbook before, in the same run
                    (self.run / archive.name).symlink_to(archive)
        for state in self.folder.iterdir():
            if time.time() - state.stat().st_mtime > FORGET_AFTER:
                shutil.rmtree(state, ignore_errors=True)

    def keep(self) -> None:
        """Keep what the run has packed, unless the sources have changed since it began."""
        if self.folder / digest(self.sources) != self.kept:
            return
        for archive in self.run.iterdir():
            if archive.is_symlink() or archive.name.endswith(IN_THE_MAKING):
                continue
            mine = self.kept / f"{archive.name}.{os.getpid()}-part"
            shutil.copyfile(archive, mine)
            mine.rename(self.kept / archive.name)


class CallbackModule(CallbackBase):
    """Fetch before the first task, keep after the last."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "aggregate"
    CALLBACK_NAME = "packed_modules"
    CALLBACK_NEEDS_ENABLED = True

    def v2_playbook_on_start(self, playbook: object) -> None:
        self.modules = PackedModules(FOLDER, SOURCES, Path(constants.DEFAULT_LOCAL_TMP) / "ansiballz_cache")
        self.modules.fetch()

    def v2_playbook_on_stats(self, stats: object) -> None:
        self.modules.keep()
