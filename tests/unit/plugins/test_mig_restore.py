"""Restore at boot: partitions of a stored layout, a driver that is late, and a GPU that fails."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import restore
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import DriverNotRunning, Gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import boot, session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import Guarded
from simulated_machine import Machine

Make = Callable[..., Machine]


@pytest.fixture(autouse=True)
def no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "locked", contextlib.nullcontext)


def read() -> tuple[Gpu, ...]:
    with session.session() as nvml:
        return nvml.gpus()


def layout(gpu: Gpu) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(one), one.widths) for one in sorted(gpu.instances, key=lambda one: one.placement)]


def test_mode_places_and_compute_instances(make_machine: Make) -> None:
    make_machine("h100-80gb", "a30")
    first, second = read()
    stored = [
        {
            "gpu": first.uuid,
            "partitions": [
                {"profile": "1g.10gb", "start": 1, "compute_instances": ["1g.10gb"]},
                {"profile": "3g.40gb", "start": 4, "compute_instances": ["2c.3g.40gb", "1c.3g.40gb"]},
            ],
        },
        {"gpu": second.uuid, "partitions": []},
    ]
    assert restore.restore(stored) == []
    first, second = read()
    assert layout(first) == [("1g.10gb at 1", (1,)), ("3g.40gb at 4", (2, 1))]
    assert second.mig_enabled and not second.instances


def test_it_finds_its_own_work_done(make_machine: Make) -> None:
    machine = make_machine("a100-80gb")
    stored = [{"gpu": read()[0].uuid, "partitions": [{"profile": "7g.80gb", "start": 0}]}]
    assert restore.restore(stored) == []
    writes = machine.writes()
    assert restore.restore(stored) == []
    assert machine.writes() == writes


def test_one_gpu_that_fails_keeps_no_other_from_its_partitions(make_machine: Make) -> None:
    make_machine("a100-80gb", "a100-80gb")
    first, second = read()
    partitions = [{"profile": "7g.80gb", "start": 0}]
    stored = [
        {"gpu": "GPU-00000000-dead-dead-dead-000000000000", "partitions": partitions},
        {"gpu": first.uuid, "partitions": [{"profile": "9g.99gb", "start": 0}]},
        {"gpu": second.uuid, "partitions": partitions},
    ]
    gone, unknown = restore.restore(stored)
    assert "GPU-00000000-dead-dead-dead-000000000000" in gone
    assert "9g.99gb" in unknown
    first, second = read()
    assert layout(first) == []
    assert layout(second) == [("7g.80gb at 0", (7,))]


def test_a_driver_that_is_late_is_waited_for(make_machine: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make_machine("a100-80gb")
    machine.simgpu("driver", "unload")
    with pytest.raises(DriverNotRunning):
        boot.ask_at_boot(Guarded(), session.survey, 0)
    monkeypatch.setattr(time, "sleep", lambda _seconds: machine.simgpu("driver", "load"))
    assert len(boot.ask_at_boot(Guarded(), session.survey, 60).gpus) == 1


def test_a_comparison_tells_the_mode_of_each_gpu_as_a_layout_has_only_those_in_mig_mode(
    make_machine: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The record of the role has what is printed, and so notices that somebody has switched MIG mode on."""
    make_machine("a100-80gb", "a30")
    first, second = read()
    file = tmp_path / "mig.json"
    file.write_text(json.dumps({"layout": []}))
    monkeypatch.setattr(sys, "argv", ["gpufarm-mig", "--check", str(file)])
    assert restore.main() == 0
    off = f"{first.uuid} MIG mode off\n{second.uuid} MIG mode off\n"
    assert capsys.readouterr().out == off
    with session.session() as nvml:
        nvml.set_mig_mode(first.uuid, True)
    assert restore.main() == 0
    assert capsys.readouterr().out == off.replace("off", "on", 1)
