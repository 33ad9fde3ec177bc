# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folder of a job in the area of its user, in which the job finds its data and leaves its results."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pwd
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..._host.io.files import replace_file
from ..._mounts.io.points import mounted
from ..declared import OWN, Declared, StagingError

SETTINGS = Path("/etc/gpufarm/staging.json")


def settings() -> dict[str, Any]:
    """Return the settings of the machine: `areas`, `stores` and `partition`.

    Raises:
        StagingError: there are none.
    """
    try:
        read: dict[str, Any] = json.loads(SETTINGS.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StagingError(f"the settings of this machine cannot be read: {error}") from None
    return read


def folder(areas: str) -> Path:
    """Return the folder of all stages of this user, which is made unless it is there.

    Raises:
        StagingError: the user has no area.
    """
    name = pwd.getpwuid(os.getuid()).pw_name
    # A site may have links there; copies follow none.
    areas = os.path.realpath(areas)
    area = Path(areas, name)
    try:
        found = os.lstat(area)
    except OSError:
        found = None
    if found is None or not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid():
        raise StagingError(f"{name} has no area in {areas}; log in anew, or ask an administrator")
    if mounted(areas) is None:
        raise StagingError(f"{areas} is not mounted; ask an administrator")
    stages = area / "staging"
    stages.mkdir(mode=0o700, exist_ok=True)
    return stages


class Stage:
    """The stage of a job.

    Args:
        above: the folder of all stages of the user.
        job: number of the job.
    """

    def __init__(self, above: Path, job: int) -> None:
        self.job = job
        self.path = above / str(job)
        # Slurm writes into it what both copies say. It outlives the stage, so copies lock it: NFS keeps files
        # that are open, and so the folder that has them.
        self.log = above / f"{job}.log"
        self._own = self.path / OWN

    def make(self, declared: Declared) -> None:
        """Make it.

        Raises:
            StagingError: there is one already.
        """
        try:
            self.path.mkdir(mode=0o700)
        except FileExistsError:
            raise StagingError(
                f"{self.path} is left of an earlier job of that number; move it away"
            ) from None
        self._own.mkdir(mode=0o700)
        replace_file(self._own / "declared.json", declared.text(), 0o600)

    def declared(self) -> Declared:
        """Return what the job has declared.

        Raises:
            StagingError: there is no such stage.
        """
        try:
            return Declared.of_text((self._own / "declared.json").read_text(encoding="utf-8"))
        except OSError:
            raise StagingError(
                f"there is no {self.path}; its data are in the store, or were too old"
            ) from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[Declared]:
        """Keep other copies of this stage away, and give what the job has declared.

        Raises:
            StagingError: there is no such stage, or one works on it already.
        """
        self.declared()
        with self.log.open("a", encoding="utf-8") as stream:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise StagingError(f"another process copies data of job {self.job}") from None
            except OSError as error:
                raise StagingError(f"{self.log} cannot be locked: {error.strerror}") from None
            # Another copy may have removed the stage meanwhile.
            yield self.declared()
