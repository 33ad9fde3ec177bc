"""Modules that talk to NVML find the Python that has its binding."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import python
from ansible_collections.gpufarm.cluster.plugins.modules import (
    cdi_spec,
    gpu_health,
    gpu_info,
    gpu_validate,
    mig_partition,
)


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """The interpreters that modules were started anew with; the one of the role is installed."""
    found: list[str] = []

    def respawn(interpreter: str) -> None:
        found.append(interpreter)
        raise SystemExit

    installed = tmp_path / "python"
    installed.touch()
    monkeypatch.setattr(python, "GPU_PYTHON", str(installed))
    monkeypatch.setattr(python, "respawn_module", respawn)
    return found


@pytest.mark.parametrize("module", [cdi_spec, gpu_health, gpu_info, gpu_validate, mig_partition])
def test_a_module_goes_on_with_it_before_all_else(module: object, started: list[str]) -> None:
    with pytest.raises(SystemExit):
        module.main()  # type: ignore[attr-defined]  # without arguments, which it has not read yet
    assert started == [python.GPU_PYTHON]


def test_a_module_that_runs_with_it_stays(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", python.GPU_PYTHON)
    python.use_gpu_python()
    assert started == []


def test_where_it_is_not_installed_the_hosts_own_has_to_do(started: list[str]) -> None:
    Path(python.GPU_PYTHON).unlink()
    python.use_gpu_python()
    assert started == []


def test_a_module_is_started_anew_once(started: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python, "has_respawned", lambda: True)
    python.use_gpu_python()
    assert started == []
