"""Partitions are ready for programs when a change ends: their device nodes are there."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import nodes as mig_nodes
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from simulated_machine import Machine

# Makes the node that a capability file names, as the driver's program does.
MODPROBE = """#!/bin/sh
read -r _ minor < "$2"
: > "{nodes}/nvidia-cap$minor"
"""


def test_new_partitions_have_device_nodes(
    make_machine: Callable[..., Machine], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a30")
    capabilities, nodes, program = (tmp_path / name for name in ("capabilities", "dev", "nvidia-modprobe"))
    nodes.mkdir()
    instances = [f"gi{number}{below}" for number in range(15) for below in ("", "/ci0")]
    for minor, instance in enumerate(instances):
        file = capabilities / "gpu0/mig" / instance / "access"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"DeviceFileMinor: {minor}\n")
    program.write_text(MODPROBE.format(nodes=nodes))
    program.chmod(0o755)
    monkeypatch.setattr(mig_nodes, "CAPABILITIES", capabilities)
    monkeypatch.setattr(mig_nodes, "CAPABILITY_NODES", nodes)
    monkeypatch.setenv("PATH", str(tmp_path))
    with session.session() as nvml:
        plan = plan_flavor(nvml.gpus()[0], parse_flavor("4x 1g.6gb"))
        done = apply.apply(nvml, [plan])
    assert done.changed
    assert len(list(nodes.iterdir())) == 2 * 4
    assert set(mig_nodes.device_nodes(done.gpus).values()) == set(nodes.iterdir())
    assert not mig_nodes.missing_nodes(done.gpus)
