"""Notebooks that wait while the hub restarts are started again; idle slices of other machines end first."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from gpufarm_hub.sharing import keeper
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.keeping import Rules
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.spawning import units
from gpufarm_hub.store import JsonStore

NOBODY: frozenset[str] = frozenset()
ALICE = frozenset({"alice/"})


@dataclass
class FakeHub:
    """A hub with these servers, which starts what it is told to."""

    found: list[keeper.Server] = field(default_factory=list)
    started: list[str] = field(default_factory=list)
    stopped: list[str] = field(default_factory=list)
    asked: int = 0
    refuses: bool = False

    def servers(self) -> Iterator[keeper.Server]:
        self.asked += 1
        yield from self.found

    def start(self, owner: str) -> None:
        if self.refuses:
            raise OSError("HTTP Error 403: Forbidden")
        self.started.append(owner)

    def stop(self, owner: str) -> None:
        self.stopped.append(owner)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    monkeypatch.setattr(units, "resumable", lambda: [units.name_of("alice/")])
    monkeypatch.setattr(units, "cpu_seconds", lambda unit: 0.0)
    return Desk(
        Leases(tmp_path / "leases.json"),
        Notices(tmp_path / "notices.json"),
        JsonStore(tmp_path / "use.json"),
        tmp_path / "audit.jsonl",
        [],
    )


def resume(desk: Desk, hub: FakeHub, before: frozenset[str]) -> frozenset[str]:
    return keeper.resume(desk, hub, before)  # type: ignore[arg-type]


def server(ready: bool = False, **options: Any) -> keeper.Server:
    return keeper.Server("alice/", [], ready, 0, 0, **options)


def test_a_notebook_that_waits_alone_is_started_at_the_second_look(desk: Desk) -> None:
    hub = FakeHub()
    left = resume(desk, hub, NOBODY)
    assert (left, hub.started) == (ALICE, [])  # it may have been stopped a moment ago
    assert resume(desk, hub, left) == ALICE
    assert hub.started == ["alice/"]


def test_notebooks_that_wait_are_started_together(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    owners = frozenset(f"user{number}/" for number in range(4))
    monkeypatch.setattr(units, "resumable", lambda: [units.name_of(owner) for owner in owners])
    together = threading.Barrier(len(owners), timeout=20)

    class SlowHub(FakeHub):
        def start(self, owner: str) -> None:
            together.wait()  # fails when the others are not started meanwhile
            super().start(owner)

    hub = SlowHub()
    assert resume(desk, hub, owners) == owners
    assert {*hub.started} == owners


def test_a_notebook_of_which_the_hub_knows_is_left_alone(desk: Desk) -> None:
    hub = FakeHub([server()])
    assert resume(desk, hub, ALICE) == NOBODY
    assert hub.started == []


def test_a_hub_that_refuses_is_asked_again_later(desk: Desk) -> None:
    hub = FakeHub(refuses=True)
    assert resume(desk, hub, ALICE) == ALICE


def test_where_nothing_waits_the_hub_is_not_asked(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "resumable", list)
    hub = FakeHub()
    assert resume(desk, hub, ALICE) == NOBODY
    assert hub.asked == 0


@pytest.mark.parametrize(("gpu", "ends"), [(True, 600), (False, 6000)])
def test_a_slice_of_another_machine_is_one_too(desk: Desk, gpu: bool, ends: float) -> None:
    hub = FakeHub([server(ready=True, gpu=gpu)])
    rules = Rules(idle_gpu=600, idle=6000, warning=60)
    keeper.look(desk, hub, rules, False, 30)  # type: ignore[arg-type]
    assert desk.use.read()["notebooks"]["alice/"]["ends"] == ends
