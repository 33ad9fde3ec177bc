# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages, as a browser without scripts has them: what they show, do, and must not do."""

from __future__ import annotations

import re
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.issuer import ANN, Issuer
from gpufarm.errors import BadInput
from gpufarm.serve import tables
from gpufarm.serve.runs import Ending
from serve_site import Browser, Site, site, with_pages
from sqlalchemy import select

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus='alert(1)' autofocus='",
    "</textarea></pre></option><svg onload=alert(1)>",
    "javascript:alert(1)",
    "{{ 7 * 7 }}{% raw %}",
    "<!-- ]]> -->",
    "\u202eexe.txt",
    "א" * 40,
    "x" * 20_000,
]


@pytest.fixture
def paas(tmp_path: Path, iam: Issuer, request: pytest.FixtureRequest) -> Iterator[Site]:
    iam.accounts, iam.more = {"ann": ANN}, {}
    (tmp_path / "notes.form.yml").write_text(yaml.safe_dump(FORM))
    settings = with_pages(tmp_path, iam) | getattr(request, "param", {})
    templates = {
        "notes": {
            "template": "notes.yaml",
            "form": "notes.form.yml",
            "people": {"owner": "preferred_username"},
        },
        "needy": {"template": "needy.yaml", "groups": ["physics"]},
    }
    with site(tmp_path, iam, templates=templates, **settings) as made:
        yield made


FORM = {
    "tabs": ["First", "Second"],
    "inputs": {
        "text": {"type": "string", "display_name": "Words", "description": "Some words.", "tab": "Second"},
        "cpus": {"type": "integer", "tab": "First", "constraints": [{"in_range": [1, 64]}]},
        "number": {"type": "hidden", "default": 2},
        "memory": {
            "type": "dependent_select",
            "tab": "First",
            "parent": "cpus",
            "constraints": [
                {"parent_value": "1", "value": "1 GB", "label": "small"},
                {"parent_value": "2", "value": "2 GB", "label": "large"},
            ],
        },
        "settings": {"type": "map", "entry_schema": {"type": "string"}, "tab": "Second"},
    },
    "outputs": {"text": {"display_name": "Its words"}},
}


def made(browser: Browser, **fields: str) -> str:
    answer = browser.send("/ui/catalogue/notes", **fields)
    assert answer.status_code == 303, answer.text
    return answer.headers["Location"].rpartition("/")[2]


def stored(paas: Site, uuid: str) -> tables.Deployment:
    with paas.service.database.reading() as session:
        return session.get_one(tables.Deployment, uuid)


def texts(browser: Browser, selector: str) -> list[str]:
    return [" ".join(one.text.split()) for one in browser.page.select(selector)]


def audit(paas: Site) -> list[tuple[str, str, str]]:
    with paas.service.database.reading() as session:
        return [(one.subject, one.action, one.deployment) for one in session.scalars(select(tables.Audit))]


def error(browser: Browser, name: str) -> str:
    """The sentence beside a field, to which the field refers."""
    field = browser.page.select_one(f"#in-{name}")
    assert field["aria-invalid"] == "true"
    assert f"in-{name}-error" in field["aria-describedby"].split()
    return browser.page.select_one(f"#in-{name}-error").text


def test_the_catalogue_has_what_the_user_may_deploy(paas: Site) -> None:
    ann, bob = paas.browser("ann", "physics"), paas.browser("bob")
    ann.get("/ui/catalogue")
    assert sorted(texts(ann, "main h2")) == ["needy", "notes"]
    bob.get("/ui/catalogue")
    assert texts(bob, "main h2") == ["notes"]
    assert bob.get("/ui/catalogue/needy").status_code == 404
    bob.get("/ui/catalogue/notes")
    assert bob.post("/ui/catalogue/needy", bob.fields()).status_code == 404


