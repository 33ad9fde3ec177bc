"""Data that a job declares: names are data, and nothing is guessed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import string

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.declared import (
    Declared,
    Item,
    Place,
    StagingError,
    parse,
    parse_input,
    parse_output,
    shown,
)
from hypothesis import given
from hypothesis import strategies as st

STORES = ("bulk", "home")
# Parts of paths as the kernel takes them, quotes, line breaks, colons and leading dashes included.
ODD = st.text(alphabet=string.ascii_letters + " .-:'\"\n\\$*?\x1b\u00e9\udce9", min_size=1, max_size=12)
PARTS = ODD.filter(lambda text: text not in (".", ".."))
NAMES = PARTS.filter(lambda text: not text.startswith(".gpufarm"))
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)


@given(st.sampled_from(STORES), PATHS, NAMES.filter(lambda text: ":" not in text))
def test_what_is_written_as_an_input_is_what_is_meant(store: str, path: str, name: str) -> None:
    assert parse_input(f"{store}/{path}:{name}", STORES) == Item(name, Place(store, path))


@given(st.sampled_from(STORES), st.lists(PARTS, max_size=3), NAMES)
def test_an_input_keeps_its_name(store: str, above: list[str], last: str) -> None:
    path = "/".join([*above, last])
    assert parse_input(f"{store}/{path}:", STORES) == Item(last, Place(store, path))
    if ":" not in path:
        assert parse_input(f"{store}/{path}", STORES) == Item(last, Place(store, path))
        assert parse_input(f"{store}/{path}/", STORES) == Item(last, Place(store, path))


@given(
    NAMES.filter(lambda text: ":" not in text), st.sampled_from(STORES), st.lists(PARTS, max_size=3), NAMES
)
def test_what_is_written_as_an_output_is_what_is_meant(
    name: str, store: str, above: list[str], last: str
) -> None:
    path = "/".join([*above, last])
    assert parse_output(f"{name}:{store}/{path}", STORES) == Item(name, Place(store, path))


@given(st.text(max_size=40))
def test_any_text_is_understood_or_refused_in_a_sentence(text: str) -> None:
    for function in (parse_input, parse_output):
        try:
            item = function(text, STORES)
        except StagingError as error:
            assert str(error) and not str(error).endswith(".")
        else:
            assert item.name not in ("", ".", "..") and "/" not in item.name and item.place.store in STORES
            assert not {"", ".", ".."} & set(item.place.path.split("/"))


@given(st.lists(st.builds(Item, NAMES, st.builds(Place, st.sampled_from(STORES), PATHS))), st.booleans())
def test_a_declaration_is_read_as_it_was_written(items: list[Item], replace: bool) -> None:
    declared = Declared(tuple(items), tuple(items[:1]), replace, not replace)
    assert Declared.of_text(declared.text()) == declared


@pytest.mark.parametrize("text", ["", "{", "[]", '{"inputs": [{"name": "a"}]}', '{"inputs": 3}'])
def test_a_damaged_declaration_is_refused(text: str) -> None:
    with pytest.raises(StagingError, match="cannot be read any more"):
        Declared.of_text(text)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("other/a", "is in no store; write STORE/PATH with one of the stores bulk, home"),
        ("bulk", "is a whole store"),
        ("bulk/", "is a whole store"),
        ("bulk/../etc", "has an empty part"),
        ("bulk/a/./b", "has an empty part"),
        ("bulk//a", "has an empty part"),
        ("/etc/passwd", "is in no store"),
        ("bulk/a:b/c", "is no name"),
        ("bulk/a:..", "is no name"),
        ("bulk/a:.gpufarm", "is no name"),
        ("bulk/.gpufarm-17-a", "is no name"),
        (f"bulk/a:{'x' * 256}", "is no name"),
    ],
)
def test_an_input_that_leads_elsewhere_is_refused(text: str, says: str) -> None:
    with pytest.raises(StagingError, match=says):
        parse_input(text, STORES)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("model", "has no place in a store; give model:STORE/PATH"),
        ("a/b:bulk/x", "is no name"),
        (":bulk/x", "is no name"),
        ("model:bulk/../x", "has an empty part"),
        ("model:bulk/.gpufarm-1-x", "is no name"),
    ],
)
def test_an_output_that_leads_elsewhere_is_refused(text: str, says: str) -> None:
    with pytest.raises(StagingError, match=says):
        parse_output(text, STORES)


def test_own_options_come_first_and_the_rest_is_for_sbatch() -> None:
    request = parse(
        ["--input", "bulk/a", "--output=r:bulk/r", "--always", "--gres=gpu:1", "-t", "5", "job.sh", "x"],
        STORES,
    )
    assert request.words == ("--gres=gpu:1", "-t", "5", "job.sh", "x")
    assert request.declared == Declared(
        (Item("a", Place("bulk", "a")),), (Item("r", Place("bulk", "r")),), always=True
    )


@pytest.mark.parametrize(
    ("words", "rest"),
    [
        (["job.sh", "--input", "x", "--output=y"], ("job.sh", "--input", "x", "--output=y")),
        (["--", "--output=log", "job.sh"], ("--output=log", "job.sh")),
        (["--", "--input", "file", "job.sh", "--"], ("--input", "file", "job.sh", "--")),
        ([], ()),
    ],
)
def test_options_of_the_same_name_reach_the_job_and_sbatch(words: list[str], rest: tuple[str, ...]) -> None:
    assert parse(["--input", "bulk/a", *words], STORES).words == rest


@given(st.lists(st.text(max_size=8)))
def test_words_behind_two_dashes_are_passed_on_as_they_are(words: list[str]) -> None:
    assert parse(["--input=bulk/a", "--", *words], STORES).words == tuple(words)


@pytest.mark.parametrize("late", ["--input", "--input=bulk/b", "--output=log", "--replace", "--always"])
def test_an_own_option_behind_one_of_sbatch_is_refused(late: str) -> None:
    with pytest.raises(StagingError, match="comes after an option of sbatch"):
        parse(["--input", "bulk/a", "--gres=gpu:1", late, "job.sh"], STORES)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["job.sh"], "needs no staging"),
        (["--input"], "needs a value"),
        (["--input=bulk/a", "--input=home/a"], "a is the name of two"),
        (["--input=bulk/a", "--output=a:bulk/b"], "a is the name of two"),
        (["--output=a:bulk/r", "--output=b:bulk/r"], "none is in the other"),
        (["--output=a:bulk/r/s", "--output=b:bulk/r"], "none is in the other"),
    ],
)
def test_declarations_that_do_not_fit_together_are_refused(words: list[str], says: str) -> None:
    with pytest.raises(StagingError, match=says):
        parse(words, STORES)


def test_neighbours_are_not_in_one_another() -> None:
    assert parse(["--output=a:bulk/r", "--output=b:bulk/rs", "--output=c:home/r"], STORES).declared.outputs


def test_help_needs_nothing_else() -> None:
    assert parse(["--help"], ()).helps and parse(["--input", "bulk/a", "-h"], STORES).helps


def test_names_control_no_terminal() -> None:
    assert shown("a\x1b[2Jb\n\u00e9") == "a\\x1b[2Jb\\n\u00e9"
    assert str(Place("bulk", "a\nb")) == "bulk/a\\nb"
