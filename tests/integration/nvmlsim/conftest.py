# SPDX-License-Identifier: GPL-3.0-or-later
"""Oracles of the simulator: independent programs of NVIDIA. Without them there is nothing to test,
so where CI is set their absence is a failure, and elsewhere a skip that says why."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import downloads
import pytest
from machine import Machine

from lab.nvmlsim import build


def had(fetch: Callable[[str], Path], name: str) -> Path:
    try:
        return fetch(name)
    except downloads.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(params=["bookworm", "trixie"], scope="session")
def smi(request: pytest.FixtureRequest) -> Path:
    """The nvidia-smi of each Debian release."""
    return had(downloads.nvidia_smi, request.param)


@pytest.fixture(params=list(downloads.BINDINGS), scope="session")
def binding(request: pytest.FixtureRequest) -> Path:
    """Each supported major version of the Python binding, as a directory for PYTHONPATH."""
    return had(downloads.binding, request.param)


@pytest.fixture(scope="session")
def library() -> Path:
    return build(downloads.CACHE.parent / "nvmlsim")


@pytest.fixture
def machine(tmp_path: Path, library: Path) -> Iterator[Machine]:
    """A host without GPUs until `simgpu init`; programs that compute on it end with the test."""
    made = Machine(tmp_path, library)
    yield made
    for gpu in made.status()["gpus"]:
        for process in gpu["processes"]:
            made.simgpu("process", "stop", process["pid"])
