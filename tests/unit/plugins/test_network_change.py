"""A change of the network is made, kept or taken back, whatever happens in between."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._network import files
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io import change, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.io.read import NetworkError
from ansible_collections.gpufarm.cluster.plugins.module_utils._network.request import parse

BOND = files.render([parse({"name": "bond0", "members": ["eth1", "eth2"], "mtu": 9000})])
OTHER = files.render([parse({"name": "bond0", "members": ["eth1"], "mode": "802.3ad"})])
LACP = files.render([parse({"name": "bond0", "members": ["eth1", "eth2"], "mode": "802.3ad"})])
PLAIN = files.render([parse({"name": "eth1", "mtu": 9000})])
VLAN = {**BOND, **files.render([parse({"name": "v5", "vlan": 5, "over": "bond0"})])}


class Machine:
    """Programs that are called, and those of them that fail."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ran: list[str] = []
        self.broken: tuple[str, ...] = ()
        self.there = {"eth0", "eth1", "eth2"}
        self.running = True

    def run(self, *words: str) -> str:
        line = " ".join(words)
        self.ran.append(line)
        if line.startswith(self.broken or ("nothing",)):
            raise NetworkError(f"{line} failed.")
        return ""

    def files(self) -> dict[str, str]:
        return {path.name: path.read_text() for path in self.folder.iterdir()}


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    folder, state = tmp_path / "network", tmp_path / "state"
    folder.mkdir()
    found = Machine(folder)
    monkeypatch.setattr(files, "FOLDER", str(folder))
    monkeypatch.setattr(change, "STATE", state)
    monkeypatch.setattr(change, "PENDING", state / "unconfirmed.json")
    monkeypatch.setattr(change, "FORMER_MTU", state / "mtu.json")
    monkeypatch.setattr(change, "run", found.run)
    monkeypatch.setattr(change, "_is_there", lambda name: name in found.there)
    monkeypatch.setattr(read, "is_active", lambda unit: found.running)
    monkeypatch.setattr(read, "links", lambda: [{"ifname": name, "mtu": 1500} for name in found.there])
    return found


def test_a_change_that_is_confirmed_stays(machine: Machine) -> None:
    change.start(BOND, 60)
    assert machine.files() == {}
    timers = [line for line in machine.ran if line.startswith("systemd-run")]
    assert [line.rpartition(" ")[2] for line in timers] == ["restore", "apply"]
    assert "--on-active=62s" in timers[0]
    change.apply()
    change.confirm()
    assert machine.files() == BOND
    assert not change.restore()
    assert machine.files() == BOND


def test_a_change_that_is_not_confirmed_goes_back(machine: Machine) -> None:
    (machine.folder / "10-other.network").write_text("mine")
    change.start(BOND, 60)
    change.apply()
    assert change.restore()
    assert machine.files() == {"10-other.network": "mine"}
    with pytest.raises(NetworkError, match="not confirmed in time; the former configuration is back"):
        change.confirm()


def test_the_timer_of_a_change_that_went_back_early_is_not_in_the_way(machine: Machine) -> None:
    change.start(BOND, 60)
    change.apply()
    change.restore()
    machine.ran.clear()
    change.start(BOND, 60)
    stopped = machine.ran.index("systemctl stop gpufarm-network-deadline.timer")
    assert machine.ran[stopped + 3].startswith(
        "systemd-run --quiet --collect --unit=gpufarm-network-deadline "
    )


def test_a_change_that_is_not_made_cannot_be_confirmed(machine: Machine) -> None:
    change.start(BOND, 60)
    with pytest.raises(NetworkError, match="not made yet"):
        change.confirm()
    assert change.restore()


def test_a_second_change_waits_for_the_first(machine: Machine) -> None:
    change.start(BOND, 60)
    with pytest.raises(NetworkError, match="not confirmed yet: it goes back by itself"):
        change.start({}, 60)


