"""A slice has one holder at most, whatever happens: races, crashes, new partitions."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import multiprocessing
import os
import signal
import tempfile
import time
from pathlib import Path

import pytest
from gpufarm_hub import clock, store
from gpufarm_hub.sharing import answers, turns
from gpufarm_hub.sharing.leases import Lease, Leases, NoSliceError
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.slices import Slice, count_by_profile
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.store import JsonStore, StoreError
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from lab.patience import PATIENCE


def mig(instance: int, profile: str = "1g.10gb", gpu: int = 0) -> Slice:
    return Slice(f"MIG-{gpu}-{instance}-{profile}", profile, gpu, instance, 0, 10 << 30)


SEVEN = [mig(instance) for instance in range(7, 14)]
MANY = Limit("many", slices=9)


class WaitError(Exception):
    """The owner waits now."""


def take(leases: Leases, owner: str, unit: str, profile: str, slices: list[Slice]) -> Lease:
    taken = leases.take(SliceRequest(owner, profile, 1, MANY, {}), unit, slices)
    if isinstance(taken, Lease):
        return taken
    raise WaitError(answers.waits(taken))


def free(leases: Leases, slices: list[Slice]) -> list[Slice]:
    return [piece for piece in slices if turns.has_seat(piece, leases.all(), 1)]


def test_first_free_slice_of_the_profile(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    slices = [mig(1, "3g.40gb"), mig(7), mig(8)]
    assert take(leases, "alice/", "a.service", "1g.10gb", slices).pieces[0] == slices[1]
    assert take(leases, "bob/", "b.service", "1g.10gb", slices).pieces[0] == slices[2]
    assert free(leases, slices) == [slices[0]]
    assert {lease.owner: lease.unit for lease in leases.all()} == {"alice/": "a.service", "bob/": "b.service"}


def test_setting_the_time_back_lets_nobody_overtake(tmp_path: Path) -> None:
    now = [1_000_000.0]
    leases = Leases(tmp_path / "leases.json", clock=lambda: now[0])
    take(leases, "alice/", "a", "1g.10gb", [mig(7)])
    for owner in ("bob/", "carol/"):
        leases.enter(SliceRequest(owner, "1g.10gb", 1, MANY, {}), [mig(7)])
        now[0] -= 300
    assert [place.ticket.owner for place in leases.queue([mig(7)])] == ["bob/", "carol/"]


def test_the_clock_of_the_queue_does_not_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    before = clock.epoch()
    assert abs(before - time.time()) < 60
    monkeypatch.setattr(time, "time", lambda: 0.0)
    assert 0 <= clock.epoch() - before < 60


def test_a_full_disk_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    leases = Leases(tmp_path / "leases.json")
    take(leases, "alice/", "a", "1g.10gb", [mig(7)])

    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(
            StoreError, match=r"leases\.json cannot be written: No space left on device"
        ) as no:
            leases.release("alice/")
    assert "cannot use its files at the moment" in no.value.jupyterhub_message
    assert [lease.owner for lease in leases.all()] == ["alice/"]
    assert leases.release("alice/")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["leases.json", "leases.json.lock"]


def test_a_lock_that_is_never_free_stops_nobody_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "PATIENCE", 0.1)
    path = tmp_path / "leases.json"
    with JsonStore(path).change(), pytest.raises(StoreError, match=r"another process has held .*\.lock for"):
        take(Leases(path), "alice/", "a", "1g.10gb", [mig(7)])
    take(Leases(path), "alice/", "a", "1g.10gb", [mig(7)])


def test_when_all_are_held_the_user_reads_why(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    take(leases, "alice/", "a", "1g.10gb", [mig(7)])
    with pytest.raises(WaitError, match=r"Not free yet: 1 GPU slice 1g\.10gb\. You wait as number 1 of 1"):
        take(leases, "bob/", "b", "1g.10gb", [mig(7)])
    with pytest.raises(NoSliceError, match=r"has no GPU slice 7g\.80gb any more"):
        take(leases, "bob/", "b", "7g.80gb", [mig(7)])


def test_two_servers_of_a_user_hold_two_slices(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    slices = [mig(7), mig(8)]
    first = take(leases, "alice/", "a", "1g.10gb", slices)
    second = take(leases, "alice/second", "a2", "1g.10gb", slices)
    assert first.pieces != second.pieces
    assert leases.release("alice/") == first
    assert leases.all() == [second]


def test_a_new_lease_of_an_owner_replaces_the_old_one(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    take(leases, "alice/", "a", "3g.40gb", [mig(1, "3g.40gb"), mig(7)])
    take(leases, "alice/", "a", "1g.10gb", [mig(1, "3g.40gb"), mig(7)])
    assert [lease.pieces[0].profile for lease in leases.all()] == ["1g.10gb"]


def test_an_owner_that_is_refused_keeps_nothing_new(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    with pytest.raises(NoSliceError):
        take(leases, "alice/", "a", "1g.10gb", [])
    assert leases.all() == [] and leases.release("alice/") is None


def test_whole_gpu_and_its_slices_exclude_one_another(tmp_path: Path) -> None:
    whole = Slice("GPU-0", "NVIDIA A100", 0, None, None, 80 << 30)
    other = Slice("GPU-1", "NVIDIA A100", 1, None, None, 80 << 30)
    leases = Leases(tmp_path / "leases.json")
    take(leases, "alice/", "a", "NVIDIA A100", [whole])
    assert free(leases, [whole, mig(7), other]) == [other]


def test_a_lease_outlives_the_partition_it_was_made_for(tmp_path: Path) -> None:
    """A new slice in the place of one that is still held has its device nodes, so it is not free."""
    leases = Leases(tmp_path / "leases.json")
    take(leases, "alice/", "a", "1g.10gb", [mig(7)])
    again = mig(7, "1g.20gb")
    assert free(leases, [again]) == []
    dropped = leases.drop(lambda lease: lease.pieces[0] != again)
    assert [lease.owner for lease in dropped] == ["alice/"]
    assert free(leases, [again]) == [again]


def test_a_damaged_file_is_an_error_and_not_an_empty_list(tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    path.write_text('{"alice/": ')
    with pytest.raises(StoreError, match=r"leases\.json is damaged \(not valid JSON: .*\); the hub takes"):
        Leases(path).all()
    with pytest.raises(StoreError):
        take(Leases(path), "bob/", "b", "1g.10gb", SEVEN)
    path.write_text("[]")
    with pytest.raises(StoreError, match="not a JSON object"):
        Leases(path).all()


def test_nobody_else_can_read_the_file(tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    take(Leases(path), "alice/", "a", "1g.10gb", SEVEN)
    assert path.stat().st_mode & 0o777 == 0o600


def test_what_fails_changes_nothing(tmp_path: Path) -> None:
    store = JsonStore(tmp_path / "store.json")
    with store.change() as content:
        content["a"] = 1
    with pytest.raises(RuntimeError), store.change() as content:
        content["a"] = 2
        raise RuntimeError
    assert store.read() == {"a": 1}


def test_profiles_are_counted_in_their_order() -> None:
    assert list(count_by_profile([mig(1, "3g.40gb"), mig(7), mig(8)]).items()) == [
        ("3g.40gb", 1),
        ("1g.10gb", 2),
    ]


class Notebooks(RuleBasedStateMachine):
    """Any order of starts, stops, partitionings and hub restarts."""

    owners = st.sampled_from(["alice/", "alice/second", "bob/", "carol/"])
    layouts = st.sampled_from(
        [SEVEN, [mig(1, "3g.40gb"), mig(2, "3g.40gb")], [mig(1, "3g.40gb"), mig(9), mig(10)], SEVEN[:2], []]
    )

    @initialize()
    def fresh(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.slices: list[Slice] = SEVEN
        self.model: dict[str, Slice] = {}

    @property
    def leases(self) -> Leases:
        """Opened anew each time, as a hub that was restarted does."""
        return Leases(Path(self.folder.name) / "leases.json")

    @rule(owner=owners, profile=st.sampled_from(["1g.10gb", "3g.40gb"]))
    def start(self, owner: str, profile: str) -> None:
        others = [piece for holder, piece in self.model.items() if holder != owner]
        possible = [
            piece
            for piece in self.slices
            if piece.profile == profile and not any(piece.overlaps(other) for other in others)
        ]
        try:
            taken = take(self.leases, owner, owner, profile, self.slices).pieces[0]
        except (NoSliceError, WaitError):
            assert not possible
            self.leases.leave(owner)  # whose turn it is, is the queue's test
            self.model.pop(owner, None)  # its notebook did not run any more
        else:
            assert taken in possible
            self.model[owner] = taken

    @rule(owner=owners)
    def stop(self, owner: str) -> None:
        released = self.leases.release(owner)
        expected = self.model.pop(owner, None)
        assert (released.pieces[0] if released else None) == expected

    @rule(layout=layouts)
    def partition(self, layout: list[Slice]) -> None:
        self.slices = layout

    @rule()
    def drop_vanished(self) -> None:
        dropped = {
            lease.owner for lease in self.leases.drop(lambda lease: lease.pieces[0] not in self.slices)
        }
        assert dropped == {owner for owner, piece in self.model.items() if piece not in self.slices}
        for owner in dropped:
            del self.model[owner]

    @invariant()
    def agrees(self) -> None:
        if hasattr(self, "model"):
            assert {lease.owner: lease.pieces[0] for lease in self.leases.all()} == self.model

    @invariant()
    def one_holder_at_most(self) -> None:
        if hasattr(self, "model"):
            held = [lease.pieces[0] for lease in self.leases.all()]
            assert not any(a.overlaps(b) for i, a in enumerate(held) for b in held[i + 1 :])

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestNotebooks = Notebooks.TestCase
TestNotebooks.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)


def grab(
    path: Path, owner: str, gate: multiprocessing.synchronize.Barrier, won: multiprocessing.Queue
) -> None:
    gate.wait()
    try:
        won.put((owner, take(Leases(path), owner, owner, "1g.10gb", SEVEN).pieces[0].uuid))
    except (NoSliceError, WaitError):
        won.put((owner, None))


def test_a_race_of_processes_has_one_winner_per_slice(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    gate, won = context.Barrier(12), context.Queue()
    racers = [
        context.Process(target=grab, args=(tmp_path / "leases.json", f"user{number}/", gate, won))
        for number in range(12)
    ]
    for racer in racers:
        racer.start()
    results = [won.get(timeout=PATIENCE) for _ in racers]
    for racer in racers:
        racer.join()
    winners = [uuid for _, uuid in results if uuid]
    assert sorted(winners) == sorted(piece.uuid for piece in SEVEN)
    assert {lease.owner for lease in Leases(tmp_path / "leases.json").all()} == {
        o for o, uuid in results if uuid
    }


def churn(path: Path) -> None:
    leases = Leases(path)
    for number in range(10**9):
        take(leases, f"user{number % 7}/", "u", "1g.10gb", SEVEN)
        leases.release(f"user{(number + 3) % 7}/")


def test_killed_in_the_middle_of_a_change(tmp_path: Path) -> None:
    """After kill -9 at any moment the file is whole, and the lock is free."""
    path = tmp_path / "leases.json"
    context = multiprocessing.get_context("fork")
    for attempt in range(15):
        victim = context.Process(target=churn, args=(path,))
        victim.start()
        time.sleep(0.01 + attempt * 0.003)
        os.kill(victim.pid, signal.SIGKILL)
        victim.join()
        held = [lease.pieces[0].uuid for lease in Leases(path).all()]
        assert len(held) == len(set(held))
        take(Leases(path), "after/", "u", "1g.10gb", [mig(99)])
        assert "after/" in json.loads(path.read_text())["leases"]
        Leases(path).release("after/")