def test_a_form_is_that_of_the_dashboard(paas: Site) -> None:
    ann = paas.browser("ann")
    ann.get("/ui/catalogue/notes")
    assert texts(ann, "summary") == ["First", "Second", "More"]
    assert ann.page.select_one("label[for=in-text]").text == "Words"
    assert "Some words." in texts(ann, "#in-text-help")[0]
    assert "From 1 to 64." in texts(ann, "#in-cpus-help")[0]
    memory = ann.page.select_one("#in-memory")
    assert memory["data-parent"] == "in-cpus"
    assert [one.get("data-of") for one in memory.select("option")] == ['["1"]', '["2"]']
    assert not ann.page.select("#in-number, #in-owner")
    assert ann.page.select_one("#in-admin_password")["type"] == "password"


def test_every_field_has_a_label(paas: Site) -> None:
    ann = paas.browser("ann", "physics")
    ann.get("/ui/catalogue/notes")
    fields = ann.page.select("main input:not([type=hidden]), main select, main textarea")
    assert len(fields) > 10
    for field in fields:
        assert ann.page.select_one(f"label[for={field['id']}]"), field
        for name in field.get("aria-describedby", "").split():
            assert ann.page.select_one(f"#{name}"), field


def test_a_deployment_is_that_of_the_interface(paas: Site) -> None:
    ann = paas.browser("ann", "physics")
    form = {"input__text": "one", "input__cpus": "2", "input__names": " a \r\n\r\nb", "group": "physics"}
    own = made(ann, **form, input__settings="A=1\r\nB = x=y", input__public="true")
    found = stored(paas, own)
    assert (found.issuer, found.subject, found.user_group) == (paas.iam.url, "ann", "physics")
    assert found.machines == 2  # of the hidden field
    assert found.parameters == {
        "text": "one",
        "cpus": 2,
        "share": 1.0,
        "public": True,
        "memory": "1 GB",
        "number": 2,
        "names": ["a", "b"],
        "resources": {"cpus": 1.0},
        "ports": {},
        "disks": [],
        "settings": {"A": "1", "B": "x=y"},
        "owner": "ann",
    }
    assert audit(paas) == [("ann", "create", own)]
    assert paas.user().get(f"/deployments/{own}").json()["status"] == "CREATE_IN_PROGRESS"


def test_nobody_acts_in_the_name_of_others(paas: Site) -> None:
    ann = paas.browser("ann", preferred_username="ann2")
    own = made(ann, input__owner="root")
    assert stored(paas, own).parameters["owner"] == "ann2"
    ann.get("/ui/catalogue/notes")
    answer = ann.post("/ui/catalogue/notes", ann.fields() | {"group": "admins"})
    assert answer.status_code == 403
    assert "not in group admins" in answer.text


def test_mistakes_are_beside_their_fields_and_values_stay(paas: Site) -> None:
    ann = paas.browser("ann")
    answer = ann.send(
        "/ui/catalogue/notes",
        input__text="kept",
        input__cpus="many",
        input__settings="no pair",
        input__names="a\nb",
        input__public="true",
        input__admin_password="swordfish",
    )
    assert answer.status_code == 400
    assert "swordfish" not in answer.text
    assert error(ann, "settings") == 'the line "no pair" is no NAME=VALUE; correct it'
    answer = ann.post("/ui/catalogue/notes", ann.fields() | {"input.settings": "A=1", "input.memory": "lots"})
    assert answer.status_code == 400
    assert "no integer" in error(ann, "cpus")
    kept = ann.fields()
    assert (kept["input.text"], kept["input.cpus"], kept["input.public"]) == ("kept", "many", "true")
    assert (kept["input.names"], kept["input.memory"]) == ("a\nb", "lots")
    ann.post("/ui/catalogue/notes", kept | {"input.cpus": "99"})
    assert "range" in error(ann, "cpus")
    assert "memory" not in ann.page.select_one("#problems a")["href"]
    assert ann.page.title.text.startswith("Error: ")
    assert audit(paas) == []


def test_a_value_that_is_needed_is_asked_for(paas: Site) -> None:
    ann = paas.browser("ann", "physics")
    assert ann.send("/ui/catalogue/needy").status_code == 400
    assert "needs one" in error(ann, "name")
    assert "needs one" in error(ann, "admin_password")


