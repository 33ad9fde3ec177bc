"""Order of the queue: fewer slices first, ties by arrival; nobody is forgotten, nobody hoards."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import math
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from gpufarm_hub.sharing import limits, turns, waiting
from gpufarm_hub.sharing.leases import Lease, Leases, NoSliceError
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.slices import Slice
from gpufarm_hub.sharing.waiting import SliceRequest, Ticket
from hypothesis import given, settings
from hypothesis import strategies as st


def mig(instance: int, profile: str = "1g.10gb") -> Slice:
    return Slice(f"MIG-{instance}-{profile}", profile, 0, instance, 0, 10 << 30)


def ticket(owner: str, since: float, count: int = 1, profile: str = "1g.10gb", **more: int) -> Ticket:
    most = {"slices": 9, "slices_together": 0, **more}
    return Ticket(owner, profile, count, {}, share="all", since=since, seen=since, **most)


def lease(owner: str, *pieces: Slice, hours: float = 0) -> Lease:
    return Lease(owner, "unit", pieces, "1970-01-01T00:00:00+00:00", "all", hours)


def called(tickets: list[Ticket], held: list[Lease], slices: list[Slice]) -> dict[str, int]:
    claims = turns.call(tickets, held, slices, now=0, patience=600)
    return {owner: len(claim.pieces) for owner, claim in claims.items()}


def test_who_came_first_is_first() -> None:
    tickets = [ticket("late/", 2), ticket("early/", 1)]
    assert called(tickets, [], [mig(7)]) == {"early/": 1}


def test_who_holds_a_slice_waits_behind_who_holds_none() -> None:
    held = [lease("rich/", mig(7))]
    tickets = [ticket("rich/second", 1), ticket("poor/", 2)]
    assert called(tickets, held, [mig(7), mig(8)]) == {"poor/": 1}


def test_free_slices_are_kept_for_who_needs_several() -> None:
    held = [lease("x/", mig(7), hours=1)]
    tickets = [ticket("large/", 1, count=2), ticket("small/", 2), ticket("other/", 3, profile="3g.40gb")]
    slices = [mig(7), mig(8), mig(1, "3g.40gb")]
    assert called(tickets, held, slices) == {"other/": 1}
    assert called(tickets, [], slices) == {"large/": 2, "other/": 1}


SEVEN = [mig(instance) for instance in range(7, 14)]


@pytest.mark.parametrize(
    ("hours", "small", "ahead"),
    [
        (2, 1, 6),  # they have ended when the seventh slice becomes free
        (2, 2, 0),  # they start some minutes after they are called, so would not have
        (2, 0, 0),
        (0, 1, 6),  # nobody knows when that is, so nobody delays it
        (0, 0, 6),
    ],
)
def test_a_request_for_seven_slices_idles_none_that_it_cannot_have_yet(
    hours: int, small: int, ahead: int
) -> None:
    held = [lease("x/", SEVEN[0], hours=hours)]
    tickets = [ticket("large/", 1, count=7)]
    tickets += [ticket(f"small{n}/", 2 + n, hours=small) for n in range(7)]
    assert called(tickets, held, SEVEN) == {f"small{n}/": 1 for n in range(ahead)}


def test_slices_that_the_first_in_line_does_not_need_are_for_those_behind() -> None:
    held = [lease("x/", SEVEN[0], SEVEN[1], hours=1), lease("y/", *SEVEN[2:5], hours=2)]
    tickets = [ticket("large/", 1, count=3), *(ticket(f"small{n}/", 2 + n) for n in range(3))]
    assert called(tickets, held, SEVEN) == {"small0/": 1}


def test_nobody_ahead_makes_a_limit_stop_the_first_in_line() -> None:
    """Slices there are enough of for both, but not for their group."""
    held = [replace(lease("x/", *SEVEN[:5], hours=1), share="staff")]
    large, small = ticket("large/", 1, count=3, slices_together=3), ticket("small/", 2, slices_together=3)
    assert called([large, small], held, SEVEN) == {}
    assert called([large, replace(small, share="guests")], held, SEVEN) == {"small/": 1}


def test_who_may_not_now_keeps_nobody_waiting() -> None:
    held = [lease("full/", mig(7))]
    tickets = [ticket("full/second", 1, slices=1), ticket("group/", 2, slices_together=1), ticket("free/", 3)]
    assert called(tickets, held, [mig(7), mig(8)]) == {"free/": 1}


def test_places_are_counted_per_profile() -> None:
    tickets = [ticket("a/", 1), ticket("b/", 2, profile="3g.40gb"), ticket("c/", 3)]
    found = turns.places(tickets, [], [mig(7)], now=0, patience=600)
    assert [(place.ticket.owner, place.position, place.waiting, place.called) for place in found] == [
        ("a/", 1, 2, True),
        ("b/", 1, 1, False),
        ("c/", 2, 2, False),
    ]


def test_whole_gpus_are_limited_apart() -> None:
    """A user at the limit of GPUs waits for slices as before, and keeps no GPU from others."""
    gpus = [Slice(f"GPU-{n}", "NVIDIA H100", n, None, None, 80 << 30) for n in (1, 2)]
    held = [lease("one/", gpus[0])]
    tickets = [
        ticket("one/second", 1, profile="NVIDIA H100", gpus=1),
        ticket("one/third", 2, gpus=1),
        ticket("none/", 3, profile="NVIDIA H100", gpus=0),
        ticket("any/", 4, profile="NVIDIA H100"),
    ]
    assert called(tickets, held, [*gpus, mig(7)]) == {"any/": 1, "one/third": 1}


TICKETS = st.lists(
    st.builds(
        ticket,
        st.sampled_from([f"{user}/{server}" for user in "abcd" for server in ("", "x")]),
        st.integers(0, 9),
        count=st.integers(1, 3),
        profile=st.sampled_from(["1g.10gb", "3g.40gb"]),
        slices=st.integers(0, 3),
        slices_together=st.integers(0, 4),
    ),
    max_size=8,
    unique_by=lambda entry: entry.owner,
)
SLICES = [*(mig(instance) for instance in range(7, 11)), mig(1, "3g.40gb"), mig(2, "3g.40gb")]


@given(TICKETS, st.lists(st.sampled_from("efa"), max_size=6))
def test_no_slice_twice_and_no_limit_passed(tickets: list[Ticket], holders: list[str]) -> None:
    held = [lease(f"{user}/{n}", SLICES[n]) for n, user in enumerate(holders)]
    claims = turns.call(tickets, held, SLICES, now=0, patience=600)
    found = {owner: claim.pieces for owner, claim in claims.items()}
    given_out = [piece for pieces in found.values() for piece in pieces]
    busy = [piece for hold in held for piece in hold.pieces]
    assert len(set(given_out + busy)) == len(given_out) + len(busy)
    of_user = Counter(hold.owner.partition("/")[0] for hold in held)
    for entry in tickets:
        if entry.owner in found:
            assert [piece.profile for piece in found[entry.owner]] == [entry.profile] * entry.count
            of_user[entry.owner.partition("/")[0]] += entry.count
    for entry in tickets:
        if entry.owner in found:
            others = [other for other in tickets if other.owner != entry.owner and other.owner in found]
            same = [other for other in others if waiting.user_of(other.owner) == waiting.user_of(entry.owner)]
            if not same:
                assert of_user[waiting.user_of(entry.owner)] <= entry.slices


@given(TICKETS)
def test_nobody_is_overtaken_by_an_equal(tickets: list[Ticket]) -> None:
    """Those who hold nothing and whom no limit stops are called in their order, while enough are free."""
    tickets = [entry for entry in tickets if entry.slices >= entry.count and not entry.slices_together]
    users = [waiting.user_of(entry.owner) for entry in tickets]
    tickets = [entry for entry in tickets if users.count(waiting.user_of(entry.owner)) == 1]
    found = turns.call(tickets, [], SLICES, now=0, patience=600)
    for profile, free in (("1g.10gb", 4), ("3g.40gb", 2)):
        for entry in waiting.in_order([entry for entry in tickets if entry.profile == profile], []):
            assert (entry.owner in found) == (entry.count <= free)
            free -= entry.count if entry.owner in found else 0


@dataclass
class Clock:
    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


def request(owner: str, count: int = 1, limit: Limit = limits.EVERYBODY) -> SliceRequest:
    return SliceRequest(owner, "1g.10gb", count, limit, {"gpu": "1g.10gb"})


def test_who_does_not_ask_again_loses_the_place(tmp_path: Path) -> None:
    clock = Clock()
    leases = Leases(tmp_path / "leases.json", patience=60, clock=clock)
    leases.take(request("alice/"), "a", [mig(7)])
    for owner in ("gone/", "patient/"):
        assert not leases.enter(request(owner), [mig(7)]).called
        clock.now += 1
    for _ in range(4):
        clock.now += 19
        place = leases.ask("patient/", [mig(7)])
    assert place and (place.position, place.waiting) == (1, 1)
    leases.release("alice/")
    assert isinstance(leases.take(request("patient/"), "u", [mig(7)]), Lease)


def test_who_asks_again_keeps_the_place_and_who_wants_something_else_does_not(tmp_path: Path) -> None:
    clock = Clock()
    leases = Leases(tmp_path / "leases.json", clock=clock)
    slices = [mig(7), mig(8)]
    two = Limit("two", slices=2)
    leases.take(request("alice/", 2, two), "a", slices)

    def ask(owner: str, count: int) -> tuple[int, int]:
        clock.now += 1
        place = leases.enter(request(owner, count, two), slices)
        return place.position, place.waiting

    assert [ask("bob/", 1), ask("carol/", 1), ask("bob/", 1), ask("bob/", 2)] == [
        (1, 1),
        (2, 2),
        (1, 2),
        (2, 2),
    ]


def test_who_is_called_is_so_until_they_come(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    assert leases.enter(request("alice/"), [mig(7)]).called
    assert not leases.enter(request("bob/"), [mig(7)]).called
    assert not isinstance(leases.take(request("carol/"), "c", [mig(7)]), Lease)
    assert isinstance(leases.take(request("alice/"), "a", [mig(7)]), Lease)


def test_nobody_who_holds_less_takes_away_what_is_kept_for_somebody(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    two = Limit("two", slices=2)
    leases.take(request("rich/", limit=two), "r", [mig(7), mig(8)])
    assert leases.enter(request("rich/second", limit=two), [mig(7), mig(8)]).called
    assert not leases.enter(request("poor/"), [mig(7), mig(8)]).called


@dataclass
class Line:
    """The queue for one slice; what is told to those who lose their place."""

    folder: Path
    clock: Clock = field(default_factory=Clock)
    missed: list[tuple[str, float]] = field(default_factory=list)

    def __post_init__(self) -> None:
        def missed(ticket: Ticket, when: float) -> None:
            self.missed.append((ticket.owner, when))

        self.leases = Leases(
            self.folder / "leases.json", patience=600, claim=300, clock=self.clock, missed=missed
        )

    def ask_for(self, seconds: int, *owners: str) -> None:
        """Let time pass in which owners do nothing but ask for their place."""
        for _ in range(0, seconds, 5):
            self.clock.now += 5
            for owner in owners:
                self.leases.ask(owner, [mig(7)])


@pytest.fixture
def line(tmp_path: Path) -> Line:
    return Line(tmp_path)


def test_who_is_called_and_only_asks_loses_the_place(line: Line) -> None:
    place = line.leases.enter(request("mallory/"), [mig(7)])
    assert place.claim and place.claim.until == line.clock.now + 300
    line.leases.enter(request("bob/"), [mig(7)])
    line.ask_for(295, "mallory/", "bob/")
    assert not isinstance(line.leases.take(request("bob/"), "b", [mig(7)]), Lease)
    line.ask_for(10, "mallory/", "bob/")
    assert line.missed == [("mallory/", 1300)]
    assert line.leases.ask("mallory/", [mig(7)]) is None
    assert isinstance(line.leases.take(request("bob/"), "b", [mig(7)]), Lease)


def test_nobody_keeps_a_slice_for_three_days_by_asking_again_and_again(line: Line) -> None:
    """Somebody who has lost the place, or leaves, comes back behind all who wait."""
    waited = []
    for _ in range(6):
        line.leases.enter(request("mallory/"), [mig(7)])
        line.ask_for(250, "mallory/")
        line.leases.enter(request("bob/"), [mig(7)])
        start = line.clock.now
        while not isinstance(line.leases.take(request("bob/"), "b", [mig(7)]), Lease):
            assert line.clock.now < start + 310
            line.ask_for(5, "mallory/", "bob/")
            line.leases.enter(request("mallory/"), [mig(7)])
        waited.append(line.clock.now - start)
        line.leases.release("bob/")
    assert max(waited) <= 300


def test_a_slice_that_nobody_comes_for_is_taken_by_whoever_does(line: Line) -> None:
    line.leases.enter(request("mallory/"), [mig(7)])
    line.ask_for(72 * 3600, "mallory/")
    assert isinstance(line.leases.take(request("bob/"), "b", [mig(7)]), Lease)
    assert line.missed == [("mallory/", 1300)]


def test_who_is_called_while_the_hub_is_down_is_called_anew(line: Line) -> None:
    line.leases.enter(request("alice/"), [mig(7)])
    line.clock.now += 3600
    line.leases.keep_places()
    place = line.leases.ask("alice/", [mig(7)])
    assert place and place.claim and place.claim.until == line.clock.now + 300 and not line.missed


@dataclass(frozen=True)
class Comer:
    """Somebody who comes to the queue.

    Attributes:
        when: in minutes.
        count: of slices.
        hours: of their limit; 0 for never.
        late: minutes between their turn and the notebook; longer than it is kept if they never start it.
        used: minutes after which they stop the notebook themselves.
    """

    when: int
    count: int
    hours: int
    late: int
    used: int

    def request(self, owner: str) -> SliceRequest:
        return request(owner, self.count, Limit("any", slices=9, hours=self.hours))


COMERS = st.lists(
    st.builds(
        Comer,
        when=st.integers(0, 200),
        count=st.integers(1, 3),
        hours=st.sampled_from([0, 1, 1, 2]),
        late=st.integers(0, 12),
        used=st.integers(30, 400),
    ),
    max_size=12,
)
HELD = st.lists(st.tuples(st.integers(1, 2), st.sampled_from([1, 2, 3, 4])), min_size=1, max_size=5)


@settings(max_examples=25, deadline=None)
@given(HELD, st.integers(2, 7), COMERS)
def test_nobody_who_goes_ahead_delays_the_first_in_line(
    held: list[tuple[int, int]], wanted: int, comers: list[Comer]
) -> None:
    """All who hold slices use their full time; the first in line starts when that is over, or before."""
    claim, start = 10 * 60, 1_000_000
    with TemporaryDirectory() as folder, patch("os.fsync"):  # which takes most of the time
        clock = Clock(start)
        leases = Leases(Path(folder) / "leases.json", patience=10**9, claim=claim, clock=clock)
        free, known = len(SEVEN), []
        for number, (count, hours) in enumerate(held):
            if count <= free:
                free -= count
                known += count * [start + 3600 * hours]
                first = request(f"holder{number}/", count, Limit("any", slices=9, hours=hours))
                assert isinstance(leases.take(first, "u", SEVEN), Lease)
        # Told apart from the program: the request starts when so many of those who hold slices have ended.
        latest = start if wanted <= free else sorted(known)[wanted - free - 1]
        large = request("large/", wanted, Limit("any", slices=9))
        waiting: dict[str, tuple[Comer, float | None]] = {}
        stops: dict[str, float] = {}
        while not isinstance(leases.take(large, "l", SEVEN), Lease):
            assert clock.now < latest
            clock.now += 60
            minute = (clock.now - start) / 60
            for one in leases.all():
                if min(one.ends, stops.get(one.owner, math.inf)) <= clock.now:
                    leases.release(one.owner)
            waiting |= {f"u{n}/": (one, None) for n, one in enumerate(comers) if one.when == minute - 1}
            for owner, (comer, since) in list(waiting.items()):
                place = leases.enter(comer.request(owner), SEVEN)
                if place.called and since is None:
                    waiting[owner] = comer, clock.now
                elif since is not None and clock.now >= since + 60 * comer.late:
                    if isinstance(leases.take(comer.request(owner), "u", SEVEN), Lease):
                        stops[owner] = clock.now + 60 * comer.used
                    del waiting[owner]
            assert sum(len(one.pieces) for one in leases.all()) <= len(SEVEN)


def test_the_hub_was_down_longer_than_anybodys_patience(tmp_path: Path) -> None:
    clock = Clock()
    leases = Leases(tmp_path / "leases.json", patience=60, clock=clock)
    leases.take(request("alice/"), "a", [mig(7)])
    leases.enter(request("bob/"), [mig(7)])
    clock.now += 3600
    leases.keep_places()
    assert [place.ticket.owner for place in leases.queue([mig(7)])] == ["bob/"]


def test_a_request_that_cannot_be_granted_leaves_the_queue(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    leases.take(request("alice/"), "a", [mig(7)])
    leases.enter(request("bob/"), [mig(7)])
    assert leases.ask("bob/", [mig(7, "2g.20gb")]) is None
    assert leases.queue([mig(7)]) == []


def test_a_place_that_an_earlier_version_wrote_down_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "leases.json"
    Leases(file).enter(request("alice/"), [mig(7)])
    content = json.loads(file.read_text())
    del content["queue"]["alice/"]["gpus"]
    file.write_text(json.dumps(content))
    assert [place.ticket.gpus for place in Leases(file).queue([mig(7)])] == [None]


def test_no_more_whole_gpus_than_the_limit_says(tmp_path: Path) -> None:
    leases = Leases(tmp_path / "leases.json")
    gpus = [Slice(f"GPU-{n}", "1g.10gb", n, None, None, 80 << 30) for n in (1, 2)]
    one, none = Limit("one", slices=2, gpus=1), Limit("none", slices=2, gpus=0)
    assert isinstance(leases.take(request("alice/", limit=one), "a", gpus), Lease)
    with pytest.raises(NoSliceError, match=r"hold 1 whole GPU and may hold 1 at once \(limit one\)"):
        leases.take(request("alice/second", limit=one), "b", gpus)
    with pytest.raises(NoSliceError, match=r"hold 0 whole GPUs and may hold 0 at once \(limit none\)"):
        leases.enter(request("bob/", limit=none), gpus)
    assert isinstance(leases.take(request("bob/", limit=none), "c", [mig(7)]), Lease)


@pytest.mark.parametrize(
    ("limit", "count", "sentence"),
    [
        (Limit("none", slices=0), 1, r"You asked for 1 GPU slice and may hold 0 at once \(limit none\)"),
        (Limit("two", slices=2), 3, "You asked for 3 GPU slices and may hold 2 at once"),
        (Limit("few", slices=5, slices_together=2), 3, "may hold 2 at once"),
        (Limit("two", slices=2), 2, r"You hold 1 GPU slice already and may hold 2 at once \(limit two\)"),
        (Limit("many", slices=9), 4, r"This machine has only 3 GPU slices 1g\.10gb; choose fewer"),
    ],
)
def test_what_cannot_be_had_is_refused_and_not_waited_for(
    tmp_path: Path, limit: Limit, count: int, sentence: str
) -> None:
    leases = Leases(tmp_path / "leases.json")
    slices = [mig(7), mig(8), mig(9)]
    leases.take(request("alice/other"), "a", slices)
    with pytest.raises(NoSliceError, match=sentence):
        leases.take(request("alice/", count, limit), "a", slices)
    assert leases.queue(slices) == []


@pytest.mark.parametrize(
    ("others", "memory", "sentence"),
    [
        ([], 2, ""),
        ([1], 1, ""),
        ([1], 2, r"have 1 GiB of memory and all of yours may have 2 GiB \(limit little\)"),
        ([1, 1], 1, r"You run 2 notebook servers already and may run 2 at once \(limit little\)"),
    ],
)
def test_servers_and_memory_of_a_user(others: list[int], memory: int, sentence: str) -> None:
    limit = Limit("little", servers=2, memory=2 << 30)
    said = limits.refusal(limit, [size << 30 for size in others], memory << 30)
    assert re.search(sentence, said) if sentence else said == ""


def test_the_first_limit_that_names_the_user_counts() -> None:
    found = limits.read(
        [
            {"name": "alice", "users": ["alice"], "slices": 3, "gpus": 0, "memory": "6G"},
            {"name": "students", "groups": ["students", "guests"], "hours": 8, "slices_together": 4},
            {"name": "rest", "servers": 2},
        ]
    )
    alice = limits.limit_of("alice", ["students"], found)
    assert (alice.name, alice.gpus, alice.memory) == ("alice", 0, 6 * 2**30)
    students = limits.limit_of("bob", ["cms", "guests"], found)
    assert (students.name, students.hours, students.slices, students.slices_together) == ("students", 8, 1, 4)
    assert limits.limit_of("carol", [], found).servers == 2
    assert limits.limit_of("carol", [], found[:2]) == limits.EVERYBODY
