"""Several notebooks on one slice: never too many, never beside one that has it alone, whatever happens."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.sharing import answers, history, shared, turns
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Lease, Leases, NoSliceError
from gpufarm_hub.sharing.limits import EVERYBODY, Limit
from gpufarm_hub.sharing.metrics import SliceCollector
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.sharing.shared import SharedProfile
from gpufarm_hub.sharing.slices import Slice
from gpufarm_hub.sharing.waiting import SliceRequest, Ticket
from gpufarm_hub.spawning import offers
from gpufarm_hub.store import JsonStore
from hub_process import Browser, HubProcess, eventually, slices
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

PROFILE = "1g.10gb"
MANY = Limit("many", slices=9)


def mig(instance: int, profile: str = PROFILE) -> Slice:
    return Slice(f"MIG-{instance}-{profile}", profile, 0, instance, 0, 10 << 30)


THREE = [mig(7), mig(8), mig(9)]


def request(owner: str, notebooks: int = 1, count: int = 1, limit: Limit = MANY) -> SliceRequest:
    return SliceRequest(owner, PROFILE, count, limit, {"gpu": PROFILE}, notebooks)


def get(leases: Leases, owner: str, notebooks: int = 1, slices: list[Slice] = THREE) -> list[int]:
    """Take a slice; return the instances, none if the owner waits."""
    taken = leases.take(request(owner, notebooks), f"{owner}.service", slices)
    return [piece.gpu_instance or 0 for piece in taken.pieces] if isinstance(taken, Lease) else []


@pytest.fixture
def leases(tmp_path: Path) -> Leases:
    return Leases(tmp_path / "leases.json")


def crowds(held: list[Lease]) -> dict[str, list[int]]:
    """Return, for each slice, how many notebooks each of its holders accepts."""
    found: dict[str, list[int]] = {}
    for lease in held:
        for piece in lease.pieces:
            found.setdefault(piece.uuid, []).append(lease.notebooks)
    return found


def keeps_the_numbers(held: list[Lease]) -> bool:
    return all(len(accepted) <= min(accepted) for accepted in crowds(held).values())


def test_a_begun_slice_is_filled_before_another_one_is_begun(leases: Leases) -> None:
    assert [get(leases, f"student{n}/", 3) for n in range(4)] == [[7], [7], [7], [8]]
    leases.release("student1/")
    assert get(leases, "late/", 3) == [7], "the fuller one of those with a seat"
    assert get(leases, "alone/") == [9]
    assert [get(leases, f"more{n}/", 3) for n in range(3)] == [[8], [8], []]


def test_shared_and_exclusive_use_exclude_one_another(leases: Leases) -> None:
    two = THREE[:2]
    assert get(leases, "alone/", slices=two) == [7]
    assert get(leases, "student/", 2, two) == [8]
    assert get(leases, "waits/", slices=two) == [], "a seat is no slice"
    leases.leave("waits/")
    assert get(leases, "second/", 2, two) == [8]
    assert get(leases, "third/", 2, two) == [], "a slice that somebody has alone has no seat"


def test_one_notebook_takes_different_slices(leases: Leases) -> None:
    taken = leases.take(request("ada/", 4, count=2), "ada.service", THREE)
    assert isinstance(taken, Lease)
    assert len(set(taken.pieces)) == 2


def test_the_number_may_change_while_notebooks_run(leases: Leases) -> None:
    one = THREE[:1]
    for owner in ("a/", "b/", "c/"):
        get(leases, owner, 4, one)
    assert get(leases, "d/", 2, one) == [], "now two at most"
    leases.leave("d/")
    for owner in ("a/", "b/"):
        leases.release(owner)
    assert get(leases, "d/", 2, one) == [7]
    assert get(leases, "e/", 4, one) == [], "d accepts two"


def test_a_limit_counts_a_shared_slice_as_one(leases: Leases) -> None:
    limit = Limit("students", slices=1)
    leases.take(request("ada/", 4, limit=limit), "a", THREE)
    with pytest.raises(NoSliceError, match="You hold 1 GPU slice already and may hold 1 at once"):
        leases.take(request("ada/second", 4, limit=limit), "b", THREE)


def test_users_read_that_they_wait_for_a_shared_slice(leases: Leases) -> None:
    one = THREE[:1]
    get(leases, "alone/", slices=one)
    place = leases.enter(request("ada/", 4), one)
    assert "Not free yet: 1 shared GPU slice 1g.10gb." in answers.waits(place)
    assert "1 shared GPU slice 1g.10gb was kept for you" in answers.missed(place.ticket, "noon")
    since = place.ticket.since
    assert leases.enter(request("ada/", 2), one).ticket.since == since, "another number is no new request"
    assert leases.enter(request("ada/"), one).ticket.since > since


def test_leases_and_queue_of_an_earlier_version_go_on(leases: Leases, tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    get(leases, "alone/", slices=THREE[:1])
    get(leases, "waits/", slices=THREE[:1])
    content = json.loads(path.read_text())
    for entry in (content["leases"]["alone/"], content["queue"]["waits/"]):
        assert entry.pop("notebooks") == 1
    path.write_text(json.dumps(content))
    assert leases.damage() == ""
    assert [lease.notebooks for lease in leases.all()] == [1]
    assert get(leases, "student/", 4, THREE[:1]) == []
    assert leases.queue(THREE[:1])[0].ticket.owner == "waits/"


def test_nobody_who_shares_makes_the_first_in_line_wait_longer() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    one = THREE[:1]
    first = Ticket("alone/", PROFILE, 1, {}, "all", 9, 0, since=1, seen=1)
    held = [Lease("ada/", "u", (one[0],), now.isoformat(), "all", 4, 3)]
    for hours, is_called in ((1, True), (5, False)):
        more = replace(first, owner="ben/", since=2, hours=hours, notebooks=3)
        claims = turns.call([first, more], held, one, now.timestamp(), patience=60)
        assert (list(claims) == ["ben/"]) == is_called


def test_the_likely_time_of_seats_and_slices() -> None:
    def lease(owner: str, piece: Slice, hours: float, notebooks: int) -> Lease:
        return Lease(owner, "u", (piece,), "1970-01-01T00:00:00+00:00", "all", hours, notebooks)

    held = [lease("a/", THREE[0], 3, 2), lease("b/", THREE[0], 1, 2), lease("c/", THREE[1], 2, 1)]
    two = THREE[:2]
    assert turns.when_free(held, two)[PROFILE] == [7200, 10800]
    assert turns.when_free(held, two, 2)[PROFILE] == [3600, 7200, 7200, 10800]
    assert turns.when_free(held, two, 3)[PROFILE] == [3600, 7200, 7200, 7200, 10800, 10800]
    assert turns.when_free(held[:1], two, 2)[PROFILE] == [turns.AT_ONCE, turns.AT_ONCE, turns.AT_ONCE, 10800]
    alone, student = (
        Ticket(owner, PROFILE, 1, {}, "all", 9, 0, since=since, seen=since, notebooks=notebooks)
        for owner, since, notebooks in (("alone/", 1, 1), ("student/", 2, 2))
    )
    places = turns.places([alone, student, replace(student, owner="next/", since=3)], held, two, 0, 60)
    assert [place.likely for place in places] == [7200, 7200, 10800]


def test_the_form_tells_of_seats_to_members_only(leases: Leases) -> None:
    for owner in ("a/", "b/"):
        get(leases, owner, 4, THREE)
    get(leases, "alone/", 1, THREE)
    entry = SharedProfile(PROFILE, 4, frozenset({"course"}))
    assert [str(offer) for offer in offers.offers(THREE, leases, "x/")] == ["1g.10gb (10 GiB): 1 of 3 free"]
    assert [(offer.name, str(offer)) for offer in offers.offers(THREE, leases, "x/", [entry])] == [
        ("1g.10gb", "1g.10gb (10 GiB): 1 of 3 free"),
        ("1g.10gb.shared", "1g.10gb (10 GiB), shared by up to 4 notebooks: 6 of 12 seats free"),
    ]
    assert shared.choices([entry], ["course", "staff"]) == {"1g.10gb.shared": entry}
    assert shared.choices([entry], ["staff"]) == {}


def test_what_is_kept_is_told_in_slices_and_in_seats(leases: Leases) -> None:
    leases.enter(request("alone/"), THREE)
    leases.enter(request("student/", 4), THREE)
    entry = SharedProfile(PROFILE, 4, frozenset())
    slices, seats = offers.offers(THREE, leases, "x/", [entry])
    assert (slices.free, slices.kept) == (1, 2)
    assert (seats.free, seats.kept) == (7, 5)
    own, _seats = offers.offers(THREE, leases, "alone/", [entry])
    assert (own.free, own.kept) == (2, 1)


NUMBERS = st.sampled_from([1, 1, 2, 3])


class Notebooks(RuleBasedStateMachine):
    """Any order of starts, stops, crashes and calls, while the site changes its mind."""

    owners = st.sampled_from([f"{user}/{server}" for user in "abcdefg" for server in ("", "x")])

    @initialize()
    def fresh(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.slices = THREE
        self.running: set[str] = set()

    @property
    def leases(self) -> Leases:
        """Opened anew each time, as a hub that was restarted does."""
        return Leases(Path(self.folder.name) / "leases.json")

    @rule(owner=owners, notebooks=NUMBERS, count=st.integers(1, 2), starts=st.booleans())
    def start(self, owner: str, notebooks: int, count: int, starts: bool) -> None:
        """A hub that dies between lease and start has leased a slice to a notebook that does not run."""
        self.running.discard(owner)
        before = self.leases.all()
        try:
            taken = self.leases.take(request(owner, notebooks, count), owner, self.slices)
        except NoSliceError:
            return
        if not isinstance(taken, Lease):
            return
        assert len(set(taken.pieces)) == count
        others = crowds([lease for lease in before if lease.owner != owner])
        begun = [len(accepted) for accepted in others.values() if len(accepted) < min([notebooks, *accepted])]
        if notebooks > 1 and count == 1 and begun and not self.leases.queue(self.slices):
            assert len(others.get(taken.pieces[0].uuid, [])) == max(begun)
        if starts:
            self.running.add(owner)

    @rule(owner=owners, notebooks=NUMBERS)
    def ask(self, owner: str, notebooks: int) -> None:
        if owner not in self.running:
            try:
                self.leases.enter(request(owner, notebooks), self.slices)
            except NoSliceError:
                self.leases.leave(owner)

    @rule(owner=owners)
    def stop(self, owner: str) -> None:
        self.running.discard(owner)
        self.leases.release(owner)
        self.leases.leave(owner)

    @rule()
    def restart(self) -> None:
        self.leases.drop(lambda lease: lease.owner not in self.running)
        assert {lease.owner for lease in self.leases.all()} == self.running

    @invariant()
    def no_slice_has_too_many(self) -> None:
        if hasattr(self, "folder"):
            assert keeps_the_numbers(self.leases.all())
            claims = [place.claim for place in self.leases.queue(self.slices) if place.claim]
            assert keeps_the_numbers([*self.leases.all(), *claims])  # type: ignore[list-item]

    def teardown(self) -> None:
        if hasattr(self, "folder"):
            self.folder.cleanup()


TestNotebooks = Notebooks.TestCase
TestNotebooks.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)

HELD = st.lists(
    st.tuples(st.integers(0, 2), st.sampled_from([1, 2, 3]), st.sampled_from([0, 1, 2])), max_size=8
)


@given(HELD, st.integers(1, 4))
def test_seats_are_free_in_order_and_as_many_as_the_number(
    held: list[tuple[int, int, float]], notebooks: int
) -> None:
    leases = [
        Lease(f"{n}/", "u", (THREE[piece],), "1970-01-01T00:00:00+00:00", "all", hours, number)
        for n, (piece, number, hours) in enumerate(held)
    ]
    times = turns.when_free(leases, THREE, notebooks)[PROFILE]
    assert len(times) == notebooks * len(THREE)
    assert times == sorted(times)
    free = 0
    for piece in THREE:
        accepted = crowds(leases).get(piece.uuid, [])
        seat = len(accepted) < min([notebooks, *accepted])
        assert turns.has_seat(piece, leases, notebooks) == seat
        free += max(min([notebooks, *accepted]) - len(accepted), 0)
    assert times.count(turns.AT_ONCE) == free


def churn(path: Path) -> None:
    leases = Leases(path)
    for number in range(10**9):
        get(leases, f"user{number % 11}/", 1 + number % 3)
        leases.leave(f"user{number % 11}/")
        leases.release(f"user{(number + 5) % 11}/")


def test_killed_in_the_middle_of_a_change(tmp_path: Path) -> None:
    path = tmp_path / "leases.json"
    context = multiprocessing.get_context("fork")
    for attempt in range(10):
        victims = [context.Process(target=churn, args=(path,)) for _ in range(2)]
        for victim in victims:
            victim.start()
        time.sleep(0.01 + attempt * 0.005)
        for victim in victims:
            os.kill(victim.pid, signal.SIGKILL)
            victim.join()
        assert keeps_the_numbers(Leases(path).all())


@pytest.fixture
def desk(leases: Leases, tmp_path: Path) -> Desk:
    notices, use = Notices(tmp_path / "notices.json"), JsonStore(tmp_path / "use.json")
    return Desk(leases, notices, use, tmp_path / "audit.jsonl", [EVERYBODY])


def test_hours_of_a_shared_slice_are_divided(desk: Desk) -> None:
    for owner in ("ada/", "ben/"):
        desk.take(request(owner, 4), "unit", THREE)
    now = datetime.now(UTC)
    later = now + timedelta(hours=2)
    assert [held.count for held in history.still(desk.leases.all(), "ada", later)] == [0.25]
    desk.give_back("ada/")
    [held] = history.ended(desk.audit_file.read_text().splitlines(), "ada")
    assert held.count == 0.25
    line = json.loads(desk.audit_file.read_text().splitlines()[-1])
    assert line.pop("notebooks") == 4
    old = json.dumps(line)
    assert [held.count for held in history.ended([old], "ada")] == [1], "as earlier versions wrote it"


def test_metrics_count_a_slice_once(desk: Desk) -> None:
    for owner in ("ada/", "ben/"):
        desk.take(request(owner, 4), "unit", THREE)
    with desk.use.change() as content:
        content |= {"profiles": {PROFILE: 3}, "notebooks": {"ada/": {"working": True}}}
    told = {
        family.name.removeprefix("gpufarm_hub_slices_"): [sample.value for sample in family.samples]
        for family in SliceCollector(desk).collect()
    }
    assert (told["held"], told["working"], told["without_notebook"]) == ([1], [1], [1])


def test_the_settings_are_read() -> None:
    [entry] = shared.read([{"profile": PROFILE, "notebooks": "4", "groups": ["course"]}])
    assert entry == SharedProfile(PROFILE, 4, frozenset({"course"}))
    assert (shared.number([entry], PROFILE), shared.number([entry], "3g.40gb")) == (4, 1)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """Members of the group students may share; their names begin with "student"."""
    together = [{"profile": PROFILE, "notebooks": 2, "groups": ["students"]}]
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [], shared_slices=together)
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


SHARED = shared.name(PROFILE)


def offered(browser: Browser) -> list[str]:
    page = BeautifulSoup(browser.page("/hub/spawn").text, "html.parser")
    return [str(option["value"]) for option in page.select("select[name=gpu] option")]


def test_two_users_hold_one_slice_and_nobody_gets_it_alone(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    ada, ben, guest, admin = user("student1"), user("student2"), user("guest"), user("bob")
    assert offered(ada) == ["", PROFILE, SHARED] and offered(guest) == ["", PROFILE]
    assert ada.spawn(gpu=SHARED).messages == ben.spawn(gpu=SHARED).messages == []
    for name in ("student1", "student2"):
        env = json.loads((process.folder / f"jupyterhub-notebook-{name}.service.env").read_text())
        assert env["CUDA_VISIBLE_DEVICES"] == env["NVIDIA_VISIBLE_DEVICES"] == "MIG-1g.10gb-0"
    assert "0 of 2 seats free" in user("student3").page("/hub/spawn").text
    [waits] = guest.spawn(gpu=PROFILE).messages
    assert "Not free yet: 1 GPU slice 1g.10gb. You wait as number 1 of 1" in waits
    [slice_] = admin.api("GET", "/gpufarm/slices").json()["slices"]
    assert [one["user"] for one in slice_["holders"]] == ["student1", "student2"]
    assert (slice_["held"], slice_["notebooks"], slice_["kept"]) == (True, 2, [])
    [seen] = ada.api("GET", "/gpufarm/slices").json()["slices"]
    assert [one["user"] for one in seen["holders"]] == ["student1"], "users see nobody else"
    holders = json.loads((process.folder / "run/holders.d/jupyterhub.json").read_text())["holders"]
    assert [one["slices"] for one in holders] == [["MIG-1g.10gb-0"]] * 2, "so nobody cuts the slice"
    assert "shared by up to 2 notebooks" in ada.page("/hub/my-use").text
    admin.api("DELETE", "/users/student1/server").raise_for_status()
    eventually(lambda: not ada.running())
    assert guest.queue().json()["called"] is False, "ben is still on it"
    ben.stop()
    assert guest.queue().json()["called"] is True
    [slice_] = admin.api("GET", "/gpufarm/slices").json()["slices"]
    assert [one["for"]["user"] for one in slice_["kept"]] == ["guest"]


def test_other_users_cannot_choose_a_shared_slice(user: Callable[[str], Browser]) -> None:
    guest = user("guest")
    answer = guest.api("POST", "/users/guest/server", json={"gpu": SHARED})
    assert answer.status_code == 409
    assert "has no GPU slice 1g.10gb.shared any more" in answer.json()["message"]


def test_a_member_waits_for_a_seat_and_gets_it(user: Callable[[str], Browser]) -> None:
    guest, ada = user("guest"), user("student1")
    guest.spawn(gpu=PROFILE)
    [waits] = ada.spawn(gpu=SHARED).messages
    assert "1 shared GPU slice 1g.10gb" in waits
    place = ada.queue().json()
    assert (place["profile"], place["notebooks"], place["options"]["gpu"]) == (PROFILE, 2, SHARED)
    guest.stop()
    assert ada.spawn(**{"gpu": place["options"]["gpu"]}).messages == []


def test_a_hub_that_is_killed_before_the_start_frees_the_seat(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    ada = user("student1")
    (process.folder / "slow-start").touch()
    leases = Leases(process.folder / "leases.json")
    assert ada.api("POST", "/users/student1/server", json={"gpu": SHARED}).status_code in (201, 202)
    eventually(lambda: [lease.notebooks for lease in leases.all()] == [2])
    process.kill()
    (process.folder / "slow-start").unlink()
    process.start()
    assert leases.all() == []
    assert user("guest").spawn(gpu=PROFILE).messages == []
