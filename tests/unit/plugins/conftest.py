"""A machine with simulated GPUs, which the code under test reaches through the unmodified NVML binding."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path

import pynvml
import pytest
from simulated_machine import Machine

from lab.nvmlsim import build

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def make_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    """Make a machine from GPU models; the caller of NVML counts as root."""
    library = build(ROOT / ".work" / "nvmlsim")
    monkeypatch.setenv("NVMLSIM_STATE", str(tmp_path))
    monkeypatch.setenv("NVMLSIM_LIBRARY", str(library))
    monkeypatch.setenv("NVMLSIM_UID", "0")
    monkeypatch.setenv("NVMLSIM_LOG", str(tmp_path / "calls.log"))
    # No nvidia-modprobe: a test makes no device nodes on the machine that it runs on.
    monkeypatch.setenv("PATH", os.devnull)
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def make(*models: str) -> Machine:
        machine = Machine(tmp_path)
        machine.simgpu("init", *models)
        return machine

    return make
