"""Every job has its turn, and what was proved longest ago goes first."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from proof.turns import AFFECTED, OTHERS, by_age_of_proof

JOBS = [f"job{number:02}" for number in range(11)]
LANDINGS = st.lists(st.sets(st.sampled_from(JOBS)), max_size=30)


def test_without_landings_the_order_is_that_of_the_alphabet():
    assert by_age_of_proof(reversed(JOBS), []) == JOBS


@given(LANDINGS)
def test_no_job_is_lost(landings: list[set[str]]):
    assert sorted(by_age_of_proof(JOBS, landings)) == JOBS


@given(LANDINGS, st.sets(st.sampled_from(JOBS)))
def test_what_the_last_landing_affected_goes_last(landings: list[set[str]], last: set[str]):
    order = by_age_of_proof(JOBS, [*landings, last])
    assert set(order[len(JOBS) - len(last) :]) == last


@given(LANDINGS)
def test_jobs_that_nothing_affects_have_their_turn_one_after_the_other(landings: list[set[str]]):
    rounds = -(-len(JOBS) // OTHERS)
    ran: set[str] = set()
    for count in range(rounds):
        ran |= set(by_age_of_proof(JOBS, [*landings, *([set()] * count)])[:OTHERS])
    assert ran == set(JOBS)


def test_what_a_run_may_have_left_out_of_too_many_goes_first():
    jobs = [f"job{number:02}" for number in range(AFFECTED + 9)]
    order = by_age_of_proof(jobs, [set(jobs[:-1])])
    assert order == [*jobs[AFFECTED:], *jobs[:AFFECTED]]
