"""Two hubs never hand out the slices of one machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gpufarm_hub
import pytest
from gpufarm_hub.upkeep import alone

HOLD = "import sys; from pathlib import Path; from gpufarm_hub.upkeep import alone\n"
HOLD += "alone.on_this_machine(Path(sys.argv[1])); print(flush=True); sys.stdin.read()"


def test_the_second_is_told_of_the_first_and_may_start_when_it_is_gone(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, lock],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(Path(gpufarm_hub.__file__).parents[1])},
    ) as first:
        assert first.stdout and first.stdout.readline()
        with pytest.raises(alone.SecondHubError, match=f"The hub with process id {first.pid} hands out"):
            alone.on_this_machine(lock)
        first.kill()
        first.wait()
    alone.on_this_machine(lock)
    assert lock.read_text() == f"{os.getpid()}\n"


def test_the_lock_follows_no_link(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        alone.on_this_machine(tmp_path / "lock")
    assert not (tmp_path / "elsewhere").exists()


def test_only_root_can_make_the_lock_before_the_hub_does() -> None:
    folder = alone.LOCK.parent.stat()
    assert (folder.st_uid, folder.st_mode & 0o022) == (0, 0)
