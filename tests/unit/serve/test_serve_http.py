# SPDX-License-Identifier: GPL-3.0-or-later
"""The interface as clients see it: statuses, bodies, dates, pages, errors; and what users must not get."""

from __future__ import annotations

import io
import json
import re
import sqlite3
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from doubles.issuer import Issuer, issuer
from gpufarm.serve import offers, tables
from gpufarm.serve.runs import Ending
from gpufarm.serve.worker import Worker
from httpx import Response
from serve_site import Site, site
from sqlalchemy import select

SECRET = "correct horse"


def sent(paas: Site, client: Any, template: str | None = None, **fields: Any) -> Response:
    body = json.dumps({"template": template or paas.template, **fields})
    return client.post("/deployments/", content=body)


def made(paas: Site, client: Any, **fields: Any) -> str:
    answer = sent(paas, client, **fields)
    assert answer.status_code == 201, answer.text
    return answer.json()["uuid"]


def refused(answer: Response, code: int, words: str = "") -> dict[str, Any]:
    assert answer.status_code == code, answer.text
    body = answer.json()
    assert body.keys() == {"code", "title", "message"}
    assert body["code"] == code
    assert re.search(words, body["message"]), body["message"]
    return body


def stored(paas: Site, uuid: str) -> tables.Deployment:
    with paas.service.database.reading() as session:
        return session.get_one(tables.Deployment, uuid)


def test_what_needs_no_login(paas: Site) -> None:
    anybody = paas.client()
    assert anybody.get("/").text
    assert anybody.get("/info").json()["build"]["version"]
    assert anybody.get("/configuration").json() == {"cmdb_url": "https://cmdb.example.org/"}
    assert anybody.get("/openapi.json").json()["paths"]


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", ""),
        ("POST", ""),
        ("GET", "/{uuid}"),
        ("PUT", "/{uuid}"),
        ("PATCH", "/{uuid}"),
        ("DELETE", "/{uuid}"),
        ("GET", "/{uuid}/template"),
        ("GET", "/{uuid}/log"),
        ("GET", "/{uuid}/extrainfo"),
        ("GET", "/{uuid}/resources"),
        ("GET", "/{uuid}/resources/{uuid}"),
        ("POST", "/{uuid}/resources/{uuid}/actions"),
    ],
)
def test_all_else_needs_one_and_shows_nothing_of_others(paas: Site, method: str, path: str) -> None:
    own = made(paas, paas.user())
    paas.work(resources=[{"node": "server", "type": "x", "state": "STARTED"}])
    place = f"/deployments{path}".replace("{uuid}", own)
    bodies: dict[str, Any] = {
        "POST": {"template": paas.template} if not path else {"type": "start"},
        "PUT": {"template": paas.template},
        "PATCH": {"status": "DELETE_FAILED"},
    }
    body = {"json": bodies[method]} if method in bodies else {}
    answer = paas.client().request(method, place, **body)
    refused(answer, 401)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    if path:
        refused(paas.user("bob", "physics").request(method, place, **body), 404)
    assert stored(paas, own).status == "CREATE_COMPLETE"


def test_a_new_deployment_has_all_that_the_dashboard_reads(paas: Site) -> None:
    answer = sent(paas, paas.user("ann", "physics"), userGroup="physics", callback=None)
    assert answer.status_code == 201
    body = answer.json()
    here = f"https://paas.example.org/deployments/{body['uuid']}"
    assert uuid.UUID(body["uuid"])
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d\+0000", body["creationTime"])
    assert body["updateTime"] == body["creationTime"]
    assert body["status"] == "CREATE_IN_PROGRESS"
    assert body["task"] != "NONE"
    assert body["outputs"] == {}
    assert body["userGroup"] == "physics"
    assert body["createdBy"] == {"subject": "ann", "issuer": paas.iam.url}
    assert {entry["rel"]: entry["href"] for entry in body["links"]} == {
        "self": here,
        "resources": f"{here}/resources",
        "template": f"{here}/template",
    }
    assert None not in body.values()
    assert sent(paas, paas.user()).json()["userGroup"] == ""


