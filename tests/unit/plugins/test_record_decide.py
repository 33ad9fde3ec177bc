"""The record decides who may run a role on a machine, and which steps are needed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._record import decide
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.decide import Decision, Refused, Request
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import Entry
from hypothesis import given
from hypothesis import strategies as st

ASKED = Request("mig", "ada", variables="v1", version="c1")
MADE = Entry(variables="v1", version="c1", made={"paths": {"/etc/x": "1"}}, result={"a": 1}, complete=True)
OTHER = replace(MADE, variables="v2")
ABSENT = replace(ASKED, state="absent")


def test_a_machine_without_a_record_is_set_up() -> None:
    assert decide.present(ASKED, {}, drifted=False) == Decision("present")


def test_an_unchanged_machine_needs_nothing() -> None:
    assert decide.present(ASKED, {"ada": MADE}, drifted=False) == Decision(by=MADE)


@pytest.mark.parametrize(
    ("asked", "entry", "drifted"),
    [
        pytest.param(ASKED, MADE, True, id="the machine has changed"),
        pytest.param(replace(ASKED, variables="v2"), MADE, False, id="other variables"),
        pytest.param(replace(ASKED, version="c2"), MADE, False, id="another version of the collection"),
        pytest.param(ASKED, replace(MADE, complete=False), False, id="the run before did not end"),
        pytest.param(replace(ASKED, full_run=True), MADE, False, id="the operator wants it"),
        pytest.param(replace(ASKED, variables=""), replace(MADE, variables=""), False, id="not known before"),
    ],
)
def test_a_role_runs_when_its_record_does_not_hold(asked: Request, entry: Entry, drifted: bool) -> None:
    assert decide.present(asked, {"ada": entry}, drifted).run == "present"


def test_a_role_that_depends_on_others_runs_and_knows_that_at_most_these_have_changed() -> None:
    asked = replace(ASKED, alone=False)
    assert decide.present(asked, {"ada": MADE}, drifted=False) == Decision("present", unchanged=True)
    assert not decide.present(asked, {}, drifted=False).unchanged
    assert not decide.present(asked, {"ada": MADE}, drifted=True).unchanged
    assert not decide.present(replace(asked, full_run=True), {"ada": MADE}, drifted=False).unchanged


def test_another_owner_with_the_same_settings_joins() -> None:
    decision = decide.present(replace(ASKED, owner="bob"), {"ada": MADE}, drifted=False)
    assert (decision.run, decision.by) == ("", MADE)
    assert decision.entries == {"ada": MADE, "bob": MADE}


def test_another_owner_with_other_settings_is_refused_and_told_who_was_first() -> None:
    first = replace(OTHER, at="2026-11-25T10:11:12+00:00", operator="carol", inventory="/site/hosts.yml")
    with pytest.raises(
        Refused, match=r"mig was applied .* by bob with other settings \(2026-11-25 10:11, by carol"
    ):
        decide.present(ASKED, {"bob": first}, drifted=False)
    with pytest.raises(Refused):
        decide.claimed(ASKED, {"bob": first}, Entry(), {})


def test_the_operator_may_take_over() -> None:
    asked = replace(ASKED, take_over=True)
    assert decide.present(asked, {"bob": OTHER}, drifted=False).run == "present"
    assert decide.claimed(asked, {"bob": OTHER}, Entry(), {}).keys() == {"ada"}


def test_an_owner_who_only_verifies_is_in_the_way_of_nobody() -> None:
    verifier = replace(ASKED, owns=False)
    assert decide.present(verifier, {"bob": OTHER}, drifted=False).run == "present"
    both = decide.claimed(verifier, {"bob": OTHER}, Entry(), {})
    assert both.keys() == {"ada", "bob"}
    assert decide.present(replace(ASKED, owner="bob", variables="v3"), both, drifted=False).run == "present"


def test_a_role_that_divides_the_machine_judges_other_owners_itself() -> None:
    asked = replace(ASKED, divided=True)
    assert decide.present(asked, {"bob": OTHER}, drifted=False).run == "present"
    assert decide.present(asked, {"bob": MADE}, drifted=False).run == "present"
    assert (
        decide.absent(replace(asked, state="absent"), {"ada": MADE, "bob": OTHER}, left=True).run == "absent"
    )


def test_a_claim_keeps_what_was_made_before_and_is_not_complete() -> None:
    claimed = decide.claimed(replace(ASKED, variables="v3"), {"ada": MADE}, Entry(operator="carol"), {})[
        "ada"
    ]
    assert (claimed.made, claimed.complete, claimed.operator) == (MADE.made, False, "carol")


def test_an_owner_removes_what_it_made() -> None:
    begun = {"ada": replace(MADE, complete=False)}
    assert decide.absent(ABSENT, {"ada": MADE}, left=True) == Decision("absent", entries=begun)
    assert decide.forgotten(ABSENT, {"ada": MADE}) == {}


def test_an_owner_whose_run_failed_removes_too() -> None:
    assert decide.absent(ABSENT, {"ada": Entry()}, left=True).run == "absent"


def test_what_another_owner_made_stays() -> None:
    decision = decide.absent(ABSENT, {"bob": OTHER}, left=True)
    assert (decision.run, decision.entries) == ("", None)
    assert "applied to this machine by bob" in decision.note


def test_what_is_shared_goes_with_its_last_owner() -> None:
    first = decide.absent(ABSENT, {"ada": MADE, "bob": MADE}, left=True)
    assert (first.run, first.entries) == ("", {"bob": MADE})
    assert decide.absent(replace(ABSENT, owner="bob"), first.entries or {}, left=True).run == "absent"


def test_nothing_is_removed_without_a_record() -> None:
    with pytest.raises(Refused, match=r"No record .* gpufarm_take_over=true"):
        decide.absent(ABSENT, {}, left=True)
    assert decide.absent(ABSENT, {}, left=False) == Decision()
    assert decide.absent(replace(ABSENT, withdraw=True), {}, left=True) == Decision()
    assert decide.absent(replace(ABSENT, take_over=True), {}, left=True).run == "absent"


@pytest.mark.parametrize("record", [{"ada": MADE}, {"ada": MADE, "bob": OTHER}, {"bob": OTHER}])
@pytest.mark.parametrize("divided", [False, True])
@pytest.mark.parametrize("take_over", [False, True])
def test_an_owner_who_made_nothing_goes_off_the_record_and_removes_nothing(
    record: dict[str, Entry], divided: bool, take_over: bool
) -> None:
    asked = replace(ABSENT, withdraw=True, divided=divided, take_over=take_over)
    decision = decide.absent(asked, record, left=True)
    assert decision.run == ""
    after = record if decision.entries is None else decision.entries
    assert after == {owner: entry for owner, entry in record.items() if owner != "ada"}


def test_the_first_run_of_a_role_remembers_what_was_before() -> None:
    before = decide.to_remember(ASKED, {}, {"HOME": "/export"}, left=False)
    assert before == {"HOME": "/export"}
    assert decide.claimed(ASKED, {}, Entry(), before)["ada"].before == {"HOME": "/export"}


def test_a_later_run_and_another_owner_keep_what_is_recorded() -> None:
    record = {"ada": replace(MADE, before={"HOME": "/export"})}
    for asked in (ASKED, replace(ASKED, owner="bob"), replace(ASKED, owner="bob", take_over=True)):
        before = decide.to_remember(asked, record, {"HOME": "/srv/home", "more": "of the role"}, left=True)
        assert before == {"HOME": "/export"}
        assert decide.claimed(asked, record, Entry(), before)[asked.owner].before == before


def test_what_a_role_has_changed_without_a_record_of_it_is_not_remembered() -> None:
    found = {"HOME": "/srv/home"}
    assert decide.to_remember(ASKED, {}, found, left=True) == {}
    assert decide.to_remember(ASKED, {"ada": MADE}, found, left=False) == {}
    assert decide.to_remember(ASKED, {"bob": replace(MADE, owns=False)}, found, left=False) == found


def test_settings_outlive_a_run_that_was_killed_and_those_after_it_that_set_nothing_up() -> None:
    record = decide.claimed(ASKED, {}, Entry(), {"HOME": "/export"})  # and killed
    nothing = replace(ASKED, owns=False, variables="v2")
    for _ in range(2):
        record = decide.claimed(nothing, record, Entry(), decide.to_remember(nothing, record, {}, left=True))
        record = {"ada": replace(record["ada"], complete=True)}
    assert decide.to_remember(ASKED, record, {"HOME": "/srv/home"}, left=True) == {"HOME": "/export"}
    ended = {"ada": replace(MADE, before={"HOME": "/export"})}
    assert decide.claimed(nothing, ended, Entry(), {"HOME": "/export"})["ada"].before == {}


def test_each_owner_of_a_divided_machine_adds_what_it_has_not_changed() -> None:
    record = {"bob": replace(OTHER, before={"GPU-1": "on"})}
    before = decide.to_remember(
        replace(ASKED, divided=True), record, {"GPU-1": "off", "GPU-2": "off"}, left=True
    )
    assert before == {"GPU-1": "on", "GPU-2": "off"}


@pytest.mark.parametrize(
    ("others", "before"),
    [
        pytest.param([], {"key": "now", "own": "now"}, id="no other role is there"),
        pytest.param([{"key": "before"}], {"key": "before", "own": "now"}, id="it remembers"),
        pytest.param([{}], {"own": "now"}, id="it came with an earlier version"),
        pytest.param([{}, {"key": "before"}], {"key": "before", "own": "now"}, id="of two one remembers"),
    ],
)
def test_a_setting_that_another_role_has_changed_is_as_that_role_found_it(
    others: list[dict[str, str]], before: dict[str, str]
) -> None:
    records = [{"bob": replace(OTHER, before=one)} for one in others]
    found = {"key": "now", "own": "now"}
    assert decide.found_beside(found, {"key": records, "not found": records}) == before
    assert found == {"key": "now", "own": "now"}


def test_another_role_that_only_verifies_has_changed_nothing() -> None:
    records = [{"bob": replace(OTHER, owns=False, before={})}]
    assert decide.found_beside({"key": "now"}, {"key": records}) == {"key": "now"}


owners = st.sampled_from(["ada", "bob", "carol"])
settings = st.dictionaries(st.sampled_from(["a", "b"]), st.sampled_from(["x", "y"]))
entries = st.builds(
    Entry,
    owns=st.booleans(),
    variables=st.sampled_from(["", "v1", "v2"]),
    version=st.sampled_from(["c1", "c2"]),
    complete=st.booleans(),
    before=settings,
)
records = st.dictionaries(owners, entries)
requests = st.builds(
    Request,
    role=st.just("mig"),
    owner=owners,
    variables=st.sampled_from(["", "v1", "v2"]),
    version=st.sampled_from(["c1", "c2"]),
    owns=st.booleans(),
    divided=st.booleans(),
    full_run=st.booleans(),
)


@given(requests, records)
def test_no_run_removes_or_changes_what_only_others_made(asked: Request, record: dict[str, Entry]) -> None:
    others = {owner for owner in record if owner != asked.owner}
    needing = [owner for owner in others if not record[owner].switched_off]
    try:
        removal = decide.absent(replace(asked, state="absent"), record, left=True)
    except Refused:
        assert not record
    else:
        assert removal.run != "absent" or (asked.owner in record and (not needing or asked.divided))
        assert others <= (record if removal.entries is None else removal.entries).keys()
    try:
        after = decide.claimed(asked, record, Entry(), {})
    except Refused:
        return
    lost = record.keys() - after.keys()
    assert not lost, "only who takes over ends the entry of another owner"


@given(requests, records, st.booleans())
def test_nothing_is_skipped_but_by_a_complete_entry_with_the_same_settings(
    asked: Request, record: dict[str, Entry], drifted: bool
) -> None:
    try:
        decision = decide.present(asked, record, drifted)
    except Refused:
        return
    if decision.run == "":
        assert decision.by in record.values()
        assert decision.by.complete
        assert not drifted
        assert not asked.full_run
        assert (decision.by.variables, decision.by.version) == (asked.variables, asked.version)
        assert asked.variables


@given(requests, records, settings, st.booleans(), st.booleans())
def test_no_claim_changes_what_is_remembered(
    asked: Request, record: dict[str, Entry], found: dict[str, str], left: bool, take_over: bool
) -> None:
    asked = replace(asked, take_over=take_over)
    before = decide.to_remember(asked, record, found, left)
    known = decide.remembered(record)
    assert known.items() <= before.items()
    assert before.items() <= {**found, **known}.items()
    try:
        after = decide.claimed(asked, record, Entry(), before)
    except Refused:
        return
    if not asked.owns:
        earlier = record.get(asked.owner, Entry())
        assert after[asked.owner].before == ({} if earlier.owns and earlier.complete else earlier.before)
        return
    assert after[asked.owner].before == before
    assert decide.to_remember(asked, after, {"a": "changed"}, left=True).items() >= before.items()
    if not asked.divided:
        again = decide.to_remember(asked, after, {"a": "changed", "b": "changed"}, left=False)
        assert "changed" not in again.values(), "a run that was killed after the claim has changed it"