@pytest.mark.parametrize("step", ["restore", "apply"])
def test_nothing_changes_without_a_timer(machine: Machine, step: str) -> None:
    machine.broken = ("systemd-run",)
    with pytest.raises(NetworkError):
        change.start(BOND, 60)
    machine.broken = ()
    change.apply()
    assert machine.files() == {}


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.parametrize("unit", ["gpufarm-network-deadline", "gpufarm-network-change"])
def test_a_run_that_is_killed_leaves_no_change_without_a_timer(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, unit: str
) -> None:
    def run(*words: str) -> str:
        if words[0] == "systemd-run" and f"--unit={unit}" in words:
            raise Killed
        return machine.run(*words)

    monkeypatch.setattr(change, "run", run)
    with pytest.raises(Killed):
        change.start(BOND, 60)
    deadline = any("--unit=gpufarm-network-deadline" in line for line in machine.ran)
    assert deadline or not change.PENDING.exists()
    monkeypatch.setattr(change, "run", machine.run)
    if deadline:
        change.restore()
    change.start(BOND, 60)


def test_going_back_does_all_that_it_can_and_is_tried_again(machine: Machine) -> None:
    change.start(VLAN, 60)
    change.apply()
    machine.there |= {"bond0", "v5"}
    machine.broken = ("ip link delete",)
    machine.ran.clear()
    with pytest.raises(NetworkError, match=r"dev bond0 failed\. ip link delete dev v5"):
        change.restore()
    assert machine.files() == {}
    assert "networkctl reload" in machine.ran
    machine.broken = ()
    assert change.restore()
    assert not change.restore()


def test_at_boot_only_the_files_go_back(machine: Machine) -> None:
    change.start(BOND, 60)
    change.apply()
    machine.ran.clear()
    machine.running = False
    assert change.restore()
    assert machine.files() == {}
    assert machine.ran == []


def made(machine: Machine, wanted: dict[str, str]) -> list[str]:
    """Make and keep a change; return the programs of ip that it calls."""
    change.start(wanted, 60)
    machine.ran.clear()
    change.apply()
    change.confirm()
    return [line for line in machine.ran if line.startswith("ip ")]


@pytest.fixture
def full_disk() -> Iterator[None]:
    """Let no file grow."""
    former = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, former[1]))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, former)


@pytest.mark.usefixtures("full_disk")
def test_a_full_disk_is_told_before_any_change(machine: Machine, tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too large") as told:
        change.start(BOND, 60)
    assert told.value.filename == str(tmp_path / "state" / "mtu.json")
    assert machine.files() == {}
    assert machine.ran == []
    assert not change.restore()


def test_each_step_is_on_the_disk_before_the_next(
    machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A power cut must not keep the new files and lose what leads back, nor the reverse."""
    pending = tmp_path / "state" / "unconfirmed.json"
    seen: list[tuple[str, bool, bool]] = []

    def fsync(descriptor: int) -> None:
        path = Path(f"/proc/self/fd/{descriptor}").resolve()
        if path.is_dir():
            seen.append((path.name, pending.exists(), bool(machine.files())))

    monkeypatch.setattr(os, "fsync", fsync)
    change.start(BOND, 60)
    assert seen == [("state", True, False)]
    change.apply()
    assert seen[1:] == [("network", True, True)]
    change.confirm()
    assert seen[2:] == [("state", False, True)]
    change.start({}, 60)
    change.apply()
    change.restore()
    assert seen[-2:] == [("network", True, True), ("state", False, True)]


def test_devices_are_made_anew_only_if_they_differ(machine: Machine) -> None:
    assert made(machine, BOND) == []
    machine.there |= {"bond0"}
    assert made(machine, VLAN) == []
    assert made(machine, LACP) == ["ip link delete dev bond0"]
    assert made(machine, OTHER) == ["ip link set dev eth2 nomaster"]


def test_networkd_configures_each_interface_anew_once(machine: Machine) -> None:
    """It does that by itself for files that differ, and members of a bond that is made anew have the same."""
    made(machine, BOND)
    assert not [line for line in machine.ran if "reconfigure" in line]
    machine.there |= {"bond0"}
    made(machine, LACP)
    assert {"networkctl reconfigure eth1", "networkctl reconfigure eth2"} <= {*machine.ran}


def test_an_interface_gets_its_former_mtu_back(machine: Machine) -> None:
    assert made(machine, PLAIN) == []
    assert made(machine, {}) == ["ip link set dev eth1 mtu 1500"]