def test_without_the_slash_it_is_the_same(paas: Site) -> None:
    client = paas.user()
    assert client.post("/deployments", json={"template": paas.template}).status_code == 201
    assert client.get("/deployments?createdBy=me").json() == client.get("/deployments/?createdBy=me").json()


def test_the_life_of_a_deployment(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client, parameters={"text": "one", "cpus": "2"})
    here = f"/deployments/{own}"
    refused(client.put(here, json={"template": paas.template}), 409, "CREATE_IN_PROGRESS")
    refused(client.patch(here, json={"status": "DELETE_FAILED"}), 409)
    paas.work(outputs={"text": "one"})
    body = client.get(here).json()
    assert (body["status"], body["task"], body["outputs"]) == ("CREATE_COMPLETE", "NONE", {"text": "one"})
    answer = client.put(here, json={"template": paas.template, "parameters": {"text": "two"}})
    assert (answer.status_code, answer.json()["uuid"]) == (202, own)
    assert stored(paas, own).parameters == {"text": "two", "cpus": 2, "owner": "ann"}
    paas.work(well=False, reason="server.configure on gpu1: a task failed")
    body = client.get(here).json()
    assert (body["status"], body["statusReason"]) == (
        "UPDATE_FAILED",
        "server.configure on gpu1: a task failed",
    )
    # the dashboard sends a body, and says force in any case
    answer = client.request("DELETE", f"{here}?force=false", json=["force=false"])
    assert (answer.status_code, answer.content) == (204, b"")
    refused(client.delete(here), 409)
    refused(client.patch(here, json={"status": "CREATE_FAILED"}), 400)
    assert client.patch(here, json={"status": "DELETE_FAILED"}).status_code == 204
    assert client.get(here).json()["status"] == "DELETE_FAILED"
    assert client.delete(f"{here}?force=true").status_code == 204
    paas.work()
    assert client.get(here).json()["status"] == "DELETE_COMPLETE"
    refused(client.delete(here), 409)


def test_an_administrator_forces_a_removal(paas: Site) -> None:
    client, administrator = paas.user(), paas.user("root", "admins")
    own = made(paas, client)
    paas.work()
    assert administrator.delete(f"/deployments/{own}?force=true").status_code == 204
    claim = paas.runs.claim("w", 60)
    assert claim and claim.force
    paas.runs.finish(claim, Ending(well=True, reason="given up with their machines: hub.delete on m3"))
    body = client.get(f"/deployments/{own}").json()
    assert (body["status"], body["statusReason"]) == (
        "DELETE_COMPLETE",
        "given up with their machines: hub.delete on m3",
    )


def test_an_unbegun_deployment_is_gone_at_once(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client)
    assert client.delete(f"/deployments/{own}").status_code == 204
    assert client.get(f"/deployments/{own}").json()["status"] == "DELETE_COMPLETE"


def test_values_leave_with_the_deployment(paas: Site) -> None:
    client = paas.user()
    begun, unbegun = (made(paas, client, parameters={"text": "mine"}) for _ in range(2))
    assert client.delete(f"/deployments/{unbegun}").status_code == 204
    paas.work(outputs={"text": "mine"})
    assert client.delete(f"/deployments/{begun}").status_code == 204
    assert stored(paas, begun).parameters["text"] == "mine"  # a removal that fails can be looked into
    paas.work()
    for own in (begun, unbegun):
        assert client.get(f"/deployments/{own}").json()["status"] == "DELETE_COMPLETE"
        assert (stored(paas, own).text, stored(paas, own).parameters) == ("", {})
        assert client.get(f"/deployments/{own}/template").text == ""


def test_the_template_is_compared_as_data_and_kept_as_sent(paas: Site) -> None:
    client = paas.user()
    again = yaml.safe_dump(yaml.safe_load(paas.template))  # as the dashboard writes it
    assert again != paas.template
    own = made(paas, client, template=again)
    answer = client.get(f"/deployments/{own}/template")
    assert (answer.text, answer.headers["Content-Type"]) == (again, "text/plain; charset=utf-8")


