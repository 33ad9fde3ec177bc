# SPDX-License-Identifier: GPL-3.0-or-later
"""Forms of the pages: read from the files of the dashboard, and what is entered arrives as it was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpufarm import collection
from gpufarm.errors import BadInput
from gpufarm.serve import forms
from gpufarm.serve.offers import Offered, Offers
from gpufarm.serve.people import User
from gpufarm.serve.settings import Offer
from gpufarm.serve.web import entered, form
from gpufarm.serve.web.form import Field, Form
from gpufarm.serve.web.render import clean
from hypothesis import given
from hypothesis import strategies as st

ANN = User("https://iam.example.org/", "ann", claims={"sub": "ann", "name": "Ann"})
NAMES = sorted(path.stem for path in (collection.root() / "tosca/templates").glob("*.yaml"))


# Templates whose input `owner` has no default.
OWNED = ("chronos_job", "gpu_container", "jupyter_container", "marathon_app", "slurm_job")


def offered(name: str, **more: Any) -> Offered:
    return Offers([Offer(name, name, **more)]).named(name)


@pytest.mark.parametrize("name", NAMES)
def test_a_form_that_nobody_touched_means_its_defaults(name: str) -> None:
    of = offered(name, people={"owner": "sub"} if name in OWNED else {})
    made = form.read(of)
    given_, wrong = entered.parameters(made, entered.begun(made), ANN)
    assert wrong == {}
    found = forms.given(of, given_)
    inputs = of.topology.inputs
    for field in made.fields:
        mute = field.widget in ("account", "claim", "hidden", "password")
        if field.default not in (None, "", [], {}) and not mute:
            assert found[field.name] == forms.given(of, {field.name: field.default})[field.name]
    # what an update would change, if nobody touches its form
    later = entered.updating(made, {one.name: one.default for one in inputs.values()} | found)
    assert entered.changes(later, entered.begun(later)) == ({}, {})


def test_tabs_are_those_of_the_file() -> None:
    found = form.read(offered("ml_infn")).tabs()
    assert [*found] == ["General", "IAM integration", "Collaboration", "Settings", "More"]
    assert [one.widget for one in found["More"]] == ["account"]


def test_a_template_without_a_form_has_one_tab(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    types = collection.root() / "tosca/types/gpufarm_types.yaml"
    text = (collection.root() / "tosca/templates/lustre_filesystem.yaml").read_text()
    path.write_text(text.replace("../types/gpufarm_types.yaml", str(types)))
    assert [*form.read(Offers([Offer("mine", str(path))]).named("mine")).tabs()] == ["Inputs"]


def test_inputs_that_the_service_sets_are_not_asked_for() -> None:
    with_person = form.read(offered("ml_infn", people={"iam_subject": "sub"}))
    assert "iam_subject" not in {one.name for one in with_person.fields}
    without = form.read(offered("ml_infn"))
    assert without.claims() == {"sub"}
    assert without.of_person(ANN) == {"iam_subject": "ann"}


@pytest.mark.parametrize("name", OWNED)
def test_a_template_in_which_users_could_name_anybody_is_not_offered(name: str) -> None:
    with pytest.raises(
        BadInput, match=r"could name anybody in the input owner; add the claim .* people: {owner: "
    ):
        form.read(offered(name))
    assert form.read(offered(name, people={"owner": "sub"})).of_person(ANN) == {"owner": "ann"}


def test_an_operator_may_name_one_person_for_all(tmp_path: Path) -> None:
    path = tmp_path / "jobs.yml"
    path.write_text("inputs: {owner: {type: string, default: course, tab: Job}}\n")
    assert form.read(offered("slurm_job", form=path)).hidden()["owner"] == "course"


def test_an_input_that_leads_to_a_person_is_known_whatever_its_name(tmp_path: Path) -> None:
    root = collection.root() / "tosca"
    text = (root / "templates/slurm_job.yaml").read_text()
    text = text.replace("../types", str(root / "types")).replace("get_input: owner", "get_input: whom")
    path = tmp_path / "mine.yaml"
    path.write_text(text.replace("    owner:\n", "    whom:\n"))
    with pytest.raises(BadInput, match="could name anybody in the input whom"):
        form.read(Offers([Offer("mine", str(path))]).named("mine"))


def test_partitions_are_those_of_the_model() -> None:
    [flavors] = [one for one in form.read(offered("gpu_node")).fields if one.name == "gpu_partition_flavor"]
    assert flavors.parent == "gpu_model"
    parents = {one.value: one.parents for one in flavors.choices}
    assert parents["None"] == ()  # all of them
    assert parents["4x 1g.6gb MIG GPUs"] == ("NVIDIA A30",)
    assert "" in parents["disabled"]


def test_secrets_are_passwords_whatever_the_form_says(tmp_path: Path) -> None:
    (tmp_path / "form.yml").write_text("inputs: {jupyter_password: {type: textarea}}")
    found = form.read(offered("jupyter_container", people={"owner": "sub"}, form=tmp_path / "form.yml"))
    assert {one.name: one.widget for one in found.fields}["jupyter_password"] == "password"


def test_an_account_is_the_entry_of_the_dashboard() -> None:
    field = Field("users", "account", "", "", "", required=False)
    key = {"input.users.name": " ann ", "input.users.key": "ssh-ed25519 AAAA ann\r\n"}
    found, _wrong = entered.parameters(Form((field,), {}, {}), key, ANN)
    assert found == {
        "users": [
            {
                "os_user_name": "ann",
                "os_user_add_to_sudoers": True,
                "os_user_ssh_public_key": "ssh-ed25519 AAAA ann",
            }
        ]
    }
    assert entered.parameters(Form((field,), {}, {}), {}, ANN) == ({}, {})


def one(widget: str, default: Any = None) -> Form:
    return Form((Field("x", widget, "X", "", "", required=False, default=default),), {}, {})


_line = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1)


@given(st.lists(_line))
def test_lines_come_back(value: list[str]) -> None:
    made = one("lines", value)
    assert entered.parameters(made, entered.begun(made), ANN)[0] == {"x": value}


@given(st.dictionaries(_line.filter(lambda text: "=" not in text), _line))
def test_pairs_come_back(value: dict[str, str]) -> None:
    made = one("pairs", value)
    assert entered.parameters(made, entered.begun(made), ANN)[0] == {"x": value}


@given(st.lists(st.text()) | st.dictionaries(st.text(), st.text() | st.integers()))
def test_an_update_keeps_what_nobody_touched_and_loses_nothing_of_the_rest(value: Any) -> None:
    made = entered.updating(one("lines" if isinstance(value, list) else "pairs"), {"x": value})
    texts = entered.begun(made)
    shown = {name: clean(text) for name, text in texts.items()}  # as the page has it and the browser sends it
    assert entered.changes(made, shown) == ({}, {})
    if shown != texts:
        return
    if made.fields[0].widget == "pairs" and value:
        found, wrong = entered.changes(made, {"input.x": texts["input.x"] + "\r\nadded=1"})
        assert (found, wrong) == ({"x": {**value, "added": "1"}}, {})
    if made.fields[0].widget == "lines" and value:
        found, wrong = entered.changes(made, {"input.x": texts["input.x"] + "\r\nadded"})
        assert (found, wrong) == ({"x": [*value, "added"]}, {})


@given(st.dictionaries(st.sampled_from(["input.x", "input.x.name", "token", "group"]), st.text()))
@pytest.mark.parametrize("widget", sorted({*form._WIDGETS.values(), "line"}))
def test_anything_can_be_entered(widget: str, sent: dict[str, str]) -> None:
    made = one(widget)
    for found, wrong in (entered.parameters(made, sent, ANN), entered.changes(made, sent)):
        assert not found.keys() & wrong.keys()
        assert {*found, *wrong} <= {"x"}


def test_a_password_is_not_repeated() -> None:
    assert entered.repeated(one("password"), {"input.x": "swordfish"}) == {}


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("A=1", True),
        ("API_TOKEN=x", False),
        ('{"a": {"password": "x"', False),
        ("[{secret: x}]", False),
        ("{a: b}", True),
    ],
)
@pytest.mark.parametrize("widget", ["json", "pairs"])
def test_a_map_with_a_secret_is_not_repeated(widget: str, text: str, kept: bool) -> None:
    assert entered.repeated(one(widget), {"input.x": text}) == ({"input.x": text} if kept else {})


def test_sentences_are_sorted_by_field() -> None:
    message = "input x: is wrong\ninput y: unknown\nno more machines\ninput x: and again"
    beside, others = entered.sorted_out(message, one("line"))
    assert beside == {"x": "is wrong"}
    assert others == ["input y: unknown", "no more machines", "input x: and again"]
    assert entered.sorted_out("input x: it is hidden", one("hidden"))[1] == ["input x: it is hidden"]
