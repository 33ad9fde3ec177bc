"""A slow machine is told from a slow link between two."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter.slow_links import FilterModule
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.neighbours import Link, suspects
from hypothesis import given
from hypothesis import strategies as st

NAME = "mpi.10.1.0.0/16.gb_s"
TIME = "mpi.10.1.0.0/16.latency_us"
slow_links = FilterModule().filters()["slow_links"]


def told(
    values: list[float], name: str = NAME, failures: dict[str, list[dict[str, str]]] | None = None
) -> dict[str, list[str]]:
    """Return what is told of a ring of machines n0, n1, ..., from what each has measured to the next."""
    peers = [f"n{number}" for number in range(len(values))]
    measured = {peer: {name: value} for peer, value in zip(peers, values, strict=True)}
    others = {
        peer: {name: following} for peer, following in zip(peers, [*peers[1:], *peers[:1]], strict=True)
    }
    found: dict[str, list[str]] = slow_links(measured, others, failures or {})
    return found


def test_links_that_are_alike_name_nobody() -> None:
    assert told([1.0, 1.1, 0.9, 1.0]) == {} == told([1.9, 1.0, 1.1], TIME)


@pytest.mark.parametrize("number", [3, 4, 5, 40])
def test_a_machine_that_is_slow_with_both_neighbours_is_named_and_its_links_are_not(number: int) -> None:
    found = told([1.2, 0.3, 0.31, *[1.2] * (number - 3)])
    assert found == {
        "n2": [
            f"n2 is slow with all its neighbours: {NAME} is 0.3 with n1 and 0.31 with n3, and usually 1.2; "
            "look at its adapter, its cable, and its port of the switch."
        ]
    } or (number == 3 and [*found] == ["n2"] and "0.31 with n0" in found["n2"][0])


def test_a_slow_link_of_fast_machines_is_named() -> None:
    assert told([1.2, 1.2, 0.3, 1.2]) == {
        "n2": [
            f"The link from n2 to n3 is slow: {NAME} is 0.3, and usually 1.2; both are fast with others, so "
            "look at the way between them."
        ]
    }


def test_of_times_the_long_ones_are_slow() -> None:
    assert [*told([2.0, 2.0, 9.0, 9.0, 2.0], TIME)] == ["n3"]
    assert [*told([2.0, 2.0, 0.1, 0.1, 2.0], TIME)] == ["n0", "n1"]


def test_between_two_machines_nobody_knows_which_it_is() -> None:
    (sentence,) = told([1.2, 0.3])["n1"]
    assert "no other neighbour tells which it is" in sentence


def test_a_link_that_was_not_measured_is_slow_whatever_it_was_before() -> None:
    failed = {f"n{number}": [{"prefix": "mpi.10.1.0.0/16.", "peer": f"n{number + 1}"}] for number in range(3)}
    (sentence,) = told([1.0] * 4, failures={"n1": failed["n1"]})["n1"]
    assert "from n1 to n2 is slow" in sentence and "is not measured, and usually 1;" in sentence
    found = told([1.0] * 4, failures={"n1": failed["n1"], "n2": failed["n2"]})
    assert [*found] == ["n2"] and "not measured with n1 and not measured with n3" in found["n2"][0]


def test_a_machine_that_never_measured_a_link_is_told_of_it_too() -> None:
    values = {"n0": {NAME: 1.0}, "n1": {"hpl_gflops": 1.0}, "n2": {NAME: 1.0}}
    others = {"n0": {NAME: "n1"}, "n2": {NAME: "n0"}}
    (sentence,) = slow_links(values, others, {"n1": [{"prefix": "mpi.", "peer": "n2"}]})["n1"]
    assert "The link from n1 to n2 is slow" in sentence


def test_a_value_is_of_the_machine_that_it_was_measured_with() -> None:
    values = {"n0": {NAME: 0.3}, "n1": {NAME: 1.0}, "n2": {NAME: 1.0}}
    others = {"n0": {NAME: "n9"}, "n1": {NAME: "n2"}, "n2": {NAME: "n0"}}
    (sentence,) = slow_links(values, others, {})["n0"]
    assert "The link from n0 to n9 is slow" in sentence


def test_machines_of_which_nothing_is_known_accuse_nobody() -> None:
    values = {"n1": {NAME: 0.3}, "n2": {NAME: 1.0}, "n3": {NAME: 1.0}}
    others = {"n1": {NAME: "n2"}, "n2": {NAME: "n3"}, "n3": {NAME: "n0"}}
    # Nothing is known of a link from n0 to n1, so n1 has one neighbour.
    found = slow_links(values, others, {})
    assert [*found] == ["n1"] and "The link from n1 to n2" in found["n1"][0]
    assert slow_links({"n0": {"hpl_gflops": 1.0}, "n1": {"hpl_gflops": 9.0}}, {}, {}) == {}
    assert slow_links({}, {}, {}) == {}


def test_if_no_link_works_nobody_is_named() -> None:
    failures = {f"n{number}": [{"prefix": "mpi.", "peer": f"n{(number + 1) % 3}"}] for number in range(3)}
    assert told([1.0] * 3, failures=failures) == {}


@given(st.integers(4, 30), st.data())
def test_exactly_the_slow_machine_of_a_ring_is_named(number: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(0.9, 1.1), min_size=number, max_size=number))
    slow = data.draw(st.integers(0, number - 1))
    values[slow] = values[slow - 1] = data.draw(st.floats(0.0001, 0.6))
    assert [*told(values)] == [f"n{slow}"]


def test_values_of_other_machines_are_compared_by_name_alone() -> None:
    links = [Link("a.gb_s", "x", "y", 1.0), Link("b.gb_s", "x", "y", 9.0), Link("b.gb_s", "y", "z", 9.0)]
    assert suspects(links) == {}
