"""What users may write for a partition flavor, and what they are told when it cannot be read."""

from __future__ import annotations

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter.mig_flavor_problem import mig_flavor_problem
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig_flavor import (
    Flavor,
    FlavorError,
    parse_flavor,
)
from hypothesis import given
from hypothesis import strategies as st

PROFILES = st.builds(
    "{}g.{}gb{}".format,
    st.integers(1, 8),
    st.integers(1, 300),
    st.sampled_from(["", "+me", "-me", "+gfx", "+me.all"]),
)
LAYOUTS = st.dictionaries(PROFILES, st.integers(1, 9), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "flavor"),
    [
        # the four that the forms of INFN Cloud offer
        ("None", Flavor("None")),
        ("2x 3g.40gb MIG GPUs", Flavor("layout", (("3g.40gb", 2),))),
        ("3x 2g.20gb MIG GPUs", Flavor("layout", (("2g.20gb", 3),))),
        ("7x 1g.10gb MIG GPUs", Flavor("layout", (("1g.10gb", 7),))),
        ("disabled", Flavor("disabled")),
        ("1x 3g.40gb, 2x 2g.20gb", Flavor("layout", (("3g.40gb", 1), ("2g.20gb", 2)))),
        (" 1 x 1g.24gb+me.all,3x1g.24gb-me ", Flavor("layout", (("1g.24gb+me.all", 1), ("1g.24gb-me", 3)))),
    ],
)
def test_what_is_read(text: str, flavor: Flavor) -> None:
    assert parse_flavor(text) == flavor


@given(LAYOUTS, st.sampled_from(["", " MIG GPUs"]), st.sampled_from([", ", ",", " , "]))
def test_every_layout_is_read_as_it_was_written(layout: dict[str, int], suffix: str, comma: str) -> None:
    text = comma.join(f"{count}x {name}" for name, count in layout.items()) + suffix
    flavor = parse_flavor(text)
    assert dict(flavor.profiles) == layout
    assert parse_flavor(str(flavor)) == flavor


@given(st.text())
def test_any_other_text_is_refused_with_its_own_words(text: str) -> None:
    try:
        parse_flavor(text)
    except FlavorError as error:
        assert text in str(error)


@pytest.mark.parametrize(
    "text",
    ["", "none", "7", "7x", "0x 1g.10gb", "7x 1g", "1g.10gb", "7x 1g.10gb,", "-1x 1g.10gb", "7x 1G.10GB"],
)
def test_a_refusal_shows_the_forms_that_are_read(text: str) -> None:
    problem = mig_flavor_problem(text)
    assert f"'{text}'" in problem
    assert "1x 3g.40gb, 2x 2g.20gb" in problem
    assert mig_flavor_problem("7x 1g.10gb") == ""


def test_a_profile_named_twice_is_refused() -> None:
    with pytest.raises(FlavorError, match=r"names the profile 1g\.10gb twice"):
        parse_flavor("1x 1g.10gb, 2x 1g.10gb")
