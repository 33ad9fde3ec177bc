# SPDX-License-Identifier: GPL-3.0-or-later
"""Users of the bench's identity provider, which is another program, sign in to the pages."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from bs4 import BeautifulSoup
from fastapi.testclient import TestClient
from gpufarm.serve import settings
from gpufarm.serve.application import application
from gpufarm.serve.service import Service

from lab import bench as benches
from lab.bench import Bench
from lab.pages import parse
from lab.patience import PATIENCE
from lab.spec import HostSpec
from lab.visitor import trust

URL = "https://paas.example.org"

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def iam(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    made = Bench("pages", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up([HostSpec("iam", iam=True)])
        yield made.status()["iam"]
    finally:
        made.down()


def visitor(iam: dict[str, Any]) -> httpx.Client:
    context = trust(Path(iam["ca_file"]).read_text())
    return httpx.Client(verify=context, trust_env=False, timeout=PATIENCE)


@pytest.fixture
def service(iam: dict[str, Any], tmp_path: Path) -> Iterator[Service]:
    with visitor(iam) as http:
        asked = {
            "client_name": "Pages",
            "redirect_uris": [f"{URL}/ui/signed-in"],
            "grant_types": ["authorization_code"],
            "scope": "openid profile email",
        }
        answer = http.post(f"{iam['url']}/iam/api/client-registration", json=asked)
    assert answer.status_code == 201, answer.text
    (tmp_path / "client.secret").write_text(answer.json()["client_secret"])
    (tmp_path / "client.secret").chmod(0o600)
    client = {"client_id": answer.json()["client_id"], "client_secret_file": "client.secret"}
    content = {
        "url": URL,
        "folder": "serve",
        "deployer": {"state": "state", "pool": "pool.yml"},
        "database": f"sqlite:///{tmp_path}/serve.db",
        "issuers": [{"issuer": iam["url"], "ca_file": iam["ca_file"], "administrators": "ml-infn"}],
        "pages": {"issuer": iam["url"], **client},
        "templates": {
            "machine": {"template": "gpu_node"},
            "notebooks": {"template": "ml_infn", "groups": ["ml-infn"]},
        },
    }
    (tmp_path / "serve.yml").write_text(yaml.safe_dump(content))
    made = Service(settings.read(tmp_path / "serve.yml"))
    yield made
    made.database.engine.dispose()


def led(http: httpx.Client, answer: httpx.Response) -> httpx.Response:
    """Follow redirects as long as they stay at the provider."""
    while answer.next_request and not str(answer.next_request.url).startswith(URL):
        answer = http.send(answer.next_request)
    return answer


def sign_in(iam: dict[str, Any], browser: TestClient, user: str, decision: str = "approve") -> httpx.Response:
    """Sign in as a person does, and come back."""
    password = json.loads(Path(iam["users_file"]).read_text())[user]["password"]
    begun = browser.get("/ui/sign-in?next=/ui/catalogue")
    with visitor(iam) as http:
        page = led(http, http.get(begun.headers["Location"]))
        for identifier, values in (("login", {"username": user, "password": password}), (decision, {})):
            form = parse(page.text).form(identifier)
            assert form, page.text
            page = led(http, http.post(page.url.join(form.action), data=values))
    assert page.next_request, page.text
    return browser.get(str(page.next_request.url))


def test_users_get_their_name_and_their_rights(iam: dict[str, Any], service: Service) -> None:
    app = application(service)
    seen = {}
    for user in ("alice", "bob"):
        browser = TestClient(app, base_url=URL, follow_redirects=False)
        answer = sign_in(iam, browser, user)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/ui/catalogue")
        page = BeautifulSoup(browser.get("/ui/catalogue").text, "html.parser")
        assert page.select_one("header bdi").text == user
        seen[user] = [one.text for one in page.select("main h2, nav a")]
    mine = ["My deployments", "Catalogue", "Quotas", "Hours"]
    assert seen["alice"] == [*mine, "machine"]
    assert seen["bob"] == [*mine, "All deployments", "Queue", "Machines", "All hours", "machine", "notebooks"]


def test_a_user_who_denies_is_not_signed_in(iam: dict[str, Any], service: Service) -> None:
    browser = TestClient(application(service), base_url=URL, follow_redirects=False)
    answer = sign_in(iam, browser, "alice", "deny")
    assert answer.status_code == 401
    assert "access_denied" in answer.text
    assert browser.get("/ui/catalogue").status_code == 303
