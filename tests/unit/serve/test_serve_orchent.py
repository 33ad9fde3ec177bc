# SPDX-License-Identifier: GPL-3.0-or-later
"""The calls of the command orchent, with the rules by which it reads the answers."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest
from serve_site import Site


def pages(client: Any, url: str) -> list[dict[str, Any]]:
    """Orchent goes on only if self, next and last are all there and self is another one than last."""
    found: list[dict[str, Any]] = []
    while True:
        page = client.get(url).json()
        found += page["content"]
        links = {entry["rel"]: entry["href"] for entry in page["links"]}
        if not {"self", "next", "last"} <= links.keys() or links["self"] == links["last"]:
            return found
        url = links["next"]


def test_test(paas: Site) -> None:
    """`orchent test` takes any JSON without these entries for an orchestrator."""
    answer = paas.client().get("/info")
    assert answer.status_code == 200
    assert not {"code", "error", "message"} & answer.json().keys()


def test_showconf(paas: Site) -> None:
    """`orchent showconf` wants a flat map of texts, without a login."""
    answer = paas.client().get("/configuration")
    assert answer.status_code == 200
    assert all(isinstance(value, str) for value in answer.json().values())


@pytest.mark.parametrize("number", [0, 1, 9, 10, 11, 25])
def test_depls(paas: Site, number: int) -> None:
    client = paas.user()
    template = {"template": paas.template}
    made = [client.post("/deployments", json=template).json()["uuid"] for _ in range(number)]
    found = pages(client, "/deployments?createdBy=me")
    assert [entry["uuid"] for entry in found] == made[::-1]
    for entry in found:
        datetime.strptime(entry["creationTime"][:16], "%Y-%m-%dT%H:%M")  # as much of it is printed


def test_depcreate_depshow_deptemplate_deplog_and_depdel(paas: Site) -> None:
    client = paas.user()
    body = {"template": paas.template, "parameters": {"cpus": 2}, "callback": "", "keepLastAttempt": "false"}
    answer = client.post("/deployments", json=body)
    assert answer.status_code == 201
    own = answer.json()["uuid"]
    shown = client.get(f"/deployments/{own}").json()
    assert shown["uuid"] == own
    links = {entry["rel"]: entry["href"] for entry in shown["links"]}
    assert client.get(links["template"]).text == paas.template
    assert pages(client, links["resources"]) == []
    assert client.get(f"/deployments/{own}/log").status_code == 200
    assert client.get(f"/deployments/{own}/extrainfo").text == "[]"
    assert client.delete(f"/deployments/{own}").status_code == 204


def test_depupdate(paas: Site) -> None:
    """It reads a deployment from the answer, and tells of a failure if there is none."""
    client = paas.user()
    own = client.post("/deployments", json={"template": paas.template}).json()["uuid"]
    paas.work()
    answer = client.put(f"/deployments/{own}", json={"template": paas.template, "parameters": {"cpus": 3}})
    assert answer.status_code == 202
    assert (answer.json()["uuid"], answer.json()["status"]) == (own, "UPDATE_IN_PROGRESS")


def test_depreset(paas: Site) -> None:
    client = paas.user()
    own = client.post("/deployments", json={"template": paas.template}).json()["uuid"]
    paas.work()
    client.delete(f"/deployments/{own}")
    assert client.patch(f"/deployments/{own}", json={"status": "DELETE_FAILED"}).status_code == 204
