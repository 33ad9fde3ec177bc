"""Grammar of partition flavors, and errors for invalid flavors."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import (
    FLAVOR_PATTERN,
    Flavor,
    FlavorError,
    Item,
    parse_flavor,
    parse_layout,
    plan,
)
from hypothesis import given
from hypothesis import strategies as st

PROFILES = st.builds(
    "{}g.{}gb{}".format,
    st.integers(1, 8),
    st.integers(1, 300),
    st.sampled_from(["", "+me", "-me", "+gfx", "+me.all"]),
)


def problems(flavor: str) -> list[str]:
    """The problems of a flavor as the role sees them."""
    found: list[str] = plan({"partition_flavor": flavor})["problems"]
    return found


def layout(*items: Item) -> Flavor:
    return Flavor("layout", items)


LAYOUTS = st.dictionaries(PROFILES, st.integers(1, 9), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "flavor"),
    [
        # the four that the forms of INFN Cloud offer
        ("None", Flavor("None")),
        ("2x 3g.40gb MIG GPUs", layout(Item("3g.40gb", 2))),
        ("3x 2g.20gb MIG GPUs", layout(Item("2g.20gb", 3))),
        ("7x 1g.10gb MIG GPUs", layout(Item("1g.10gb", 7))),
        ("disabled", Flavor("disabled")),
        ("1x 3g.40gb, 2x 2g.20gb", layout(Item("3g.40gb"), Item("2g.20gb", 2))),
        (" 1 x 1g.24gb+me.all,3x1g.24gb-me ", layout(Item("1g.24gb+me.all"), Item("1g.24gb-me", 3))),
        ("2x 1g.24gb+gfx", layout(Item("1g.24gb+gfx", 2))),
        ("7x 1g", layout(Item("1g", 7))),
        # compute instances share GPU instances
        ("3x 1c.3g.40gb", layout(Item("3g.40gb", 1, (1, 1, 1)))),
        ("4x 1c.3g.40gb", layout(Item("3g.40gb", 1, (1, 1, 1)), Item("3g.40gb", 1, (1,)))),
        ("1x 1c.3g.40gb, 1x 2c.3g.40gb", layout(Item("3g.40gb", 1, (2, 1)))),
        ("2x 2c.3g.40gb", layout(Item("3g.40gb", 2, (2,)))),
        ("1x 3c.3g.40gb, 3x 1c.3g.40gb", layout(Item("3g.40gb"), Item("3g.40gb", 1, (1, 1, 1)))),
    ],
)
def test_what_is_read(text: str, flavor: Flavor) -> None:
    assert parse_flavor(text) == flavor


@given(LAYOUTS, st.sampled_from(["", " MIG GPUs"]), st.sampled_from([", ", ",", " , "]))
def test_every_layout_is_read_as_it_was_written(wanted: dict[str, int], suffix: str, comma: str) -> None:
    text = comma.join(f"{count}x {name}" for name, count in wanted.items()) + suffix
    flavor = parse_flavor(text)
    assert {item.profile: item.count for item in flavor.items} == wanted
    assert parse_flavor(str(flavor)) == flavor


@given(st.text())
def test_any_other_text_is_refused_with_its_own_words(text: str) -> None:
    try:
        parse_flavor(text)
    except FlavorError as error:
        assert text in str(error)


@pytest.mark.parametrize(
    "text",
    ["", "none", "7", "7x", "0x 1g.10gb", "1000x 1g", "1g.10gb", "7x 1g.10gb,", "-1x 1g.10gb", "7x 1G.10GB"],
)
def test_a_refusal_shows_the_forms_that_are_read(text: str) -> None:
    [problem] = problems(text)
    assert f"'{text}'" in problem
    assert "1x 3g.40gb, 2x 2g.20gb" in problem
    assert problems("7x 1g.10gb") == []


def test_a_profile_named_twice_is_refused() -> None:
    with pytest.raises(FlavorError, match=r"names the profile 1g\.10gb twice"):
        parse_flavor("1x 1g.10gb, 2x 1g.10gb")


def test_a_compute_instance_wider_than_its_gpu_instance_is_refused() -> None:
    with pytest.raises(FlavorError, match=r"asks for 4c\.3g\.40gb, but 3g\.40gb has only 3 compute slices"):
        parse_flavor("1x 4c.3g.40gb")


@given(st.dictionaries(st.tuples(st.integers(1, 7), st.integers(1, 7)), st.integers(1, 20), min_size=1))
def test_compute_instances_are_packed_into_gpu_instances_that_hold_them(
    wanted: dict[tuple[int, int], int],
) -> None:
    wanted = {(width, slices): count for (width, slices), count in wanted.items() if width <= slices}
    if not wanted:
        return
    text = ", ".join(f"{count}x {width}c.{slices}g.5gb" for (width, slices), count in wanted.items())
    found: Counter[tuple[int, int]] = Counter()
    for item in parse_flavor(text).items:
        slices = int(item.profile[0])
        compute = item.compute or (slices,)
        assert sum(compute) <= slices
        for width in compute:
            found[(width, slices)] += item.count
    assert found == Counter(wanted)


# layouts


@pytest.mark.parametrize(
    ("entries", "flavor"),
    [
        ([], layout()),
        ([{"profile": "3g.40gb"}], layout(Item("3g.40gb"))),
        ([{"profile": "1g.10gb", "count": 7}], layout(Item("1g.10gb", 7))),
        ([{"profile": "3g.40gb", "start": 4}], layout(Item("3g.40gb", 1, None, 4))),
        # what the module of Ansible makes of options that were left out
        (
            [{"profile": "3g.40gb", "count": 1, "start": None, "compute_instances": None}],
            layout(Item("3g.40gb")),
        ),
        ([{"profile": "3g.40gb", "compute_instances": ["3g.40gb"]}], layout(Item("3g.40gb"))),
        ([{"profile": "3g.40gb", "compute_instances": ["3c"]}], layout(Item("3g.40gb"))),
        (
            [{"profile": "3g.40gb", "compute_instances": ["1c.3g.40gb", "2c.3g.40gb"]}],
            layout(Item("3g.40gb", 1, (2, 1))),
        ),
        ([{"profile": "3g.40gb", "compute_instances": ["3x 1c"]}], layout(Item("3g.40gb", 1, (1, 1, 1)))),
        ([{"profile": "3g.40gb", "compute_instances": []}], layout(Item("3g.40gb", 1, ()))),
    ],
)
def test_what_a_layout_says(entries: list[dict[str, Any]], flavor: Flavor) -> None:
    assert parse_layout(entries) == flavor


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "Entry 2 of the MIG layout names the profile 'None', which is no GPU instance"),
        ({"profile": "1c.3g.40gb"}, "names the profile '1c.3g.40gb', which is no GPU instance"),
        ({"profile": "3g.40gb", "count": 0}, "has the count '0'"),
        ({"profile": "3g.40gb", "count": True}, "has the count 'True'"),
        ({"profile": "3g.40gb", "count": 10**9}, "has the count '1000000000'"),
        ({"profile": "3g.40gb", "start": -1}, "has the start '-1'"),
        ({"profile": "3g.40gb", "start": 0, "count": 2}, "wants 2 instances that start at 0"),
        ({"profile": "3g.40gb", "places": [0]}, "has the key 'places', which means nothing"),
        ({"profile": "3g.40gb", "compute_instances": "3c"}, "has no list of compute instances"),
        ({"profile": "3g.40gb", "compute_instances": ["4x 1c"]}, "compute instances of 4 compute slices"),
        ({"profile": "3g.40gb", "compute_instances": ["1c.2g.20gb"]}, "is none of 3g.40gb"),
        ({"profile": "3g.40gb", "compute_instances": ["half"]}, "'half', which is none of 3g.40gb"),
    ],
)
def test_a_layout_that_says_nothing_is_refused(entry: dict[str, Any], said: str) -> None:
    with pytest.raises(FlavorError, match=re.escape(said)):
        parse_layout([{"profile": "1g.10gb"}, entry])


ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.sampled_from(["1c", "3g.40gb", "2x 1c"]),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["profile", "count", "start", "compute_instances", "x", 7]), ANYTHING, max_size=5
        )
        | ANYTHING,
        max_size=3,
    )
)
def test_any_other_layout_is_refused_in_one_sentence(entries: list[Any]) -> None:
    try:
        flavor = parse_layout(entries)
    except FlavorError as error:
        assert str(error).startswith("Entry ")
    else:
        assert len(flavor.items) == len(entries)


# Of one who types, and of one who mistypes.
PARTS = st.sampled_from(
    [
        "7x ",
        "1 x ",
        "1000x ",
        "1c.",
        "3g.40gb",
        "1g",
        "+me",
        "-me.all",
        "0g.5gb",
        ", ",
        " ",
        "None",
        " MIG GPU",
        " MIG GPUs",
    ]
)


@given(st.one_of(st.lists(PARTS, max_size=9).map("".join), st.sampled_from(["enabled", "disabled"])))
def test_the_pattern_matches_every_flavor_and_nothing_that_has_another_form(text: str) -> None:
    assert bool(re.fullmatch(FLAVOR_PATTERN, text)) == ("is not understood" not in "".join(problems(text)))
