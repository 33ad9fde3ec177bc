# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ask about files on file systems that may hang: each question has a process that is left behind then."""

from __future__ import annotations

import json
import os
import select
import signal
import time
from collections.abc import Callable, Mapping
from typing import Any, NoReturn

# Seconds that a role waits; a file system that is mounted on demand needs some.
PATIENCE = 30.0


def answers(questions: Mapping[str, Callable[[], Any]], seconds: float) -> dict[str, Any]:
    """Return the answers that came in time, by the names of the questions.

    Args:
        questions: functions without arguments; what they return has to be something that JSON has.
        seconds: time for all of them, which are asked at once.

    Raises:
        OSError: a question could not be answered.
    """
    waiting: dict[int, tuple[str, int, bytes]] = {}
    for name, question in questions.items():
        reader, writer = os.pipe()
        process = os.fork()
        if process == 0:
            _answer(question, writer)
        os.close(writer)
        waiting[reader] = (name, process, b"")
    found = {}
    end = time.monotonic() + seconds
    while waiting and (left := end - time.monotonic()) > 0:
        for reader in select.select(list(waiting), [], [], left)[0]:
            name, process, before = waiting.pop(reader)
            text = os.read(reader, 65536)
            if text:
                waiting[reader] = (name, process, before + text)
                continue
            os.close(reader)
            os.waitpid(process, 0)
            if not before:  # such as by a user with whose rights it asked
                raise OSError("the process that asks was ended")
            said = json.loads(before)
            if "error" in said:
                raise OSError(said["error"])
            found[name] = said["answer"]
    for reader, (_name, process, _text) in waiting.items():
        # If it hangs in the kernel, it does not end by that, and nobody waits for it.
        os.kill(process, signal.SIGKILL)
        os.close(reader)
    return found


def _answer(question: Callable[[], Any], writer: int) -> NoReturn:
    """Answer in a process of its own.

    It holds nothing of the caller open: a shell waits for all that can write to its streams, and a lock is
    held as long as anybody has its file.
    """
    try:
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.closerange(3, writer)
        os.closerange(writer + 1, 1024)
        try:
            said = {"answer": question()}
        except (OSError, ValueError) as error:
            said = {"error": str(error)}
        text = json.dumps(said).encode()
        while text:
            text = text[os.write(writer, text) :]
    finally:
        os._exit(0)
