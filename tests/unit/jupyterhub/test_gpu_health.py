"""Verdicts of gpufarm-health: nobody gets a critical GPU, somebody gets the others, old verdicts are none."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import report
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Finding
from gpufarm_hub.sharing import health
from gpufarm_hub.sharing.health import Verdicts
from gpufarm_hub.sharing.slices import Slice
from hub_process import Browser, HubProcess, slices

NOW = 1_800_000_000.0
HOT = Finding("temperature", "critical", "91 °C", gpu="GPU-hot")
FINDINGS = [
    Finding("gpu_count", "critical", "NVML tells of 2 GPU(s), 3 are expected."),  # of the machine
    Finding("gpu_responds", "ok", "It answers.", gpu="GPU-hot"),
    HOT,
    Finding("pcie_width", "critical", "8 lanes", gpu="GPU-hot"),
    Finding("gpu_responds", "ok", "It answers.", gpu="GPU-well"),
    Finding("temperature", "warning", "85 °C", gpu="GPU-well"),
    Finding("gpu_responds", "unknown", "nobody knows", gpu="GPU-odd"),
    Finding("gpu_responds", "critical", "It is lost.", gpu="GPU 3"),
]


class File:
    """The file of the verdicts on a machine."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "verdicts.json"
        self.path.write_text(report.verdicts(FINDINGS, NOW))

    def read(self, now: float = NOW + 60) -> Verdicts:
        return health.read(self.path, os.getuid(), lambda: now)


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path)


def test_what_is_critical_of_one_gpu_counts_for_that_gpu_only(file: File) -> None:
    assert file.read() == Verdicts({"GPU-hot": "temperature: 91 °C"})
    told = json.loads(file.path.read_text())["gpus"]
    assert {uuid: gpu["status"] for uuid, gpu in told.items()} == {
        "GPU-hot": "critical",
        "GPU-odd": "unknown",
        "GPU-well": "warning",
    }


@pytest.mark.parametrize(
    ("now", "unknown"),
    [
        (NOW - 50, ""),
        (NOW + 3600, ""),
        (NOW + 3660, "is 61 minutes old; look at gpufarm-health.timer"),
        (NOW - 600, "is -10 minutes old; look at gpufarm-health.timer"),
    ],
)
def test_old_verdicts_and_those_to_come_say_nothing(file: File, now: float, unknown: str) -> None:
    found = file.read(now)
    assert found.unknown.endswith(unknown) and bool(found.unknown) == bool(unknown)
    assert bool(found.critical) != bool(unknown)


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", "null", '{"time": 1800000000}', '{"time": "x", "gpus": {}}', "\udcff"],
)
def test_a_damaged_file_says_nothing(file: File, content: str) -> None:
    file.path.write_bytes(content.encode(errors="surrogateescape"))
    assert file.read() == Verdicts(unknown=f"{file.path} is damaged")


@pytest.mark.parametrize(
    "break_it",
    [
        lambda file: file.path.chmod(0o666),
        lambda file: file.path.chmod(0o664),
        lambda file: (file.path.unlink(), os.mkfifo(file.path)),
        lambda file: (file.path.rename(file.path.with_name("x")), file.path.symlink_to("x")),
        lambda file: (file.path.unlink(), file.path.mkdir()),
        lambda file: file.path.unlink(),
    ],
    ids=["others write", "a group writes", "pipe", "link", "folder", "missing"],
)
def test_a_file_that_others_could_have_made_says_nothing(
    file: File, break_it: Callable[[File], object]
) -> None:
    break_it(file)
    found = file.read()
    assert not found.critical and found.unknown.startswith(str(file.path))


def test_a_file_of_another_account_says_nothing(file: File) -> None:
    found = health.read(file.path, os.getuid() + 1, lambda: NOW)
    assert found == Verdicts(unknown=f"{file.path} is no file that only root can write")