CHANGES = [
    ("min_instances: 1", "min_instances: 1.0"),
    ("min_instances: 1", "min_instances: true"),
    ("min_instances: 1", "min_instances: '1'"),
    ("type: tosca.nodes.test.Server", "type: tosca.nodes.Compute"),
    ("imports:\n  - types.yaml", "imports:\n  - /etc/types.yaml"),
    ("template_name: notes", "template_name: other"),
]


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_no_other_template_is_run(paas: Site, old: str, new: str) -> None:
    assert old in paas.template
    refused(sent(paas, paas.user(), paas.template.replace(old, new)), 400, "not in the catalogue.*: notes$")


NO_TEMPLATES = [
    *("", " ", "a: [", "- a\n- b", "!!python/object/apply:os.system [id]", "&a [*a]", "a: 1\na: 2", "\0"),
    *("!!int ''", "!!bool maybe", "!!float ''", "!!int '_'", "!!timestamp x"),
    *("[" * 200_000, "\ud800", 'x: "\ud800"', "a" * 600_000),
]


@pytest.mark.parametrize("text", NO_TEMPLATES, ids=lambda text: ascii(text)[:30])
def test_what_is_no_template_is_refused(paas: Site, text: str) -> None:
    refused(sent(paas, paas.user(), text or " "), 400)


