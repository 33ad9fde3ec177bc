"""A machine with simulated GPUs, which the code under test reaches through the unmodified NVML binding."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from simulated_machine import Machine, prepare


@pytest.fixture
def make_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Machine]:
    """Make a machine from GPU models; the caller of NVML counts as root."""
    machine = prepare(tmp_path, monkeypatch)

    def make(*models: str) -> Machine:
        machine.control("init", "", "", *models)
        return machine

    return make
