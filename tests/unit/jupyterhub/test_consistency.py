"""The check says whatever does not agree: the file, what runs, device rules, and who uses slices."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from gpufarm_hub.sharing import consistency
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.slices import Gpus, Slice
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.spawning import engines, mps, units

ALICE, BOB = units.name_of("alice/"), units.name_of("bob/")
SLICES = [Slice(f"MIG-{number}", "1g.10gb", 0, number, 0, 10 << 30) for number in (7, 8)]


@dataclass
class Machine:
    path: Path
    slices: list[Slice] = field(default_factory=lambda: list(SLICES))
    reach: dict[str, frozenset[str]] = field(default_factory=dict)
    used: dict[str, frozenset[int]] = field(default_factory=dict)
    processes: dict[str, frozenset[int]] = field(default_factory=dict)

    def start(self, owner: str, notebooks: int = 1) -> None:
        unit = units.name_of(owner)
        request = SliceRequest(owner, "1g.10gb", 1, Limit("x"), {}, notebooks)
        lease = Leases(self.path).take(request, unit, self.slices)
        self.reach[unit] = frozenset([lease.uuids])  # type: ignore[union-attr]

    def problems(self) -> str:
        return "; ".join(consistency.problems(self.path))


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path / "leases.json")
    monkeypatch.setattr(engines, "IN_USE", tmp_path / "engines")
    monkeypatch.setattr(consistency, "read_gpus", lambda: Gpus(made.slices, frozenset({0})))
    monkeypatch.setattr(consistency, "processes", lambda uuids: made.used)
    monkeypatch.setattr(units, "reach", lambda: made.reach)
    monkeypatch.setattr(units, "is_over", lambda unit: unit not in made.reach)
    monkeypatch.setattr(units, "processes", lambda unit: made.processes.get(unit, frozenset()))
    made.start("alice/")
    made.start("bob/")
    return made


def test_what_agrees(machine: Machine) -> None:
    machine.used = {"MIG-7": frozenset({1}), "MIG-8": frozenset()}
    machine.processes = {ALICE: frozenset({1, 2})}
    assert machine.problems() == ""


def test_the_multi_process_service_may_use_a_slice(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.used = {"MIG-7": frozenset({1, 9}), "MIG-8": frozenset({8})}
    machine.processes = {ALICE: frozenset({1, 2})}
    monkeypatch.setattr(mps, "is_service", lambda pid: pid == 9)
    assert machine.problems() == f"process 8 uses MIG-8 of bob/ and is not in {BOB}"


def test_nothing_is_asked_where_nothing_runs(machine: Machine) -> None:
    machine.path.unlink()
    machine.reach = {ALICE: frozenset()}
    assert machine.problems() == ""


def test_what_was_found_in_a_hub_whose_file_was_removed(machine: Machine) -> None:
    """Two notebooks had one slice, and the check found nothing."""
    machine.path.unlink()
    machine.reach[BOB] = machine.reach[ALICE]
    assert machine.problems() == (
        f"{ALICE} can open MIG-7, its lease has none; {BOB} can open MIG-7, its lease has none; "
        f"{ALICE} and {BOB} can all open MIG-7"
    )


def test_a_damaged_file_hides_nothing(machine: Machine) -> None:
    machine.path.write_text("{")
    found = machine.problems()
    assert "leases.json is damaged" in found and f"{BOB} can open MIG-8, its lease has none" in found


def test_each_difference_is_told(machine: Machine) -> None:
    machine.slices = SLICES[1:]
    assert "alice/ holds MIG-7, which is gone" in machine.problems()
    machine.slices = SLICES
    del machine.reach[ALICE]
    assert machine.problems() == f"alice/ holds MIG-7, but {ALICE} does not run"
    machine.reach[ALICE] = frozenset()
    assert machine.problems() == f"{ALICE} can open none, its lease has MIG-7"
    machine.reach[ALICE] = frozenset({"MIG-7", "/dev/nvidia5"})
    assert machine.problems() == f"{ALICE} can open MIG-7,a slice that is gone, its lease has MIG-7"


def test_a_slice_that_a_process_of_somebody_else_uses(machine: Machine) -> None:
    machine.used = {"MIG-7": frozenset({1, 3})}
    machine.processes = {ALICE: frozenset({1}), BOB: frozenset({3})}
    assert machine.problems() == f"process 3 uses MIG-7 of alice/ and is not in {ALICE}"


def test_a_slice_that_is_leased_twice(machine: Machine) -> None:
    text = (
        machine.path.read_text()
        .replace('"MIG-8"', '"MIG-7"')
        .replace('"gpu_instance": 8', '"gpu_instance": 7')
    )
    machine.path.write_text(text)
    assert "alice/ and bob/ all hold MIG-7" in machine.problems()


def test_notebooks_that_share_a_slice_agree(machine: Machine) -> None:
    machine.slices.append(Slice("MIG-9", "1g.10gb", 0, 9, 0, 10 << 30))
    for owner in ("carol/", "dave/"):
        machine.start(owner, notebooks=2)
    carol, dave = units.name_of("carol/"), units.name_of("dave/")
    machine.used = {"MIG-9": frozenset({4, 5})}
    machine.processes = {carol: frozenset({4}), dave: frozenset({5})}
    assert machine.problems() == ""
    machine.used = {"MIG-9": frozenset({6})}
    assert machine.problems() == f"process 6 uses MIG-9 of carol/ and dave/ and is not in {carol} and {dave}"
    machine.used = {}
    erin = units.name_of("erin/")
    content = json.loads(machine.path.read_text())
    content["leases"]["erin/"] = {**content["leases"]["dave/"], "unit": erin}
    machine.path.write_text(json.dumps(content))
    machine.reach[erin] = machine.reach[dave]
    assert machine.problems() == (
        f"carol/ and dave/ and erin/ all hold MIG-9; {carol} and {dave} and {erin} can all open MIG-9"
    )
