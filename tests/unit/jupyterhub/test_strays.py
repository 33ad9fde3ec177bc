"""Which programs on a slice are ended before it is given to somebody."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from gpufarm_hub.people import accounts
from gpufarm_hub.sharing import devices, gpu_use, strays
from gpufarm_hub.sharing.devices import DeviceError
from gpufarm_hub.sharing.slices import GpuQueryError, Slice

WHOLE = Slice("GPU-1", "A100", 0, None, None, 1 << 30)
PIECE = Slice("MIG-1", "1g.10gb", 0, 7, 0, 1 << 30)


@pytest.fixture
def programs() -> Iterator[list[subprocess.Popen[bytes]]]:
    """A process that has /dev/full open, one that computes, and one that does neither."""
    with Path("/dev/full").open("rb") as node:
        given = (node, subprocess.DEVNULL, subprocess.DEVNULL)
        started = [subprocess.Popen(["sleep", "900"], stdin=stdin) for stdin in given]
    yield started
    for program in started:
        program.kill()
        program.wait()


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, programs: list[subprocess.Popen[bytes]]) -> None:
    used = {"MIG-1": frozenset([programs[1].pid, 2**22 + 1])}
    monkeypatch.setattr(gpu_use, "processes", lambda uuids: used)
    monkeypatch.setattr(devices, "own_nodes_of", lambda piece: [Path("/dev/full")])
    monkeypatch.setattr(accounts, "is_person", lambda uid: True)


@pytest.mark.usefixtures("machine")
def test_who_has_a_slice_open_or_computes_on_it_is_ended(programs: list[subprocess.Popen[bytes]]) -> None:
    ended = strays.end([PIECE])
    assert {(stray.pid, stray.command) for stray in ended} == {(one.pid, "sleep") for one in programs[:2]}
    assert [program.wait(5) for program in programs[:2]] == [-9, -9]
    assert programs[2].poll() is None


@pytest.mark.usefixtures("machine")
def test_programs_of_the_notebook_itself_go_on(programs: list[subprocess.Popen[bytes]]) -> None:
    ended = strays.end([PIECE], lambda: frozenset([programs[1].pid]))
    assert [stray.pid for stray in ended] == [programs[0].pid]
    assert programs[1].poll() is None


@pytest.mark.usefixtures("machine")
def test_programs_of_the_system_go_on(
    monkeypatch: pytest.MonkeyPatch, programs: list[subprocess.Popen[bytes]]
) -> None:
    monkeypatch.setattr(accounts, "is_person", lambda uid: False)
    assert strays.end([PIECE]) == []
    assert [program.poll() for program in programs] == [None] * 3


@pytest.mark.usefixtures("machine")
def test_a_slice_is_given_to_nobody_while_a_program_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strays.select, "select", lambda *_files: ([], [], []))
    with pytest.raises(DeviceError, match=r"process \d+ \(sleep\) uses a slice .* and does not end"):
        strays.end([PIECE])


def test_a_driver_that_does_not_answer_gives_no_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    def hung(uuids: object) -> None:
        raise GpuQueryError("the NVIDIA driver does not answer")

    monkeypatch.setattr(gpu_use, "processes", hung)
    with pytest.raises(DeviceError, match="does not answer"):
        strays.end([PIECE])


def test_other_slices_of_a_gpu_share_its_node(tmp_path: Path) -> None:
    files = tmp_path / "gpu0" / "mig" / "gi7" / "ci0"
    files.mkdir(parents=True)
    (files.parent / "access").write_text("DeviceFileMinor: 66\n")
    (files / "access").write_text("DeviceFileMinor: 67\n")
    own = [Path("/dev/nvidia-caps/nvidia-cap66"), Path("/dev/nvidia-caps/nvidia-cap67")]
    assert devices.own_nodes_of(PIECE, tmp_path) == own
    assert devices.own_nodes_of(WHOLE) == [Path("/dev/nvidia0")]
