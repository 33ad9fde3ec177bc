# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Questions about files have processes of their own, which are left behind when they hang."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import patience

from lab.patience import PATIENCE


def test_a_question_that_fails_is_an_error() -> None:
    def fails() -> None:
        raise PermissionError(13, "Permission denied", "/x")

    with pytest.raises(OSError, match="Permission denied"):
        patience.answers({"a": fails}, 60)


def test_long_answers_are_read_to_their_end() -> None:
    assert patience.answers({"a": lambda: "x" * 1000000, "b": lambda: [1]}, 60) == {
        "a": "x" * 1000000,
        "b": [1],
    }


def test_who_waits_for_the_output_waits_for_no_question_that_hangs() -> None:
    program = (
        "import os, sys, time\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "from patience import answers\n"
        "os.kill = lambda *words: None\n"  # as if it hung in the kernel
        "print(answers({'hangs': lambda: time.sleep(300), 'works': lambda: 1}, 0.2))"
    )
    folder = str(Path(patience.__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", program, folder], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == "{'works': 1}\n"


def test_a_question_whose_process_was_ended_is_an_error() -> None:
    with pytest.raises(OSError, match="the process that asks was ended"):
        patience.answers({"a": lambda: os.kill(os.getpid(), signal.SIGKILL)}, PATIENCE)


def test_a_question_that_hangs_holds_no_lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    monkeypatch.setattr(
        os, "kill", lambda process, _signal: left.append(process)
    )  # as if it hung in the kernel
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert patience.answers({"hangs": lambda: time.sleep(PATIENCE)}, 0.2) == {}
    try:
        with (tmp_path / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        monkeypatch.undo()
        [process] = left
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
