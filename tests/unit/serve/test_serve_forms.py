# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of forms: all that a template can ask for arrives as it was meant, and nonsense is told."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpufarm import asking, collection, document
from gpufarm.errors import BadInput
from gpufarm.serve import forms
from gpufarm.serve.offers import Offered, Offers
from gpufarm.serve.people import User
from gpufarm.serve.refusals import Refused
from gpufarm.serve.settings import Offer
from gpufarm.serve.tables import Deployment
from hypothesis import given, settings
from hypothesis import strategies as st
from serve_site import TEMPLATE, TYPES, Site

ANN = User("https://iam.example.org/", "ann", frozenset({"physics"}), claims={"sub": "ann"})


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Offered:
    folder = tmp_path_factory.mktemp("templates")
    (folder / "types.yaml").write_text(TYPES)
    (folder / "notes.yaml").write_text(TEMPLATE)
    return Offers([Offer("notes", str(folder / "notes.yaml"), people={"owner": "sub"})]).named("notes")


RIGHT: list[tuple[str, Any, Any]] = [
    ("cpus", "2", 2),
    ("cpus", "2.0", 2),
    ("cpus", " 2 ", 2),
    ("cpus", 2, 2),
    ("share", "2", 2.0),
    ("share", "0.5", 0.5),
    ("share", "1e-3", 0.001),
    ("public", "true", True),
    ("public", "False", False),
    ("public", True, True),
    ("text", "2", "2"),
    ("text", "true", "true"),
    ("text", "[]", "[]"),
    ("memory", "64 GB", "64 GB"),
    ("names", "[]", []),
    ("names", '["a", "b"]', ["a", "b"]),
    ("names", "['a', 'b']", ["a", "b"]),
    ("names", "[a, 1G]", ["a", "1G"]),
    ("names", ["a"], ["a"]),
    ("resources", "{'cpus': 2.0}", {"cpus": 2.0}),
    ("resources", '{"cpus": "2"}', {"cpus": 2.0}),
    ("resources", {"cpus": "2.5"}, {"cpus": 2.5}),
    ("ports", {"web": {"protocol": "tcp", "source": "80"}}, {"web": {"protocol": "tcp", "source": 80}}),
    ("disks", "[{'size': '1 GB', 'copies': '2', 'label': ''}]", [{"size": "1 GB", "copies": 2, "label": ""}]),
    ("disks", [{"size": "1 GB", "copies": ""}], [{"size": "1 GB"}]),
]


@pytest.mark.parametrize(("name", "sent", "meant"), RIGHT)
def test_a_value_arrives_as_it_was_meant(notes: Offered, name: str, sent: Any, meant: Any) -> None:
    found = forms.given(notes, {name: sent})
    assert found == {name: meant}
    assert type(found[name]) is type(meant)
    notes.machines({"owner": "ann", **found})  # the template takes it


def test_empty_fields_and_those_of_the_form_itself_are_left_out(notes: Offered) -> None:
    parameters = {"cpus": "", "names": "", "text": "", "public": None, "additional_description": "mine"}
    assert forms.given(notes, parameters | {"owner": "root"}, {"owner": "sub"}) == {}


WRONG: list[tuple[str, Any]] = [
    ("cpus", "two"),
    ("cpus", "2.5"),
    ("cpus", "9" * 5000),
    ("cpus", "nan"),
    ("cpus", "inf"),
    ("cpus", "1_000"),
    ("cpus", True),
    ("cpus", {"a": 1}),
    ("share", "nan"),
    ("share", "1e999"),
    ("public", "yes please"),
    ("public", 1),
    ("text", 7),
    ("text", ["a"]),
    ("memory", "64"),
    ("names", "a, b"),
    ("names", "{'a': 1}"),
    ("names", "[1]"),
    ("names", "__import__('os').system('id')"),
    ("names", "[" * 10_000),
    ("names", "(" * 300 + ")" * 300),
    ("names", "['a'] * 10**9"),
    ("resources", "['cpus']"),
    ("resources", "{'cpus': 'many'}"),
    ("resources", "{1: 2.0}"),
    ("resources", "{'cpus': {1, 2}}"),
    ("ports", {"web": {"protocol": "tcp", "source": "99999"}}),
    ("ports", {"web": {"colour": "red"}}),
    ("disks", [{"copies": "2"}]),
    ("disks", [{"size": "1 GB", "copies": "two"}]),
]


