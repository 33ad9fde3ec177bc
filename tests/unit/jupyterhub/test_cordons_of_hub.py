"""The hub gives out no GPU and no slice that is cordoned, by files that the command of the role writes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.cordon import cordon
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder as files
from gpufarm_hub.sharing import cordons
from gpufarm_hub.sharing.health import Verdicts
from gpufarm_hub.sharing.slices import GpuQueryError, read_gpus
from hub_process import Browser, HubProcess, slices
from test_slices import T4, FakeNvml

WHY = "cordoned by health since 2026-11-25T10:00:00Z: xid: 48"


def write(folder: Path, uuid: str) -> None:
    files.write(cordon(uuid, "xid: 48", "2026-11-25T10:00:00Z", "health"), folder)


def test_the_hub_reads_what_the_command_writes(tmp_path: Path) -> None:
    assert cordons.read(tmp_path / "none") == {}
    write(tmp_path, "GPU-1")
    write(tmp_path, "MIG-7")
    assert cordons.read(tmp_path) == {"GPU-1": WHY, "MIG-7": WHY}
    assert cordons.FOLDER == files.FOLDER


def test_what_cannot_be_read_is_a_cordon(tmp_path: Path) -> None:
    (tmp_path / "GPU-1.json").write_text("{")
    (tmp_path / "GPU-2.json").write_text("[]")
    (tmp_path / "GPU-3.json").mkdir()
    (tmp_path / "GPU-4.json").symlink_to("GPU-1.json")
    (tmp_path / "GPU-5.json").write_bytes(b"\xff")
    os.mkfifo(tmp_path / "GPU-6.json")
    (tmp_path / ".GPU-7.json.new").write_text("")
    (tmp_path / "GPU-7.json").write_text("[" * 100_000)
    (tmp_path / "GPU-8").write_text("")
    assert cordons.read(tmp_path) == {
        **{f"GPU-{n}": f"cordoned by the damaged file {tmp_path}/GPU-{n}.json" for n in range(1, 8)},
        "GPU-8": f"cordoned by the damaged file {tmp_path}/GPU-8",
    }
    before = len(list(Path("/proc/self/fd").iterdir()))
    cordons.read(tmp_path)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_slices_of_a_cordoned_gpu_are_there_and_given_to_nobody() -> None:
    found = read_gpus(FakeNvml(), Verdicts, lambda: {"GPU-a100": WHY, "GPU-of-another-machine": WHY})
    assert found.offered == [T4] and len(found.withheld) == len(found.cordons) == 2
    assert found.reasons == [f"GPU 0 is {WHY}"] and not found.problems
    assert found.all_answered and not any(map(found.is_gone, found.slices))


def test_the_other_slices_of_a_gpu_are_given_out() -> None:
    one, other = read_gpus(FakeNvml(), Verdicts, dict).offered[:2]
    found = read_gpus(FakeNvml(), Verdicts, lambda: {one.uuid: WHY})
    assert found.withheld == [one] and other in found.offered
    assert found.reasons == [f"{one.uuid} is {WHY}"]


def test_a_gpu_that_is_unfit_and_cordoned_is_told_with_both_reasons() -> None:
    found = read_gpus(FakeNvml(), lambda: Verdicts({"GPU-t4": "xid: 48"}), lambda: {"GPU-t4": WHY})
    assert found.withheld == [T4] and len(found.reasons) == 2 and found.all_answered


def test_without_the_folder_being_readable_nothing_is_given_out(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(GpuQueryError, match="it is unknown which GPUs are cordoned"):
        read_gpus(FakeNvml(), Verdicts, lambda: cordons.read(tmp_path / "file"))


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.start()
    yield hub
    hub.kill()


def test_users_are_told_how_many_slices_are_cordoned(process: HubProcess) -> None:
    process.partition(slices(2))
    alice, bob = Browser(process, "alice"), Browser(process, "bob")
    file = process.folder / "cordoned.json"
    file.write_text(json.dumps({"MIG-1g.10gb-0": f"GPU 0 is {WHY}"}))
    assert "1 slice is not available (1 cordoned)." in alice.page("/hub/spawn").text
    assert alice.spawn(gpu="1g.10gb").messages == []
    told = bob.api("GET", "/gpufarm/slices").json()
    assert [piece["uuid"] for piece in told["slices"]] == ["MIG-1g.10gb-1"]
    assert (told["not_available"], told["cordoned"]) == ({"1g.10gb": 1}, {"1g.10gb": 1})
    assert told["problems"] == [f"GPU 0 is {WHY}"]
    # A notebook on a slice that is cordoned goes on.
    file.write_text(json.dumps({f"MIG-1g.10gb-{n}": f"GPU 0 is {WHY}" for n in range(2)}))
    assert "2 slices are not available (2 cordoned)." in Browser(process, "carol").page("/hub/spawn").text
    assert alice.running()
    alice.stop()