def test_a_page_reads_the_end_of_a_long_log_only(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    paas.work(log="first\n")
    lines = [f"step {number} of a run on a machine" for number in range(20_000)]
    with paas.service.database.changing() as session:
        for _run in range(30):
            log = "\n".join(lines) + "\n"
            session.add(tables.Run(deployment=own, kind="UPDATE", created=1.0, state="done", log=log))
        session.add(tables.Run(deployment=own, kind="UPDATE", created=1.0, state="done", log="last\n"))
    tracemalloc.start()
    ann.get(f"/ui/deployments/{own}")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert ann.page.select_one("#log").text.splitlines() == [*lines[-199:], "last"]
    assert "These are the last lines." in ann.page.text
    assert most < 20_000_000, "all logs were in memory"
    whole = ann.http.get(ann.page.select_one("#log + p a")["href"]).text.splitlines()
    assert (whole[0], whole[-1], len(whole)) == ("first", "last", 600_002)


def test_a_secret_is_never_sent_back(paas: Site) -> None:
    ann = paas.browser("ann")
    secrets = {"input__admin_password": "swordfish", "input__settings": "API_TOKEN=octopus"}
    refused = ann.send("/ui/catalogue/notes", **secrets, input__cpus="0")
    assert refused.status_code == 400
    own = made(ann, **secrets)
    paas.work(outputs={"text": "x"})
    pages = [
        refused.text,
        *(ann.get(f"/ui/deployments/{own}{end}").text for end in ("", "/update", "/delete", "/log")),
    ]
    pages.append(ann.get("/ui/deployments").text)
    for page in pages:
        assert "swordfish" not in page
        assert "octopus" not in page
    assert paas.service.key.unseal(stored(paas, own).secrets).keys() == {"admin_password", "settings"}


def test_an_update_sends_what_was_changed(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann, input__text="one", input__names="a", input__admin_password="swordfish")
    paas.work()
    before = stored(paas, own)
    ann.get(f"/ui/deployments/{own}/update")
    assert ann.fields()["input.text"] == "one"
    assert ann.fields()["input.admin_password"] == ""
    answer = ann.send(f"/ui/deployments/{own}/update", input__text="two", input__names="")
    assert answer.headers["Location"] == f"/ui/deployments/{own}"
    found = stored(paas, own)
    assert found.status == "UPDATE_IN_PROGRESS"
    assert found.parameters == before.parameters | {"text": "two", "names": []}
    assert paas.service.key.unseal(found.secrets) == {"admin_password": "swordfish"}
    paas.work()
    ann.send(f"/ui/deployments/{own}/update", input__admin_password="octopus")
    assert paas.service.key.unseal(stored(paas, own).secrets) == {"admin_password": "octopus"}


def test_a_secret_map_stays_when_nobody_touches_it(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann, input__settings="API_TOKEN=octopus")
    paas.work()
    ann.send(f"/ui/deployments/{own}/update", input__text="two")
    assert paas.service.key.unseal(stored(paas, own).secrets) == {"settings": {"API_TOKEN": "octopus"}}


def test_a_secret_map_is_neither_shown_nor_replaced_by_its_default(paas: Site) -> None:
    ann = paas.browser("ann")
    values = {"resources": {"cpus": 2.0, "api_token": 3.0}}
    body = {"template": paas.template, "parameters": values}
    own = paas.user().post("/deployments", json=body).json()["uuid"]
    paas.work()
    here = f"/ui/deployments/{own}/update"
    ann.get(here)
    assert ann.fields()["input.resources"] == ""
    assert "Leave it empty to keep all of it" in ann.page.text
    ann.send(here, input__text="two")
    assert paas.service.secrets(stored(paas, own)) == values
    paas.work()
    ann.send(here, input__resources='{"cpus": 4.0}')
    assert stored(paas, own).parameters["resources"] == {"cpus": 4.0}
    assert paas.service.secrets(stored(paas, own)) == {}


def test_a_secret_map_in_a_single_line_says_that_it_is_replaced(tmp_path: Path, iam: Issuer) -> None:
    templates = {"jobs": {"template": "slurm_job", "people": {"owner": "preferred_username"}}}
    with site(tmp_path, iam, templates=templates, **with_pages(tmp_path, iam)) as paas:
        ann = paas.browser("ann")
        values = {"job_name": "train", "command": "date", "environment": "{HF_TOKEN: octopus, BATCH: 1}"}
        answer = ann.send("/ui/catalogue/jobs", **{f"input__{name}": text for name, text in values.items()})
        paas.work()
        ann.get(f"{answer.headers['Location']}/update")
        field = ann.page.select_one('[name="input.environment"]')
        assert (field.name, field["value"]) == ("input", "")
        assert "what you write replaces all of it" in field.parent.text
        assert ann.page.text.count("It has secrets") == 1


def test_what_the_form_hides_is_set_by_the_service_alone(paas: Site) -> None:
    """Else the password that the operator hides there would be sent to an address of the user."""
    bob = paas.user("bob")
    body: dict[str, Any] = {"template": paas.template, "parameters": {"number": 3}}
    answer = bob.post("/deployments", json=body)
    assert answer.status_code == 400
    assert answer.json()["message"] == "input number: the operator of this service sets it; leave it out"
    for parameters in ({}, {"number": "2"}):  # the dashboard sends the default of the form
        own = bob.post("/deployments", json=body | {"parameters": parameters}).json()["uuid"]
        assert stored(paas, own).parameters["number"] == 2
    paas.work()
    assert bob.put(f"/deployments/{own}", json=body).status_code == 400
    assert bob.put(f"/deployments/{own}", json=body | {"parameters": {"number": 2}}).status_code == 202


def test_an_input_that_a_newer_template_lacks_is_forgotten(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann, input__text="one", input__admin_password="swordfish")
    paas.work()
    with paas.service.database.changing() as session:
        found = session.get_one(tables.Deployment, own)
        found.parameters = {**found.parameters, "former": "x"}
        found.secrets = paas.service.key.seal({"former_password": "y", "admin_password": "swordfish"})
    ann.send(f"/ui/deployments/{own}/update", input__text="two")
    found = stored(paas, own)
    assert (found.status, found.parameters["text"]) == ("UPDATE_IN_PROGRESS", "two")
    assert "former" not in found.parameters
    assert paas.service.secrets(found) == {"admin_password": "swordfish"}


@pytest.mark.parametrize("text", ["\u202etxt", "two\nlines", "a\rb", " spaced ", "\x1b[31m", "{}", "false"])
def test_an_update_keeps_odd_values_that_nobody_touches(paas: Site, text: str) -> None:
    """Those that came over the interface, too."""
    ann = paas.browser("ann")
    values = {"text": text, "settings": {"a=b": text, "": "x"}, "names": [text, "b"]}
    body = {"template": paas.template, "parameters": values}
    own = paas.user().post("/deployments", json=body).json()["uuid"]
    paas.work()
    assert ann.send(f"/ui/deployments/{own}/update", input__cpus="7").status_code == 303
    assert stored(paas, own).parameters == {**values, "cpus": 7, "number": 2, "owner": "ann"}


def test_an_update_that_would_be_ignored_is_told(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann, input__text="one")
    paas.work()
    assert ann.send(f"/ui/deployments/{own}/update", input__text="").status_code == 400
    assert "cannot empty it" in error(ann, "text")
    assert stored(paas, own).status == "CREATE_COMPLETE"


def test_an_update_that_is_based_on_an_old_page_is_refused(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    paas.work()
    here = f"/ui/deployments/{own}/update"
    ann.get(here)
    old = ann.fields()
    ann.send(here, input__text="two")
    paas.work()
    answer = ann.post(here, old | {"input.text": "three"})
    assert answer.status_code == 409
    assert stored(paas, own).parameters["text"] == "two"


def test_an_update_now_is_refused(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    answer = ann.send(f"/ui/deployments/{own}/update", input__text="two")
    assert answer.status_code == 409
    assert "CREATE_IN_PROGRESS" in answer.text


def test_a_removal_is_confirmed(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    machines = [{"node": "server", "type": "x", "state": "STARTED", "host": "gpu1"}]
    paas.work(resources=machines, outputs={"text": "https://gpu1.example.org/"})
    ann.get(f"/ui/deployments/{own}/delete")
    assert "gpu1" in texts(ann, "main li")
    assert "https://gpu1.example.org/" in ann.page.text
    assert stored(paas, own).status == "CREATE_COMPLETE"
    fields = ann.fields()
    assert ann.post(f"/ui/deployments/{own}/delete", {"token": fields["token"]}).status_code == 400
    assert ann.post(f"/ui/deployments/{own}/delete", fields).status_code == 303
    assert stored(paas, own).status == "DELETE_IN_PROGRESS"
    assert audit(paas)[-1] == ("ann", "delete", own)
    ann.get(f"/ui/deployments/{own}")
    assert ann.post(f"/ui/deployments/{own}/reset", ann.fields()).status_code == 303
    assert stored(paas, own).status == "DELETE_FAILED"
    assert ann.send(f"/ui/deployments/{own}/delete").status_code == 303
    paas.work()
    ann.get("/ui/deployments")
    assert ann.page.select_one("#none")
    assert ann.get(f"/ui/deployments/{own}").status_code == 200
    assert texts(ann, "#status .status") == ["Removal complete"]


def test_the_state_of_a_deployment(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann, input__text="one")
    ann.get(f"/ui/deployments/{own}")
    assert texts(ann, "#status .status") == ["Creation in progress"]
    assert ann.page.select_one("#live[data-live]")
    assert ann.page.select_one("noscript meta[http-equiv=refresh]")
    assert texts(ann, "main .actions a") == ["Delete"]
    claim = paas.runs.claim("w", 60)
    assert claim
    paas.runs.beat(claim, 60, "first line\n" + "line\n" * 300)
    ann.get(f"/ui/deployments/{own}")
    assert ann.page.select_one("#log").text.count("\n") == 199
    assert "first line" not in ann.page.text
    assert ann.get(f"/ui/deployments/{own}/log").text.startswith("first line\n")
    paas.runs.finish(claim, Ending(well=False, reason="server.configure on gpu1: a task failed"))
    ann.get(f"/ui/deployments/{own}")
    assert texts(ann, "#status .status") == ["Creation failed"]
    assert texts(ann, "#reason") == ["server.configure on gpu1: a task failed"]
    assert not ann.page.select("#live[data-live], noscript")


def test_outputs_have_their_labels_and_only_addresses_are_links(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    good = ["https://gpu1.example.org:8888/a?b=c#d", "http://192.0.2.1/"]
    bad = [
        *("javascript:alert(1)", " javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x"),
        *("https://me:pass@evil.example.org/", "https:evil", "https://", "//evil.example.org"),
        *("https://a.example.org/\n", "https://a.example.org\\@evil", "https://a b", "https://x:99999999/"),
        "https://a.example.org/" + "x" * 3000,
        *("file:///etc/passwd", "vbscript:x", "ssh://gpu1"),
    ]
    paas.work(outputs={"text": "hello", "links": [*good, *bad], "deep": {"a": [{"b": good[0]}]}})
    ann.get(f"/ui/deployments/{own}")
    assert texts(ann, "#live dt")[0] == "Its words"
    links = ann.page.select("#live dd a")
    assert [one["href"] for one in links] == [*good, good[0]]
    assert all("noopener" in one["rel"] for one in links)


def test_a_list_has_pages(paas: Site) -> None:
    ann = paas.browser("ann")
    for _ in range(21):
        paas.user().post("/deployments", json={"template": paas.template})
    ann.get("/ui/deployments")
    assert len(ann.page.select("tbody tr")) == 20
    ann.get("/ui/deployments" + ann.page.select_one("a[rel=next]")["href"])
    assert len(ann.page.select("tbody tr")) == 1
    assert ann.page.select_one("a[rel=prev]")["href"] == "?page=1"
    assert ann.get("/ui/deployments?page=3").status_code == 200
    for page in ("0", "-1", "x", "99999999999999999999"):
        assert ann.get(f"/ui/deployments?page={page}").status_code == 400


@pytest.mark.parametrize("end", ["", "/update", "/delete", "/log"])
def test_deployments_of_others_are_not_there(paas: Site, end: str) -> None:
    ann, bob = paas.browser("ann", "physics"), paas.browser("bob", "physics")
    own = made(ann, group="physics")
    paas.work()
    assert bob.get(f"/ui/deployments/{own}{end}").status_code == 404
    bob.get("/ui/quotas")
    for word in ("update", "delete", "reset"):
        fields = bob.fields("header form") | {"sure": "yes", "seen": repr(stored(paas, own).updated)}
        assert bob.post(f"/ui/deployments/{own}/{word}", fields).status_code == 404
    assert stored(paas, own).status == "CREATE_COMPLETE"
    bob.get("/ui/deployments")
    assert bob.page.select_one("#none")
    for odd in ("0", "x" * 64, "x" * 65, "%00", own.upper(), own + "%0a"):
        assert ann.get(f"/ui/deployments/{odd}{end}").status_code in (400, 404)


QUOTAS = {"quotas": {"user": {"deployments": 2}, "groups": {"physics": {"machines": 3}}}}


@pytest.mark.parametrize("paas", [QUOTAS], indirect=True)
def test_quotas(paas: Site) -> None:
    ann, bob = paas.browser("ann", "physics", "chess"), paas.browser("bob", "physics")
    ann.get("/ui/catalogue/notes")
    assert texts(ann, "#group option") == ["chess", "physics"]  # one is needed
    made(ann, group="physics")
    ann.get("/ui/quotas")
    assert texts(ann, "main h2") == ["You", "physics"]
    assert texts(ann, ".quota") == [
        "Deployments 1 of 2",
        "Machines 2, without a limit",
        "Deployments 1, without a limit",
        "Machines 2 of 3",
    ]
    bars = [(one["value"], one["max"]) for one in ann.page.select("progress")]
    assert bars == [("1", "2"), ("2", "3")]
    answer = bob.send("/ui/catalogue/notes", group="physics")
    assert answer.status_code == 403
    assert "group physics has 4 of at most 3 machines" in answer.text
    bob.get("/ui/quotas")
    assert texts(bob, ".quota")[0] == "Deployments 0 of 2"


def test_administrators_see_all_of_their_issuer(paas: Site) -> None:
    ann, eve = paas.browser("ann", "physics"), paas.browser("eve", "admins")
    own = made(ann, group="physics")
    paas.work(resources=[{"node": "server", "type": "x", "state": "STARTED", "host": "gpu7"}])
    waiting = made(ann)
    with paas.service.database.changing() as session:
        session.add(foreign(paas))
        session.add(tables.Run(deployment=FOREIGN, kind="CREATE", created=1.0))
    eve.get("/ui/all")
    assert [one.text for one in eve.page.select("td .id")] == [waiting, own]
    assert FOREIGN not in eve.page.text
    eve.get("/ui/machines")
    assert texts(eve, "tbody td")[0] == "gpu7 for server"
    assert texts(eve, "tbody td")[3] == "ann in physics"
    eve.get("/ui/runs")
    assert texts(eve, "tbody td")[2] == "waiting"
    assert "1 for users of other issuers" in eve.page.text
    assert FOREIGN not in eve.page.text
    claim = paas.runs.claim("worker one", -1)
    assert claim
    eve.get("/ui/runs")
    assert "worker lost" in eve.page.text or claim.deployment.uuid == FOREIGN
    eve.get(f"/ui/deployments/{waiting}")
    assert not eve.page.select("[data-live], noscript")  # each look is in the audit
    seen = [(action, about) for who, action, about in audit(paas) if who == "eve"]
    assert seen == [
        ("list", ""),
        ("list machines", ""),
        ("list runs", ""),
        ("list runs", ""),
        ("read", waiting),
    ]
    assert eve.get(f"/ui/deployments/{FOREIGN}").status_code == 404
    assert eve.send(f"/ui/deployments/{own}/delete").status_code == 303
    assert audit(paas)[-1] == ("eve", "delete", own)


FOREIGN = "00000000-0000-4000-8000-000000000000"


def foreign(paas: Site) -> tables.Deployment:
    return tables.Deployment(
        uuid=FOREIGN,
        issuer="https://other.example.org/",
        subject="ann",
        status="CREATE_IN_PROGRESS",
        template="notes",
        text=paas.template,
        timeout=1,
        created=1.0,
        updated=1.0,
        resources=[{"node": "server", "type": "x", "state": "STARTED", "host": "gpu9"}],
    )


@pytest.mark.parametrize("path", ["all", "runs", "machines"])
def test_pages_of_administrators_are_for_them(paas: Site, path: str) -> None:
    ann = paas.browser("ann", "physics")
    assert ann.get(f"/ui/{path}").status_code == 403
    assert not [one for one in ann.page.select("nav a") if one["href"] == f"/ui/{path}"]
    assert audit(paas) == []


def safe(browser: Browser) -> None:
    """Nothing in a page runs or loads but what the service itself has."""
    page = browser.page
    assert [one.get("src") for one in page.select("script")] == ["/ui/static/pages.js"]
    assert not page.select("style, iframe, object, embed, base, svg, img, [style], main meta")
    for element in page.find_all(True):
        assert not [name for name in element.attrs if name.startswith("on") or name == "autofocus"], element
        for name in ("href", "src", "action", "formaction"):
            assert not str(element.get(name, "")).lower().strip().startswith(("javascript", "data", "//")), (
                element
            )
    assert not re.search("[\x00-\x08\u202e]", str(page))


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_texts_of_users_stay_texts(paas: Site, text: str) -> None:
    name = text[:200] if text.isprintable() else "x"
    ann = paas.browser("ann", name, preferred_username=name)
    eve = paas.browser("eve", "admins")
    answer = ann.send(
        "/ui/catalogue/notes", **{f"input__{field}": text for field in ("text", "cpus", "names")}
    )
    assert answer.status_code == 400
    safe(ann)
    assert ann.fields()["input.cpus"] == (text if "\u202e" not in text else text.replace("\u202e", "\ufffd"))
    own = made(ann, group=name, input__text=text, input__names=text, input__settings=f"A={text}")
    claim = paas.runs.claim(text[:100], 60)
    assert claim
    paas.runs.beat(claim, 60, text)
    eve.get("/ui/runs")
    safe(eve)
    outputs: dict[str, Any] = {"text": text, text: {text: [text]}}
    resources = [{"node": text, "type": text, "state": text, "host": text}]
    paas.runs.finish(claim, Ending(well=True, outputs=outputs, resources=resources))
    for path in ("", f"/{own}", f"/{own}/update", f"/{own}/delete"):
        assert ann.get(f"/ui/deployments{path}").status_code == 200
        safe(ann)
    for path in ("all", "machines", f"deployments/{own}"):
        assert eve.get(f"/ui/{path}").status_code == 200
        safe(eve)
    assert ann.get(f"/ui/deployments/{own}/log").headers["Content-Type"].startswith("text/plain")
    ann.send(f"/ui/deployments/{own}/update", input__text="other")
    paas.work(well=False, reason=text)
    ann.get(f"/ui/deployments/{own}")
    safe(ann)
    assert ann.page.select_one("#reason")


def test_texts_of_odd_outputs_are_shown(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    paas.work(
        outputs={"a": "nul\0", "b": None, "c": True, "d": 1.5, "e": "\ud800", "f": ["\x1b[31m"]}, log="\0\x1b"
    )
    assert ann.get(f"/ui/deployments/{own}").status_code == 200
    safe(ann)
    assert "nul\ufffd" in ann.page.text
    assert ann.get(f"/ui/deployments/{own}/log").status_code == 200


@pytest.mark.parametrize("text", ["a\0b", "\x1b[31m"])
def test_characters_that_are_no_text(paas: Site, text: str) -> None:
    ann = paas.browser("ann")
    answer = ann.send("/ui/catalogue/notes", input__text=text)
    assert answer.status_code in (303, 400)
    if answer.status_code == 303:
        ann.get(answer.headers["Location"])
    safe(ann)


@pytest.mark.parametrize(
    "body",
    ["a=%ff", "a=\xe9", "&".join(f"a{number}=" for number in range(2000)), "a" * 900_000, "\0"],
    ids=["bytes", "letters", "many", "long", "nul"],
)
def test_a_body_that_is_no_form_is_refused(paas: Site, body: str) -> None:
    ann = paas.browser("ann")
    kind = "application/x-www-form-urlencoded"
    headers = {"Origin": "https://paas.example.org", "Content-Type": kind}
    answer = ann.http.post("/ui/catalogue/notes", content=body.encode(), headers=headers)
    assert answer.status_code in (400, 403)
    assert answer.headers["Content-Type"].startswith("text/html")


def test_a_template_that_is_offered_no_more(paas: Site) -> None:
    ann = paas.browser("ann")
    own = made(ann)
    paas.work()
    with paas.service.database.changing() as session:
        session.get_one(tables.Deployment, own).template = "former"
    assert ann.get(f"/ui/deployments/{own}").status_code == 200
    answer = ann.get(f"/ui/deployments/{own}/update")
    assert answer.status_code == 400
    assert "offered no more" in answer.text


def test_a_run_needs_no_login(paas: Site) -> None:
    """A request is carried out after the sign-out of its user."""
    ann = paas.browser("ann")
    own = made(ann)
    ann.get("/ui/quotas")
    ann.post("/ui/sign-out", ann.fields("header form"))
    paas.work(outputs={"text": "x"})
    assert stored(paas, own).status == "CREATE_COMPLETE"


WRONG_FORMS = [
    ("inputs: {colour: {type: string}}", "there is no input colour"),
    ("inputs: []", None),
    ("inputs: [a]", "inputs has to be a map"),
    ("inputs: {text: red}", "input text has to be a map"),
    ("[]", "no mapping"),
]


@pytest.mark.parametrize(("text", "sentence"), [case for case in WRONG_FORMS if case[1]])
def test_a_wrong_form_is_refused_at_the_start(tmp_path: Path, iam: Issuer, text: str, sentence: str) -> None:
    (tmp_path / "wrong.yml").write_text(text)
    templates = {"notes": {"template": "notes.yaml", "form": "wrong.yml"}}
    with (
        pytest.raises(BadInput, match=sentence),
        site(tmp_path, iam, **with_pages(tmp_path, iam), templates=templates),
    ):
        pass


def test_a_database_that_is_away_is_told_on_a_page(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    ann = paas.browser("ann")

    def fails(*_what: Any) -> None:
        raise RuntimeError("swordfish")

    monkeypatch.setattr(paas.service.deployments, "page", fails)
    answer = ann.get("/ui/deployments")
    assert answer.status_code == 500
    assert "swordfish" not in answer.text
    assert texts(ann, "main h1") == ["This did not work"]


@pytest.mark.parametrize("database_url", ["sqlite", "postgresql"], indirect=True)
def test_pages_on_each_kind_of_database(tmp_path: Path, iam: Issuer, database_url: str) -> None:
    quotas = {"groups": {"physics": {"machines": 3}}}
    with site(tmp_path, iam, database=database_url, quotas=quotas, **with_pages(tmp_path, iam)) as paas:
        ann, eve = paas.browser("ann", "physics"), paas.browser("eve", "admins")
        own = made(ann, group="physics")
        for path in (f"deployments/{own}", "deployments", "quotas", "catalogue"):
            assert ann.get(f"/ui/{path}").status_code == 200
        ann.get("/ui/quotas")
        assert "Machines 1 of 3" in texts(ann, ".quota")
        eve.get("/ui/runs")
        assert texts(eve, "tbody td")[2] == "waiting"
        paas.work(resources=[{"node": "server", "type": "x", "state": "STARTED", "host": "gpu7"}])
        for path in ("all", "machines"):
            eve.get(f"/ui/{path}")
            assert own in eve.page.text
        ann.post("/ui/sign-out", ann.fields("header form"))
        assert ann.http.get("/ui/deployments").status_code == 303