LITERALS = [
    *("{(1, 2): 1}", "{1: 2}", "{None: 2}", "{'a': b'x'}", "{'a': {1, 2}}", "{'a': 1j}", "{'a': ...}"),
    *("{'a': 1e999}", '{"a": NaN}', '{"a": 1e999}', "{'a': ({'password': 'swordfish'},)}"),
    *(
        "{'a': ({'get_input': 'text'},)}",
        "{'a': ('a\\x00',)}",
        "(1, 2)",
        "{'a': " + "(" * 90 + "1" + ",)" * 90 + "}",
    ),
]


@pytest.mark.parametrize("text", LITERALS)
def test_a_literal_that_json_does_not_have_is_refused(notes: Offered, text: str) -> None:
    with pytest.raises(BadInput, match=r"input settings: .*write JSON"):
        forms.given(notes, {"settings": text})


@pytest.mark.parametrize(("name", "sent"), WRONG, ids=lambda value: str(value)[:30])
def test_nonsense_is_told_with_its_input(notes: Offered, name: str, sent: Any) -> None:
    with pytest.raises(BadInput, match=name):
        notes.machines({"owner": "ann", **forms.given(notes, {name: sent})})


def test_some_mistakes_are_told_of_many(notes: Offered) -> None:
    with pytest.raises(BadInput) as refused:
        forms.given(notes, {f"colour{number}": "red" for number in range(10_000)})
    lines = refused.value.message.split("\n")
    assert len(lines) == forms.MOST + 1 and "correct these first" in lines[-1]


def test_a_secret_is_not_repeated(notes: Offered) -> None:
    with pytest.raises(BadInput) as refused:
        notes.machines({"owner": "ann", **forms.given(notes, {"admin_password": ["swordfish"]})})
    assert "swordfish" not in refused.value.message


_leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
_values = st.recursive(
    _leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=9
)
_texts = _values.map(str) | _values.map(repr) | st.text()
_names = st.sampled_from([entry[0] for entry in RIGHT])


@given(st.dictionaries(_names | st.text(), _values | _texts))
@settings(max_examples=400, deadline=None)
def test_any_value_is_taken_or_refused_in_words(notes: Offered, parameters: dict[str, Any]) -> None:
    try:
        found = forms.given(notes, parameters)
        notes.machines({"owner": "ann", **found})
    except BadInput as error:
        assert error.message
    else:
        assert forms.given(notes, found) == found  # converted once is converted


TEMPLATES = sorted(path.stem for path in (collection.root() / "tosca/templates").glob("*.yaml"))


@pytest.mark.parametrize("name", TEMPLATES)
def test_all_templates_of_the_collection_can_be_offered(name: str) -> None:
    """In both dialects, with all fields of a form as the dashboard fills them with defaults."""
    offers = Offers([Offer(name, name)])
    offered = offers.named(name)
    root = collection.root() / "tosca"
    for folder in (root / "templates", root / "indigo" / "templates"):
        path = folder / f"{name}.yaml"
        assert path.exists() or folder.parent.name == "indigo", "only templates of machines are in both"
        assert not path.exists() or offers.sent(path.read_text(), ANN) is offered
    defaults = {
        entry.name: entry.default
        for entry in offered.topology.inputs.values()
        if entry.default not in (None, "")
    }
    assert forms.given(offered, {key: str(value) for key, value in defaults.items()}) == defaults


FORMS = sorted((collection.root() / "tosca/dashboard/tosca-parameters").glob("*.yml"))


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name.partition(".")[0])
def test_defaults_of_the_dashboards_forms_are_those_of_their_templates(path: Path) -> None:
    """Lists are written as YAML there, in fields of texts."""
    name = path.name.partition(".")[0]
    offered = Offers([Offer(name, name)]).named(name)
    written = {
        key: one["default"]
        for key, one in document.read(path).data["inputs"].items()
        if one["type"] == "string" and offered.topology.inputs[key].kind in ("list", "map")
    }
    defaults = {key: offered.topology.inputs[key].default for key in written}
    assert forms.given(offered, written) == defaults


