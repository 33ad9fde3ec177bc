# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host under test, and processes that look at it."""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pynvml

from lab.nvmlsim.install import GUEST


class Host:
    """A simulated host and the command that plays what happens to it."""

    def __init__(self, directory: Path, library: Path) -> None:
        self.directory = directory
        self.library = library
        self.log = directory / "calls.log"

    def simgpu(self, *words: object, check: bool = True) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(GUEST / "simgpu.py"), *map(str, words)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done

    def control(self, command: str, *words: str) -> None:
        """Programs that simgpu calls, without its device nodes."""
        text = ctypes.create_string_buffer(512)
        arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        failed = pynvml.nvmlLib.nvmlsim_control(
            command.encode(), len(words), arguments, text, ctypes.c_size_t(512)
        )
        assert not failed, text.value.decode()

    def set(self, target: int | str, *pairs: str) -> None:
        """simgpu set, without a process of its own."""
        for pair in pairs:
            key, _, value = pair.partition("=")
            self.control("set", str(target), key, value)

    def status(self) -> dict[str, Any]:
        return json.loads(self.simgpu("status", "--json").stdout)

    def calls(self) -> list[tuple[str, str, int]]:
        """Return the call log: function, kind, result."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        return [(name, kind, int(code)) for _, name, kind, code in (line.split() for line in lines)]


def in_child(function: Callable[[], Any], uid: int | None = None) -> Any:
    """Return what the function returns in a forked process, which may first become another user."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            if uid is not None:
                os.setgroups([])
                os.setgid(uid)
                os.setuid(uid)
            os.write(writer, json.dumps(function()).encode())
            os._exit(0)
        except BaseException as error:
            os.write(writer, json.dumps(repr(error)).encode())
            os._exit(1)
    os.close(writer)
    with os.fdopen(reader, encoding="utf-8") as answer:
        text = answer.read()
    os.waitpid(pid, 0)
    return json.loads(text)
