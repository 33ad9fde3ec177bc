# SPDX-License-Identifier: GPL-3.0-or-later
"""Releases of nvidia-ml-py, which lay out structs as NVIDIA does, on simulated GPUs."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from machine import Machine

LIFE = Path(__file__).with_name("life.py")


def test_a_gpu_lives_through_every_release(machine: Machine, binding: Path) -> None:
    machine.simgpu("init", "a100-80gb")
    done = machine.run(sys.executable, LIFE, PYTHONPATH=str(binding))
    assert not done.returncode, done.stderr
    seen = json.loads(done.stdout)
    uuid = seen.pop("uuid")
    assert uuid.startswith("MIG-")
    assert seen == {
        "name": "NVIDIA A100-SXM4-80GB",
        "before": [0, 0],
        "activation": 0,
        "profile": "MIG 3g.40gb",
        "instances": [1, 4, 4],
        "memory": 40192,
        "same": True,
        "in_use": True,
        "after": 0,
    }
    assert machine.status()["slices"] == []
