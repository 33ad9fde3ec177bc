# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated host for each test, used through the unmodified nvidia-ml-py binding."""

from __future__ import annotations

import ctypes
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pynvml
import pytest
from sim_host import Host

from lab.nvmlsim import build

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def library() -> Path:
    """The compiled library; kept in the checkout's ignored folder, so that the next run finds it."""
    return build(ROOT / ".work" / "nvmlsim")


@pytest.fixture
def make_host(library: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Host]]:
    """Make a host from GPU specs and initialise NVML on it; the caller of NVML counts as root."""
    directory = Path(tempfile.mkdtemp(prefix="nvmlsim-test-"))
    directory.chmod(0o755)
    monkeypatch.setenv("NVMLSIM_STATE", str(directory))
    monkeypatch.setenv("NVMLSIM_LIBRARY", str(library))
    monkeypatch.setenv("NVMLSIM_UID", "0")
    monkeypatch.setattr(pynvml, "nvmlLib", ctypes.CDLL(str(library)))
    monkeypatch.setattr(pynvml, "_nvmlGetFunctionPointer_cache", {})

    def make(*specs: str) -> Host:
        host = Host(directory, library)
        host.simgpu("init", *specs)
        pynvml.nvmlInit()
        return host

    yield make
    while True:
        try:
            pynvml.nvmlShutdown()
        except pynvml.NVMLError_Uninitialized:
            break
    shutil.rmtree(directory)


@pytest.fixture
def a100(make_host: Callable[..., Host]) -> Host:
    """A host with one A100 whose MIG mode is on."""
    host = make_host("a100-80gb")
    assert pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1) == pynvml.NVML_SUCCESS
    return host