def test_without_the_role_it_says_what_is_missing(tmp_path: Path) -> None:
    found = health.read(tmp_path / "verdicts.json")
    assert found.unknown == f"{tmp_path}/verdicts.json is missing; set up the role gpu_health"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.start()
    yield hub
    hub.kill()


def pieces(unfit: dict[int, str], process: HubProcess) -> None:
    """Two GPUs with two slices each, of which some GPUs are not fit for work."""
    well = slices(2)
    process.partition([*well, *(Slice(f"MIG-bad-{n}", "1g.10gb", 1, 7 + n, 0, 10 << 30) for n in range(2))])
    (process.folder / "unfit.json").write_text(json.dumps(unfit))


def test_users_get_healthy_slices_and_are_told_of_the_others(process: HubProcess) -> None:
    why = "GPU 1 is not fit for work: temperature: 91 °C"
    pieces({1: why}, process)
    alice, carol, dave, bob = (Browser(process, name) for name in ("alice", "carol", "dave", "bob"))
    form = alice.page("/hub/spawn").text
    assert "1g.10gb (10 GiB): 2 of 2 free" in form or "2 free" in form
    assert "2 slices are not available." in form
    assert "temperature" not in form
    for browser in (alice, carol):
        assert browser.spawn(gpu="1g.10gb").messages == []
    assert "You wait as number 1 of 1" in dave.spawn(gpu="1g.10gb").messages[0]
    seen: dict[str, Any] = alice.api("GET", "/gpufarm/slices").json()
    assert seen["not_available"] == {"1g.10gb": 2}
    assert not {"problems", "health_unknown"} & seen.keys()
    told = bob.api("GET", "/gpufarm/slices").json()
    assert {piece["uuid"] for piece in told["slices"]} == {"MIG-1g.10gb-0", "MIG-1g.10gb-1"}
    assert told["problems"] == [why]
    assert told["health_unknown"].endswith("is missing; set up the role gpu_health")
    pieces({}, process)  # repaired
    assert dave.spawn(gpu="1g.10gb").messages == []
    for browser in (alice, carol, dave):
        browser.stop()


def test_a_notebook_on_a_gpu_that_becomes_unfit_goes_on(process: HubProcess) -> None:
    pieces({}, process)
    alice, bob = Browser(process, "alice"), Browser(process, "bob")
    assert alice.spawn(gpu="1g.10gb").messages == []
    pieces({0: "GPU 0 is not fit for work: xid: 48", 1: "GPU 1 is not fit for work: xid: 48"}, process)
    told = bob.api("GET", "/gpufarm/slices").json()
    assert [one["user"] for piece in told["slices"] for one in piece["holders"]] == ["alice"]
    assert alice.running()
    carol = Browser(process, "carol")
    form = carol.page("/hub/spawn").text
    assert "This machine has no GPU slices at the moment. 4 slices are not available." in form
    alice.stop()
    pieces({}, process)


def test_users_keep_their_places_while_a_gpu_does_not_answer(process: HubProcess) -> None:
    """It may have been busy for some seconds, and the others wait for what it has."""
    process.partition([Slice("MIG-own", "2g.20gb", 1, 1, 0, 20 << 30), *slices(1)])
    alice, carol = Browser(process, "alice"), Browser(process, "carol")
    assert alice.spawn(gpu="2g.20gb").messages == []
    assert "You wait as number 1 of 1" in carol.spawn(gpu="2g.20gb").messages[0]
    mute = process.folder / "mute.json"
    mute.write_text("[1]")
    told = carol.queue()
    mute.unlink()
    assert (told.status_code, carol.queue().json()["position"]) == (200, 1)
    alice.stop()
    assert carol.spawn(gpu="2g.20gb").messages == []
    carol.stop()
    assert alice.spawn(gpu="1g.10gb").messages == []
    assert "You wait as number 1 of 1" in carol.spawn(gpu="1g.10gb").messages[0]
    process.partition([Slice("MIG-own", "2g.20gb", 1, 1, 0, 20 << 30)])
    assert carol.queue().status_code == 404
    alice.stop()
