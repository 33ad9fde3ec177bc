"""Notebooks that share a slice find its MPS, which gives each program a part of the memory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Lease
from gpufarm_hub.sharing.shared import SharedProfile, read
from gpufarm_hub.sharing.slices import GpuQueryError, Gpus, Slice
from gpufarm_hub.spawning import mps
from gpufarm_hub.spawning.systemd_spawner import SystemdSliceSpawner

FAKE = Path(__file__).parents[3] / "molecule" / "jupyterhub" / "files" / "nvidia-cuda-mps-control"
PIECES = [Slice(f"MIG-{number}", "1g.10gb", 0, number, 0, 9728 << 20) for number in (7, 8)]
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="-multiuser-server is for root")


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write the settings of a hub whose students share slices by MPS."""
    entry = {"profile": "1g.10gb", "notebooks": 4, "groups": ["students"], "mps": True}
    path = tmp_path / "settings.json"
    path.write_text(json.dumps({"shared_slices": [entry]}))
    whole = Slice("GPU-1", "NVIDIA A30", 1, None, None, 24 << 30)
    monkeypatch.setattr(mps, "read_gpus", lambda: Gpus([*PIECES, whole], frozenset({0, 1})))
    return path


@pytest.fixture
def daemon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[subprocess.Popen[bytes]]:
    """Run the control daemon."""
    monkeypatch.setattr(mps, "PROGRAM", str(FAKE))
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", PIECES[0].uuid)
    with subprocess.Popen([FAKE, "-f", "-multiuser-server"]) as process:
        yield process
        process.kill()


def spawner(notebooks: int, pieces: list[Slice], *, by_mps: bool = True) -> SystemdSliceSpawner:
    made = SystemdSliceSpawner.__new__(SystemdSliceSpawner)
    entry = SharedProfile("1g.10gb", 4, frozenset({"students"}), by_mps)
    made.desk = Desk.__new__(Desk)
    object.__setattr__(made.desk, "shared", [entry])
    made._lease = (
        Lease("ada/", "a.service", tuple(pieces), "", "many", notebooks=notebooks) if pieces else None
    )
    return made


def test_a_notebook_that_shares_its_slice_by_mps_has_the_service_of_that_slice() -> None:
    pieces = spawner(4, PIECES[:1])._mps_pieces()
    properties = mps.properties(pieces)
    assert properties["Wants"] == properties["After"] == ["jupyterhub-mps@MIG-7.service"]
    assert properties["BindPaths"] == ["-/run/jupyterhub-mps/MIG-7:/tmp/nvidia-mps"]


@pytest.mark.parametrize(
    "made",
    [spawner(1, PIECES[:1]), spawner(4, PIECES), spawner(4, []), spawner(4, PIECES[:1], by_mps=False)],
    ids=["alone", "several slices", "no slice", "in turns"],
)
def test_another_notebook_has_none(made: SystemdSliceSpawner) -> None:
    assert mps.properties(made._mps_pieces()) == {}


@AS_ROOT
@pytest.mark.parametrize(
    ("uid", "command", "is_one"),
    [(0, "nvidia-cuda-mps", True), (1001, "nvidia-cuda-mps", False), (0, "nvidia-cuda-mp", False)],
)
def test_a_process_of_the_service_is_one_of_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, command: str, is_one: bool
) -> None:
    monkeypatch.setattr(mps, "PROC", tmp_path)
    (tmp_path / "42").mkdir()
    (tmp_path / "42" / "comm").write_text(f"{command}\n")
    os.chown(tmp_path / "42", uid, uid)
    assert mps.is_service(42) is is_one and not mps.is_service(43)


def test_in_turns_is_what_an_entry_says_that_says_nothing() -> None:
    entry = {"profile": "1g.10gb", "notebooks": 4, "groups": ["students"]}
    assert [one.mps for one in read([{**entry, "mps": text} for text in ("no", "False", "yes", "1")])] == [
        False,
        False,
        True,
        True,
    ]
    assert [one.mps for one in read([entry, {**entry, "mps": True}, {**entry, "mps": False}])] == [
        False,
        True,
        False,
    ]


def test_each_notebook_counts_as_one_program(settings: Path) -> None:
    assert mps.limit_mib(settings, "MIG-7") == 2432


@pytest.mark.parametrize("uuid", ["MIG-9", "GPU-1", "", "../x"])
def test_a_slice_that_nobody_may_share_has_no_limit(settings: Path, uuid: str) -> None:
    with pytest.raises(mps.MpsError, match="no slice that may be shared"):
        mps.limit_mib(settings, uuid)


@AS_ROOT
def test_the_daemon_is_told_as_soon_as_it_listens(daemon: subprocess.Popen[bytes]) -> None:
    mps.set_limit(2432)
    asked = subprocess.run(
        [FAKE], input="get_default_device_pinned_mem_limit 0\n", text=True, capture_output=True
    )
    assert asked.stdout == "2G\n" and daemon.poll() is None


def test_a_daemon_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mps, "PROGRAM", str(FAKE))
    monkeypatch.setenv("CUDA_MPS_PIPE_DIRECTORY", str(tmp_path))
    with pytest.raises(mps.MpsError, match="limit 1M: Cannot find MPS control daemon"):
        mps.set_limit(1, patience=0)


@pytest.mark.parametrize("error", [GpuQueryError("no driver"), OSError("gone")])
def test_the_command_ends_with_the_reason(
    settings: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fail() -> Gpus:
        raise error

    monkeypatch.setattr(mps, "read_gpus", fail)
    with pytest.raises(SystemExit) as ended:
        mps.main(str(settings), "MIG-7")
    assert ended.value.code == str(error)