def test_an_input_that_is_not_there_cannot_be_set(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="people names the input ownr"):
        Offers([Offer("vm", "jupyter_vm", people={"ownr": "sub"})])


def test_a_template_is_there_once() -> None:
    with pytest.raises(BadInput, match="same"):
        Offers([Offer("a", "jupyter_vm"), Offer("b", str(asking.located("jupyter_vm")))])
    with pytest.raises(Refused, match="offered no more"):
        Offers([Offer("a", "jupyter_vm")]).named("b")


@pytest.mark.parametrize(
    "paas", [{"templates": {"jobs": {"template": "chronos_job", "people": {"owner": "sub"}}}}], indirect=True
)
def test_hidden_inputs_leave_what_the_pool_says(paas: Site) -> None:
    """An empty list of servers that the service gives would count, and that of the inventory would not."""
    text = (collection.root() / "tosca" / "templates" / "chronos_job.yaml").read_text()
    inputs = {"job_name": "night", "schedule": "R//P1D", "command": "x", "docker_image": "y"}
    body = {"template": text, "parameters": {**inputs, "chronos_urls": [], "ca_file": ""}}
    answer = paas.user("ann").post("/deployments", json=body)
    assert answer.status_code == 201, answer.text
    with paas.service.database.reading() as session:
        assert session.get_one(Deployment, answer.json()["uuid"]).parameters == {**inputs, "owner": "ann"}


@pytest.mark.parametrize("paas", [{"templates": {"notebooks": {"template": "ml_infn"}}}], indirect=True)
def test_a_request_cannot_name_another_person(paas: Site) -> None:
    """The form of the dashboard says which claim the input gets, so the settings need not."""
    text = (collection.root() / "tosca" / "templates" / "ml_infn.yaml").read_text()
    ann = paas.user("ann")
    wanted = {"iam_subject": "bob", "iam_url": "https://iam.example.org"}
    body = {"template": text, "parameters": wanted}
    answer = ann.post("/deployments", json=body)
    assert answer.status_code == 201, answer.text
    uuid = answer.json()["uuid"]
    with paas.service.database.reading() as session:
        owner = session.get_one(Deployment, uuid).parameters["iam_subject"]
    assert owner == ann.get(f"/deployments/{uuid}").json()["createdBy"]["subject"] != "bob"
    paas.work()
    assert ann.put(f"/deployments/{uuid}", json=body).status_code == 202
    with paas.service.database.reading() as session:
        assert session.get_one(Deployment, uuid).parameters["iam_subject"] == owner


@pytest.mark.parametrize("paas", [{"templates": {"notes": {"template": "notes.yaml"}}}], indirect=True)
def test_a_person_that_no_claim_names_is_the_operators(paas: Site) -> None:
    answer = paas.user("ann").post(
        "/deployments", json={"template": TEMPLATE, "parameters": {"owner": "root"}}
    )
    assert answer.status_code == 400
    assert "input owner: the operator of this service sets it" in answer.text


@pytest.mark.parametrize(
    "paas",
    [{"templates": {"jobs": {"template": "chronos_job", "people": {"owner": "sub"}}}}],
    indirect=True,
)
def test_an_update_gives_what_is_there_no_other_name(paas: Site) -> None:
    text = (collection.root() / "tosca" / "templates" / "chronos_job.yaml").read_text()
    inputs = {"job_name": "night", "schedule": "R//P1D", "command": "x", "docker_image": "y"}
    form = paas.service.forms["jobs"]
    own = [replace(one, default="site.pem") if one.name == "ca_file" else one for one in form.fields]
    # a file that workers have, and this server has not
    paas.service.forms["jobs"] = replace(form, fields=tuple(own))
    ann = paas.user("ann")
    uuid = ann.post("/deployments", json={"template": text, "parameters": inputs}).json()["uuid"]
    paas.work()
    answer = ann.put(f"/deployments/{uuid}", json={"template": text, "parameters": {"job_name": "day"}})
    assert answer.status_code == 400
    assert "an update cannot change chronos_job_definition.name, " in answer.text
    kept = {"template": text, "parameters": {"command": "z", "job_name": "night"}}
    assert ann.put(f"/deployments/{uuid}", json=kept).status_code == 202