def test_texts_that_are_no_template_by_their_size_are_not_read(
    paas: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []
    real = offers.document.value
    monkeypatch.setattr(offers.document, "value", lambda text: read.append(text) or real(text))
    longer = paas.template + "#" * len(paas.template)
    refused(sent(paas, paas.user(), longer + "#"), 400, "not in the catalogue")
    assert not read
    assert sent(paas, paas.user(), longer).status_code == 201
    # nothing but the number of values is looked at
    monkeypatch.setattr(offers, "_fingerprint", lambda _data: pytest.fail("it was read"))
    refused(
        sent(paas, paas.user(), "- &a [" + "1," * 200 + "1]\n" + "- *a\n" * 200), 400, "not in the catalogue"
    )


def test_a_template_is_for_its_groups(paas: Site) -> None:
    values = {"name": "n", "admin_password": SECRET}
    bob = paas.user("bob", "chemistry")
    refused(sent(paas, bob, paas.closed, parameters=values), 403, "members of physics")
    both = paas.user("ann", "physics", "chemistry")
    refused(sent(paas, both, paas.closed, parameters=values, userGroup="chemistry"), 403, "not for group")
    assert sent(paas, both, paas.closed, parameters=values, userGroup="physics").status_code == 201
    refused(sent(paas, both, userGroup="admins"), 403, "not in group admins")


def test_a_group_of_another_issuer_is_another_group(tmp_path: Path, iam: Issuer) -> None:
    (tmp_path / "serve").mkdir()
    with issuer(tmp_path / "other") as other:
        issuers = [{"issuer": one.url, "ca_file": str(one.ca_file)} for one in (iam, other)]
        templates = {
            "notes": {"template": "notes.yaml"},
            "needy": {"template": "needy.yaml", "groups": ["physics"], "issuers": [iam.url]},
        }
        with site(tmp_path / "serve", iam, issuers=issuers, templates=templates) as paas:
            values = {"name": "n", "admin_password": SECRET}
            stranger = paas.client(other.token(groups=["physics"]))
            refused(sent(paas, stranger, paas.closed, parameters=values), 403, "users of https.*sign in")
            refused(sent(paas, stranger, "other"), 400, "unchanged: notes$")
            assert sent(paas, stranger).status_code == 201
            assert sent(paas, paas.user("ann", "physics"), paas.closed, parameters=values).status_code == 201


def test_owners_are_named_by_the_service(paas: Site) -> None:
    own = made(paas, paas.user(), parameters={"owner": "root"})
    assert stored(paas, own).parameters["owner"] == "ann"
    paas.work()
    for client in (paas.user(), paas.user("chief", "admins")):
        answer = client.put(
            f"/deployments/{own}", json={"template": paas.template, "parameters": {"owner": "root"}}
        )
        assert answer.status_code == 202
        assert stored(paas, own).parameters["owner"] == "ann"
        paas.work()
    refused(sent(paas, paas.user(preferred_username="")), 403, "preferred_username")


def test_required_values_are_asked_for_and_all_mistakes_are_told(paas: Site) -> None:
    client = paas.user("ann", "physics")
    refused(
        sent(paas, client, paas.closed), 400, "input name: .* needs one\ninput admin_password: .* needs one"
    )
    wrong = {"cpus": "many", "memory": "64", "colour": "red", "number": "1000"}
    message = refused(sent(paas, client, parameters=wrong), 400)["message"]
    assert "cpus" in message and "colour" in message
    message = refused(sent(paas, client, parameters={"memory": "64", "cpus": "0"}), 400)["message"]
    assert "memory" in message and "cpus" in message
    refused(sent(paas, client, parameters={"text": {"get_input": "owner"}}), 400, "function")
    refused(sent(paas, client, parameters={"text": "a\0"}), 400, "NUL")


def test_secrets_are_kept_sealed_and_leave_with_the_deployment(paas: Site) -> None:
    client = paas.user("ann", "physics")
    values = {"name": "n", "admin_password": SECRET}
    own = made(paas, client, template=paas.closed, parameters=values)
    claim = paas.runs.claim("w", 60)
    assert claim and claim.deployment.parameters == {"name": "n"}
    assert paas.service.key.unseal(claim.deployment.secrets) == {"admin_password": SECRET}
    paas.runs.release(claim)
    paas.work()
    changed = {"template": paas.closed, "parameters": {"name": "m"}}
    assert client.put(f"/deployments/{own}", json=changed).status_code == 202
    with sqlite3.connect(paas.folder / "serve.db") as database:
        assert SECRET not in "\n".join(database.iterdump())
    for path in ("", "/template", "/log", "/extrainfo", "/resources"):
        assert SECRET not in client.get(f"/deployments/{own}{path}").text
    client.delete(f"/deployments/{own}")
    paas.work()
    assert stored(paas, own).secrets == ""
    wrong = refused(sent(paas, client, paas.closed, parameters=values | {"admin_password": [SECRET]}), 400)
    assert SECRET not in wrong["message"]


def test_an_update_replaces_a_value_that_had_a_secret(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client, parameters={"settings": {"password": SECRET}})
    paas.work()
    for settings in ({"colour": "red"}, {"password": "another one"}, {"colour": "blue"}):
        changed = {"template": paas.template, "parameters": {"settings": settings}}
        assert client.put(f"/deployments/{own}", json=changed).status_code == 202
        claim = paas.runs.claim("w", 60)
        assert claim
        assert Worker(paas.service)._order(claim)["inputs"]["settings"] == settings
        paas.runs.finish(claim, Ending(well=True))


def test_an_update_keeps_the_time_and_the_callback(paas: Site) -> None:
    client = paas.user()
    first, other = (f"https://dashboard.example.org/{name}" for name in ("first", "other"))
    own = made(paas, client, timeoutMins=30, callback=first)
    for fields, kept in (
        ({}, (30, first)),
        ({"timeoutMins": 40, "callback": other}, (40, other)),
        ({"callback": ""}, (40, "")),
    ):
        paas.work()
        assert (
            client.put(f"/deployments/{own}", json={"template": paas.template, **fields}).status_code == 202
        )
        assert (stored(paas, own).timeout, stored(paas, own).callback) == kept


def test_an_update_keeps_the_template(paas: Site) -> None:
    client = paas.user("ann", "physics")
    own = made(paas, client)
    paas.work()
    values = {"name": "n", "admin_password": SECRET}
    refused(client.put(f"/deployments/{own}", json={"template": paas.closed, "parameters": values}), 400)
    removing = yaml.safe_load(paas.template)
    node = removing["topology_template"]["node_templates"]["server"]
    node["capabilities"]["scalable"]["properties"]["removal_list"] = [own]
    refused(client.put(f"/deployments/{own}", json={"template": yaml.safe_dump(removing)}), 400, "catalogue")
    refused(client.put(f"/deployments/{own}", json={"template": paas.template, "userGroup": "g"}), 400)


def test_a_deployment_of_a_former_release_of_its_template_can_be_updated(paas: Site) -> None:
    """Clients send the template that they read at the deployment."""
    client = paas.user("ann", "physics")
    own = made(paas, client)
    paas.work()
    former = paas.template.replace("max_instances: 9", "max_instances: 8", 1)
    with paas.service.database.changing() as session:
        session.get_one(tables.Deployment, own).text = former
    sent = client.get(f"/deployments/{own}/template").text
    assert sent == former != paas.template
    refused(client.post("/deployments", json={"template": former, "parameters": {}}), 400, "catalogue")
    assert client.put(f"/deployments/{own}", json={"template": sent}).status_code == 202
    paas.work()
    paas.service.offers._named.clear()
    refused(client.put(f"/deployments/{own}", json={"template": sent}), 400, "offered no more")


WRONG_BODIES: list[Any] = [
    {},
    [],
    "text",
    None,
    {"template": 7},
    {"template": "TEMPLATE", "more": 1},
    {"template": "TEMPLATE", "parameters": []},
    {"template": "TEMPLATE", "timeoutMins": 0},
    {"template": "TEMPLATE", "timeoutMins": "soon"},
    {"template": "TEMPLATE", "timeoutMins": True},
    {"template": "TEMPLATE", "timeoutMins": 5, "providerTimeoutMins": 6},
    {"template": "TEMPLATE", "maxProvidersRetry": -1},
    {"template": "TEMPLATE", "keepLastAttempt": "perhaps"},
    {"template": "TEMPLATE", "keepLastAttempt": 1},
    {"template": "TEMPLATE", "callback": "http://dashboard.example.org/"},
    {"template": "TEMPLATE", "callback": "https://localhost/"},
    {"template": "TEMPLATE", "callback": "https://dashboard.example.org@evil.example.org/"},
    {"template": "TEMPLATE", "callback": "https://dashboard.example.org.evil.example.org/"},
    {"template": "TEMPLATE", "callback": "file:///etc/passwd"},
    {"template": "TEMPLATE", "userGroup": ["physics"]},
]


@pytest.mark.parametrize("body", WRONG_BODIES, ids=lambda body: json.dumps(body)[:50])
def test_a_wrong_body_is_refused(paas: Site, body: Any) -> None:
    text = json.dumps(body).replace('"TEMPLATE"', json.dumps(paas.template))
    refused(paas.user().post("/deployments", content=text), 400)


def test_texts_that_no_database_takes_are_refused(database_paas: Site) -> None:
    paas = database_paas
    client = paas.user("ann", "physics")
    own = made(paas, client)
    for odd in ("\0", "\ud800", "a\0b"):
        for fields in ({"userGroup": odd}, {"callback": odd}, {odd: 1}, {"parameters": {odd: odd}}):
            assert sent(paas, client, **fields).status_code in (400, 403)
        refused(sent(paas, client, parameters={"text": odd}), 400)
        refused(sent(paas, client, parameters={"names": [{odd: odd}]}), 400)
    assert sent(paas, client, parameters={"text": "\U0001f600"}).status_code == 201
    for path in ("%00", f"{own}%00", "%ff", "x" * 65, "x" * 5000):
        assert client.get(f"/deployments/{path}").status_code in (400, 404)
        assert client.delete(f"/deployments/{path}").status_code in (400, 404)
        assert client.get(f"/deployments/{own}/resources/{path}").status_code in (400, 404)
    for query in ("userGroup=%00", "createdBy=%00@x", f"createdBy=%00@{paas.iam.url}", "userGroup=%ed%a0%80"):
        assert client.get(f"/deployments?createdBy=me&{query}").status_code in (200, 400, 403)


@pytest.mark.parametrize("depth", [30, 300, 900, 5_000, 400_000])
def test_values_with_many_levels_are_refused(paas: Site, depth: int) -> None:
    client = paas.user()
    nested = "[" * depth + "]" * depth
    body = json.dumps({"template": paas.template, "parameters": {"names": "NESTED"}})
    refused(client.post("/deployments", content=body.replace('"NESTED"', nested)), 400)
    maps = '{"a":' * depth + "1" + "}" * depth
    answer = client.post("/deployments", content=body.replace('"NESTED"', maps))
    assert answer.status_code in (400, 413)
    refused(client.post("/deployments", content=nested), 400)


def test_both_clients_may_write_numbers_and_flags_as_texts(paas: Site) -> None:
    own = made(
        paas,
        paas.user(),
        keepLastAttempt="false",
        timeoutMins="30",
        providerTimeoutMins="10",
        maxProvidersRetry=2,
        callback="https://dashboard.example.org:8443/callback?u=1".partition("?")[0],
    )
    assert stored(paas, own).timeout == 30
    assert stored(paas, made(paas, paas.user(), timeoutMins=999_999)).timeout == 1440


def test_lists_are_in_pages(paas: Site) -> None:
    client = paas.user()
    all_of_them = [made(paas, client) for _ in range(5)]
    found, page = [], client.get("/deployments?createdBy=me&size=2").json()
    assert page["page"] == {"size": 2, "totalElements": 5, "totalPages": 3, "number": 0}
    while True:
        found += [entry["uuid"] for entry in page["content"]]
        links = {entry["rel"]: entry["href"] for entry in page["links"]}
        if "next" not in links:
            break
        page = client.get(links["next"]).json()
    assert found == all_of_them[::-1]
    assert links["self"] == links["last"]
    assert client.get("/deployments?createdBy=me&page=9").json()["content"] == []
    for query in ("size=0", "size=-1", "page=-1", "page=x", "sort=uuid", "excludedStatus=GONE"):
        refused(client.get(f"/deployments?createdBy=me&{query}"), 400)
    refused(client.get("/deployments?createdBy=ann"), 400)


def test_lists_are_filtered(paas: Site) -> None:
    client = paas.user("ann", "physics", "chemistry")
    first = made(paas, client, userGroup="physics")
    second = made(paas, client, userGroup="chemistry")
    client.delete(f"/deployments/{second}")

    def listed(query: str) -> list[str]:
        return [entry["uuid"] for entry in client.get(f"/deployments?createdBy=me{query}").json()["content"]]

    assert listed("") == [second, first]
    assert listed("&userGroup=physics") == [first]
    assert listed("&excludedStatus=DELETE_COMPLETE,DELETE_FAILED") == [first]


def test_owners_are_written_with_and_without_a_slash(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client)
    for name in (paas.iam.url, paas.iam.url.rstrip("/")):
        found = client.get("/deployments", params={"createdBy": f"ann@{name}"}).json()["content"]
        assert [entry["uuid"] for entry in found] == [own]


def test_lists_of_others_are_for_administrators_and_noted(paas: Site) -> None:
    own = made(paas, paas.user())
    bob, chief = paas.user("bob", "physics"), paas.user("chief", "admins")
    for query in ("", f"?createdBy=ann@{paas.iam.url}", "?createdBy=ann@https://other.example.org"):
        refused(bob.get(f"/deployments{query}"), 403)
    for query in ("", f"?createdBy=ann@{paas.iam.url}"):
        assert [entry["uuid"] for entry in chief.get(f"/deployments{query}").json()["content"]] == [own]
    for path in ("", "/log", "/template"):
        assert chief.get(f"/deployments/{own}{path}").status_code == 200
    with paas.service.database.reading() as session:
        entries = session.scalars(select(tables.Audit).where(tables.Audit.subject == "chief"))
        actions = [entry.action for entry in entries]
    assert actions == ["list", "list", "read", "read log", "read template"]


def test_logs_and_errors_are_safe_as_html(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client)
    claim = paas.runs.claim("w", 60)
    assert claim
    paas.runs.beat(claim, 60, "<script>alert(1)</script> & more\n")
    answer = client.get(f"/deployments/{own}/log")
    assert answer.text == "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more\n"
    assert answer.headers["Content-Type"] == "text/plain; charset=utf-8"
    evil = "<img src=x onerror=alert(1)>"
    answers = [
        sent(paas, client, parameters={evil: 1}),
        sent(paas, client, parameters={"cpus": evil}),
        sent(paas, client, userGroup=evil),
        sent(paas, client, **{evil: 1}),
        client.get(f"/deployments/{evil}"),
        client.get(f"/deployments?excludedStatus={evil}"),
        client.get(f"/deployments?createdBy=me&page={evil}"),
        client.get(f"/{evil}"),
        client.post("/deployments", json={"template": evil + ": ["}),
    ]
    for answer in answers:
        assert answer.status_code >= 400
        assert "<" not in answer.text and answer.json()["message"]


RESOURCES = [
    {
        "node": "server",
        "type": "tosca.nodes.Compute",
        "state": "STARTED",
        "host": "gpu1",
        "required_by": ["hub"],
        "metadata": {"VirtualMachineInfo": json.dumps({"vmProperties": [{"class": "system"}]})},
    },
    {"node": "hub", "type": "tosca.nodes.gpufarm.JupyterHub", "state": "STARTED"},
]


def test_resources(paas: Site) -> None:
    client = paas.user()
    own = made(paas, client)
    here = f"/deployments/{own}"
    assert client.get(f"{here}/extrainfo").text == "[]"
    paas.work(resources=RESOURCES)
    page = client.get(f"{here}/resources").json()
    server, hub = page["content"]
    assert server["requiredBy"] == [hub["uuid"]]
    assert (server["toscaNodeName"], server["physicalId"], server["state"]) == ("server", "gpu1", "STARTED")
    assert hub["metadata"] == {}
    assert page["page"]["totalElements"] == 2
    chosen = client.get(f"{here}/resources?type=tosca.nodes.Compute").json()["content"]
    assert chosen == [server]
    assert client.get(f"{here}/resources/{server['uuid']}").json() == server
    assert json.loads(client.get(f"{here}/extrainfo").text) == [{"vmProperties": [{"class": "system"}]}]
    refused(client.get(f"{here}/resources/{own}"), 404)
    refused(client.post(f"{here}/resources/{server['uuid']}/actions", json={"type": "stop"}), 409)
    refused(client.post(f"{here}/resources/{server['uuid']}/actions", json={"type": "burn"}), 400)


QUOTAS = {"user": {"machines": 3}, "group": {"deployments": 1}}


@pytest.mark.parametrize("paas", [{"quotas": QUOTAS}], indirect=True)
def test_quotas(paas: Site) -> None:
    client = paas.user("ann", "physics")
    refused(sent(paas, client), 403, "userGroup is missing.*physics")
    client = paas.user("ann")
    own = made(paas, client, parameters={"number": "2"})
    refused(sent(paas, client, parameters={"number": "2"}), 403, "4 of at most 3 machines")
    paas.work()
    grown = {"template": paas.template, "parameters": {"number": "4"}}
    refused(client.put(f"/deployments/{own}", json=grown), 403, "4 of at most 3 machines")
    made(paas, paas.user("ann", "physics"), userGroup="physics")
    refused(sent(paas, paas.user("bob", "physics"), userGroup="physics"), 403, "group physics has")


@pytest.mark.parametrize("paas", [{"limits": {"requests_per_minute": 5}}], indirect=True)
def test_rates_are_limited_for_each_user_and_for_guesses(paas: Site) -> None:
    ann, bob = paas.user("ann"), paas.user("bob")
    assert [ann.get("/deployments?createdBy=me").status_code for _ in range(6)] == [200] * 5 + [429]
    assert ann.get("/deployments?createdBy=me").headers["Retry-After"]
    assert bob.get("/deployments?createdBy=me").status_code == 200
    guesser = paas.client("guess", address="198.51.100.1")
    assert [guesser.get("/deployments").status_code for _ in range(6)] == [401] * 5 + [429]
    assert paas.client("guess", address="198.51.100.2").get("/deployments").status_code == 401


@pytest.mark.parametrize("paas", [{"limits": {"requests_per_minute": 5}}], indirect=True)
def test_guesses_lock_out_no_user_who_has_just_been_there(paas: Site) -> None:
    """All users of a dashboard come from its address."""
    client = paas.user()
    assert client.get("/deployments?createdBy=me").status_code == 200
    guesser = paas.client("guess")
    assert [guesser.get("/deployments").status_code for _ in range(6)] == [401] * 5 + [429]
    assert client.get("/deployments?createdBy=me").status_code == 200


@pytest.mark.parametrize("paas", [{"limits": {"requests_per_minute": 5}}], indirect=True)
@pytest.mark.parametrize(
    "content", [b"{", b"x" * 1_100_000, b"{}", b""], ids=["broken", "large", "empty", "no"]
)
def test_bodies_of_strangers_are_not_read_and_wrong_ones_are_counted(paas: Site, content: bytes) -> None:
    def codes(client: Any) -> list[int]:
        return [client.post("/deployments", content=content).status_code for _ in range(6)]

    assert codes(paas.client("guess")) == [401] * 5 + [429]
    *wrong, last = codes(paas.client(paas.iam.token(), address="192.0.2.8"))
    assert set(wrong) <= {400, 413} and last == 429


def test_large_bodies_are_refused_whether_they_say_so_or_not(paas: Site) -> None:
    client = paas.user()
    refused(client.post("/deployments", content=b"x" * 1_100_000), 413)
    refused(client.post("/deployments", content=(b"x" * 100_000 for _ in range(20))), 413)
    refused(client.post("/deployments", content=b"x", headers={"Content-Length": "9" * 5000}), 413)


def test_every_answer_has_the_headers_and_the_form_of_an_error(paas: Site) -> None:
    client = paas.user()
    answers = [
        client.get("/"),
        client.get("/deployments?createdBy=me"),
        refused(client.get("/nothing"), 404) and client.get("/nothing"),
        refused(client.post("/"), 405) and client.post("/"),
        client.post("/deployments", content=b"x" * 1_100_000),
        client.post("/deployments", content=b"{"),
        paas.client().get("/deployments"),
    ]
    for answer in answers:
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert "Server" not in answer.headers


def test_a_defect_tells_nothing(paas: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_what: Any) -> None:
        raise RuntimeError("secret reason")

    monkeypatch.setattr(paas.service.deployments, "find", fail)
    body = refused(paas.user().get(f"/deployments/{uuid.uuid4()}"), 500)
    assert "secret reason" not in json.dumps(body)


@pytest.mark.usefixtures("impatient")
def test_a_database_that_is_locked_is_told(paas: Site) -> None:
    with sqlite3.connect(paas.folder / "serve.db", isolation_level=None) as other:
        other.execute("BEGIN IMMEDIATE")
        answer = sent(paas, paas.user())
    refused(answer, 503)
    assert answer.headers["Retry-After"]


@pytest.mark.parametrize("paas", [{"listen": {"metrics_from": ["127.0.0.1", "192.0.2.0/24"]}}], indirect=True)
def test_metrics_are_for_some_addresses_and_name_nobody(paas: Site) -> None:
    own = made(paas, paas.user())
    refused(paas.client(address="198.51.100.1").get("/metrics"), 403)
    text = paas.client(address="192.0.2.9").get("/metrics").text
    assert 'gpufarm_serve_deployments{status="CREATE_IN_PROGRESS"} 1.0' in text
    assert 'gpufarm_serve_requests_total{method="POST",status="201"} 1.0' in text
    assert own not in text and "ann" not in text.replace("cancelled", "")
    assert io.StringIO(text).readline().startswith("# HELP")


def test_an_issuer_that_is_away_is_told(paas: Site, iam: Issuer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(iam.changes, "/userinfo", (500, b"", {}))
    answer = paas.client(iam.token(groups=None)).get("/deployments?createdBy=me")
    refused(answer, 503)
    assert answer.headers["Retry-After"]
