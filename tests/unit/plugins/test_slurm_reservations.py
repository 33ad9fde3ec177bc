"""Reservations of Slurm: what is refused, which calls lead to what is declared, and that others stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.accounts_plan import plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.reservations import (
    REPEATS,
    Machines,
    Reservation,
    ReservationsProblem,
    Shown,
    commands,
    misfits,
    next_start,
    read_machines,
    read_release,
    read_request,
    read_shown,
)
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 12, 1, 9, 30)  # a Tuesday
COURSE = {
    "name": "course",
    "start": "2026-12-08T09:00",
    "end": "2026-12-08T13:00",
    "accounts": ["course"],
    "partition": "gpu",
    "slices": {"1g.10gb": 8},
}
# As Slurm 24.11 writes it.
THEIRS = (
    "ReservationName=theirs StartTime=2026-12-01T09:00:00 EndTime=2026-12-02T09:00:00 Duration=1-00:00:00 "
    "Nodes=gpu1 NodeCnt=1 CoreCnt=8 Features=(null) PartitionName=gpu Flags=SPEC_NODES TRES=cpu=8 Users=root "
    "Groups=(null) Accounts=(null) Licenses=(null) State=ACTIVE BurstBuffer=(null) MaxStartDelay=(null)"
)
THERE = Machines(frozenset({"gpu1", "gpu2"}), {"gpu": {"1g.10gb": 14}, "cpu": {}})


def entry(**changes: Any) -> dict[str, Any]:
    return COURSE | changes


def one(**changes: Any) -> Reservation:
    [found] = read_request([entry(**changes)])
    return found


def shown(*reservations: Reservation, cluster: str = "farm", active: bool = False) -> dict[str, Shown]:
    """Return reservations as they are shown when the role has made them."""
    lines = [
        THEIRS.replace("=theirs", f"={each.name}").replace("=ACTIVE", "=ACTIVE" if active else "=INACTIVE")
        + f" Comment={each.mark(cluster)}"
        for each in reservations
    ]
    return read_shown("\n".join([THEIRS, *lines]))


def calls(*declared: Reservation, there: dict[str, Shown] | None = None, now: datetime = NOW) -> list[str]:
    found = commands(declared, shown() if there is None else there, now, "farm")
    return [" ".join(words) for words in found]


def test_a_new_reservation_is_created_for_its_users_alone() -> None:
    assert calls(one()) == [
        "create reservation ReservationName=course StartTime=2026-12-08T09:00:00 EndTime=2026-12-08T13:00:00 "
        "Accounts=course PartitionName=gpu TRES=gres/gpu:1g.10gb=8 Flags=MAGNETIC,NO_HOLD_JOBS_AFTER_END "
        f"Comment={one().mark('farm')}"
    ]
    nodes = one(slices=None, partition=None, nodes=["gpu1", "gpu2"], users=["ada"], repeat="weekly")
    assert " Accounts=course Users=ada Nodes=gpu1,gpu2 " in calls(nodes)[0]
    assert " Flags=MAGNETIC,NO_HOLD_JOBS_AFTER_END,WEEKLY " in calls(nodes)[0]
    assert " PartitionName=gpu NodeCnt=2 " in calls(one(slices=None, node_count=2))[0]


def test_what_is_there_as_declared_is_left_alone() -> None:
    assert calls(one(), there=shown(one())) == []


def test_end_and_users_change_in_place() -> None:
    later = one(end="2026-12-08T14:00", accounts=["course", "physics"])
    assert calls(later, there=shown(one(), active=True)) == [
        "update ReservationName=course EndTime=2026-12-08T14:00:00 Accounts=course,physics "
        f"Comment={later.mark('farm')}"
    ]
    weekly = one(repeat="weekly", end="2026-12-08T14:00")
    assert " Duration=300 " in calls(weekly, there=shown(one(repeat="weekly")))[0]


@pytest.mark.parametrize(
    "change",
    [
        {"start": "2026-12-08T10:00"},
        {"repeat": "daily"},
        {"partition": "cpu"},
        {"slices": {"1g.10gb": 7}},
        {"slices": None, "node_count": 1},
        {"users": ["ada"]},
    ],
)
def test_whatever_else_changes_makes_it_anew(change: dict[str, Any]) -> None:
    found = calls(one(**change), there=shown(one()))
    assert [call.split()[0] for call in found] == ["delete", "create"]


def test_those_of_others_and_of_other_clusters_stay() -> None:
    foreign = shown(one(), cluster="other")
    assert calls(there=foreign) == []
    assert "course was not made by this role" in misfits([one()], foreign, THERE, "farm")
    assert calls(there=shown(one())) == ["delete ReservationName=course"]


def test_a_time_that_is_over_is_nothing_to_do() -> None:
    over = one(start="2026-11-08T09:00", end="2026-11-08T13:00")
    assert calls(over) == []
    assert calls(over, there=shown(over)) == []


def test_a_reservation_ends_at_once_if_its_end_is_moved_to_the_past() -> None:
    runs = one(start="2026-12-01T09:00", end="2026-12-01T13:00")
    over = one(start="2026-12-01T09:00", end="2026-12-01T09:20")
    assert calls(over, there=shown(runs, active=True)) == ["delete ReservationName=course"]
    assert calls(over) == []


@pytest.mark.parametrize(
    ("repeat", "start", "begins"),
    [
        ("once", "2026-12-08T09:00", "2026-12-08T09:00"),
        ("once", "2026-12-01T09:00", "2026-12-01T09:30"),
        ("daily", "2026-11-01T09:00", "2026-12-02T09:00"),
        ("daily", "2026-11-01T09:30", "2026-12-01T09:30"),
        ("weekly", "2026-11-03T09:00", "2026-12-08T09:00"),
        ("weekdays", "2026-12-05T09:00", "2026-12-07T09:00"),
        ("weekends", "2026-11-01T09:00", "2026-12-05T09:00"),
    ],
)
def test_a_reservation_begins_at_its_next_time(repeat: str, start: str, begins: str) -> None:
    found = next_start(one(repeat=repeat, start=start, end=f"{start[:10]}T23:00"), NOW)
    assert found == datetime.fromisoformat(begins)


@given(
    st.sampled_from([*REPEATS]), st.integers(-40 * 24 * 60, 40 * 24 * 60), st.integers(1, 24 * 60), st.data()
)
def test_no_time_in_the_past_is_asked_for(
    repeat: str, offset: int, minutes: int, data: st.DataObject
) -> None:
    start = NOW.replace(second=data.draw(st.just(0))) + timedelta(minutes=offset)
    reservation = Reservation(
        "a", start, start + timedelta(minutes=minutes), repeat, users=("ada",), nodes=("n",)
    )
    begins = next_start(reservation, NOW)
    assert begins >= NOW
    if repeat != "once":
        assert begins.time() == start.time()
        assert begins - max(start, NOW) < timedelta(days=8)


@st.composite
def reservations(draw: st.DrawFn) -> list[Reservation]:
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    return [
        one(
            name=name,
            end=draw(st.sampled_from(["2026-12-08T12:00", "2026-12-08T13:00"])),
            slices={"1g.10gb": draw(st.integers(1, 2))},
            accounts=draw(st.sampled_from([["course"], ["course", "physics"]])),
        )
        for name in names
    ]


@given(reservations(), reservations())
def test_the_calls_lead_to_what_is_declared(before: list[Reservation], after: list[Reservation]) -> None:
    there = shown(*before)
    for words in commands(after, there, NOW, "farm"):
        values = dict(word.split("=", 1) for word in words if "=" in word)
        name = values["ReservationName"]
        assert name != "theirs"
        if words[0] == "delete":
            del there[name]
        else:
            assert (name in there) == (words[0] == "update")
            there[name] = Shown("", False, values["Comment"])
    assert commands(after, there, NOW, "farm") == []
    assert {name for name in there if name != "theirs"} == {each.name for each in after}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"name": "a b"}, "has a name that Slurm does not take"),
        ({"name": "a,b"}, "has a name that Slurm does not take"),
        ({"start": "tomorrow"}, "has the start 'tomorrow'; give a local time such as"),
        ({"end": "2026-12-08T13:00:00+01:00"}, "has the end '2026-12-08T13:00:00+01:00'"),
        ({"end": "2026-12-08T09:00"}, "which is not after its start"),
        ({"repeat": "daily", "end": "2026-12-09T10:00"}, "is repeated before it has ended"),
        ({"repeat": "hourly"}, "is repeated 'hourly'; give one of once, daily, "),
        ({"accounts": []}, "is for nobody"),
        ({"accounts": ["a Users=root"]}, "has 'a Users=root' among its accounts"),
        ({"users": ["ada,root"]}, "has 'ada,root' among its users"),
        ({"nodes": ["gpu1"]}, "names nodes and slices to reserve"),
        ({"slices": None}, "names nothing to reserve"),
        ({"slices": None, "nodes": ["gpu[1-9]"]}, "has 'gpu[1-9]' among its nodes"),
        ({"slices": None, "nodes": ["gpu1"]}, "names both nodes and a partition"),
        ({"partition": None}, "says no partition"),
        ({"partition": "a b"}, "takes the partition 'a b'"),
        ({"slices": {"1g,node=9": 1}}, "names slices '1g,node=9'"),
        ({"slices": {"1g.10gb": "many"}}, "has 'many' for 1g.10gb"),
        ({"slices": None, "node_count": -1}, "has -1 for node_count"),
    ],
)
def test_what_cannot_be_is_refused(change: dict[str, Any], sentence: str) -> None:
    settings = {"cluster": "farm", "accounts": [], "qos": [], "reservations": [entry(**change)]}
    [told, *_more] = plan(settings)["problems"]
    assert sentence in told
    assert told.endswith(".")
    with pytest.raises(ReservationsProblem) as refused:
        read_request([entry(**change)])
    assert sentence in str(refused.value)


def test_one_name_is_declared_once() -> None:
    with pytest.raises(ReservationsProblem, match="declared twice"):
        read_request([entry(), entry()])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            {"slices": None, "partition": None, "nodes": ["gpu3"]},
            "the node gpu3, which the cluster does not have",
        ),
        ({"partition": "fast"}, "which the cluster does not have; name one of cpu, gpu."),
        ({"slices": {"1g.10gb": 15}}, "takes 15 of 1g.10gb, and the partition gpu has 14"),
        ({"slices": {"7g.80gb": 1}}, "takes 1 of 7g.80gb, and the partition gpu has 0"),
    ],
)
def test_the_cluster_is_asked_whether_it_can(change: dict[str, Any], sentence: str) -> None:
    assert sentence in misfits([one(**change)], {}, THERE, "farm")
    assert misfits([one()], {}, THERE, "farm") == ""


def test_answers_of_slurm_are_read() -> None:
    assert read_shown("No reservations in the system\n") == {}
    assert read_shown(THEIRS)["theirs"].active
    odd = f"{THEIRS} Comment=for all ReservationName=course State=INACTIVE Comment={one().mark('farm')}"
    found = read_shown(odd)
    assert [*found] == ["theirs"] and found["theirs"].active and not found["theirs"].is_ours("farm")
    printed = "gpu1|gpu|gpu:1g.10gb:4(S:0),gpu:3g.40gb:1(S:0)\ngpu1|all|gpu:1g.10gb:4(S:0)\nn2|gpu|(null)\n"
    assert read_machines(printed) == Machines(
        frozenset({"gpu1", "n2"}), {"gpu": {"1g.10gb": 4, "3g.40gb": 1}, "all": {"1g.10gb": 4}}
    )
    assert read_release("slurm 24.11.5\n") == (24, 11)
    assert read_release("slurm-wlm 22.05.8") == (22, 5)
    assert read_release("") == ()
