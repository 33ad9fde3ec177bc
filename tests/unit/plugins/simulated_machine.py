"""Control and inspect a machine with simulated GPUs, from outside NVML."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pynvml
import pytest

from lab.nvmlsim import build
from lab.nvmlsim.install import GUEST

ROOT = Path(__file__).resolve().parents[3]


class Machine:
    """A machine whose GPUs, driver and programs a test moves from outside."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def simgpu(self, *words: object) -> str:
        """Play what happens to the GPUs: `simgpu --help` tells what can."""
        command = [sys.executable, str(GUEST / "simgpu.py"), *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    def control(self, command: str, *words: str) -> None:
        """Do what simgpu does, without a process of its own."""
        text = ctypes.create_string_buffer(512)
        arguments = (ctypes.c_char_p * len(words))(*(word.encode() for word in words))
        failed = pynvml.nvmlLib.nvmlsim_control(
            command.encode(), len(words), arguments, text, ctypes.c_size_t(512)
        )
        assert not failed, text.value.decode()

    @property
    def state(self) -> bytes:
        """All of the machine; set it to go back to what was."""
        return (self.directory / "state").read_bytes()

    @state.setter
    def state(self, state: bytes) -> None:
        (self.directory / "state").write_bytes(state)

    def writes(self) -> list[str]:
        """Return the calls that changed something, in order."""
        log = self.directory / "calls.log"
        lines = [line.split() for line in (log.read_text() if log.exists() else "").splitlines()]
        return [name for _pid, name, kind, _code in lines if kind == "write"]


def prepare(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """Let the NVML binding of this process talk to a machine in a directory; the caller counts as root."""
    library = build(ROOT / ".work" / "nvmlsim")
    monkeypatch.setenv("NVMLSIM_STATE", str(directory))
    monkeypatch.setenv("NVMLSIM_LIBRARY", str(library))
    monkeypatch.setenv("NVMLSIM_UID", "0")
    monkeypatch.setenv("NVMLSIM_LOG", str(directory / "calls.log"))
    # No nvidia-modprobe: a test makes no device nodes on the machine that it runs on.
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})
    return Machine(directory)
