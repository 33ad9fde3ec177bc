"""Services that may be stopped: which processes on GPUs are theirs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import services
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.services import Services
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu, GpuError, Process
from mig_geometry import gpu


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Gpu:
    """A GPU without MIG mode that a unit's process, a user's process and one that has just ended use."""
    groups = {10: "0::/system.slice/dcgm.service", 20: "0::/user.slice/user-1000.slice/session-1.scope"}
    for pid, group in groups.items():
        (tmp_path / str(pid)).mkdir()
        (tmp_path / str(pid) / "cgroup").write_bytes(
            group.encode() + b"/\xff\n"
        )  # users choose names below theirs
    monkeypatch.setattr(services, "PROCESSES", tmp_path)
    processes = tuple(Process(pid, "python3", None, None) for pid in (10, 20, 30))
    return gpu(mig_enabled=False, mig_pending=False, processes=processes)


def test_the_processes_of_units_are_known_by_their_control_groups(machine: Gpu, tmp_path: Path) -> None:
    assert Services(["dcgm.service", "other.service"], tmp_path).processes([machine]) == {10}
    assert Services([], tmp_path).processes([machine]) == frozenset()


def test_only_processes_that_will_be_stopped_do_not_keep_the_mode(machine: Gpu) -> None:
    request = parse_flavor("2x 3g.40gb")
    assert plan_flavor(machine, request, freed={10, 20, 30}).mode is True
    with pytest.raises(GpuError, match=r"used by python3 \(PID 20\), python3 \(PID 30\): stop that"):
        plan_flavor(machine, request, freed={10})


def test_a_machine_without_systemd_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GpuError, match="as there is no systemctl here"):
        Services(["dcgm.service"], tmp_path).stop()
