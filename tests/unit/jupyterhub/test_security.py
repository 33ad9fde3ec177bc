"""Attacks on a real hub: forged requests, redirects, cookies, tokens, names and fields."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from hub_process import Browser, HubProcess, slices, users_of

from lab.patience import PATIENCE

QUEUE = "/gpufarm/users/{}/queue/"


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    limits: list[dict[str, Any]] = [{"name": "everybody", "servers": 2}]
    hub = HubProcess(tmp_path_factory.mktemp("hub"), limits)
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture
def user(process: HubProcess) -> Iterator[Callable[[str], Browser]]:
    """Log users in; at the end nobody holds anything or waits, and the hub has made no mistake."""
    before = (process.folder / "hub.log").stat().st_size
    with users_of(process) as log_in:
        yield log_in
    written = (process.folder / "hub.log").read_text()[before:]
    assert "Uncaught exception" not in written and "] 500 " not in written


def test_a_form_of_another_site_starts_nothing(user: Callable[[str], Browser]) -> None:
    alice = user("alice")
    for token in (None, "", "guess", "2|1:0|10:1|5:_xsrf|4:AAAA|" + "0" * 64):
        query = {} if token is None else {"_xsrf": token}
        answer = alice.http.post("/hub/spawn", params=query, data={"memory": "1G"})
        assert answer.status_code == 403
    assert not alice.running()


def test_a_request_of_another_site_changes_nothing(user: Callable[[str], Browser]) -> None:
    carol, mallory = user("carol"), user("mallory")
    for method, path in (
        ("GET", "/gpufarm/slices"),
        ("GET", QUEUE.format("carol")),
        ("DELETE", QUEUE.format("carol")),
        ("POST", "/users/carol/server"),
        ("DELETE", "/users/carol/server"),
        ("POST", "/users/carol/tokens"),
        ("POST", "/shutdown"),
    ):
        # A token of somebody else is none.
        for token in ({}, {"X-XSRFToken": "guess"}, {"X-XSRFToken": mallory.xsrf}):
            foreign = {**token, "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "cors"}
            assert carol.http.request(method, f"/hub/api{path}", headers=foreign).status_code == 403, path


ELSEWHERE = [
    "https://evil.example/",
    "//evil.example/",
    "///evil.example/",
    "////evil.example/",
    r"\\evil.example",
    r"/\evil.example",
    "https:evil.example",
    "https:///evil.example",
    "javascript:alert(1)",
    "{hub}.evil.example/",
    "{hub}@evil.example/",
    "/%2f%2fevil.example",
    "\t//evil.example",
]


def test_a_login_leads_to_no_other_site(process: HubProcess) -> None:
    browser = Browser(process, "alice")
    for target in ELSEWHERE:
        answer = browser.http.get(
            "/hub/login", params={"next": target.replace("{hub}", process.url)}, follow_redirects=False
        )
        location = answer.headers["location"]
        reached = httpx.URL(f"{process.url}/hub/login").join(location)
        assert f"{reached.scheme}://{reached.netloc.decode()}" == process.url, target
        assert not location.startswith(("//", "/\\", "\\")), target
    browser.http.close()


def test_cookies_are_kept_from_scripts_and_other_sites(process: HubProcess) -> None:
    browser = Browser(process, "alice")
    cookies = {cookie.name: cookie for cookie in browser.http.cookies.jar}
    assert {"jupyterhub-hub-login", "jupyterhub-session-id", "_xsrf"} <= set(cookies)
    for cookie in cookies.values():
        assert cookie.get_nonstandard_attr("SameSite") == "Lax"
    assert cookies["jupyterhub-hub-login"].has_nonstandard_attr("HttpOnly")
    assert cookies["jupyterhub-session-id"].has_nonstandard_attr("HttpOnly")
    browser.http.close()


def test_headers(process: HubProcess) -> None:
    browser = Browser(process, "bob")
    stranger = httpx.Client(base_url=process.url, trust_env=False, timeout=PATIENCE)
    for path in ("/hub/home", "/hub/login", "/hub/slices", "/hub/api/gpufarm/slices", "/hub/nowhere"):
        for client in (browser.http, stranger):
            headers = client.get(path).headers
            assert headers["X-Content-Type-Options"] == "nosniff"
            assert headers["Referrer-Policy"] == "same-origin"
            assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
            assert headers["Server"] == "JupyterHub"
            assert "Access-Control-Allow-Origin" not in headers
    browser.http.close()
    stranger.close()


def test_what_the_token_of_a_notebook_cannot_do(process: HubProcess, user: Callable[[str], Browser]) -> None:
    alice, carol, bob = user("alice"), user("carol"), user("bob")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    environment = json.loads((process.folder / "jupyterhub-notebook-alice.service.env").read_text())
    token = {"Authorization": f"token {environment['JUPYTERHUB_API_TOKEN']}"}
    client = httpx.Client(base_url=f"{process.url}/hub/api", headers=token, trust_env=False, timeout=PATIENCE)
    assert client.get("/gpufarm/users/alice/notices").status_code == 200
    seen = client.get("/gpufarm/slices").json()
    assert [one["user"] for piece in seen["slices"] for one in piece["holders"]] == ["alice"]
    assert seen["queue"] == []
    for method, path in (
        ("GET", "/gpufarm/users/carol/notices"),
        ("GET", QUEUE.format("carol")),
        ("DELETE", QUEUE.format("carol")),
        ("DELETE", QUEUE.format("alice")),
        ("GET", "/users"),
        ("GET", "/users/carol"),
        ("POST", "/users/mallory"),
        ("DELETE", "/users/alice/server"),
        ("DELETE", "/users/carol/server"),
        ("POST", "/users/alice/servers/second"),
        ("POST", "/users/alice/tokens"),
        ("GET", "/users/carol/tokens"),
        ("POST", "/users/carol/activity"),
        ("GET", "/groups"),
        ("GET", "/services"),
        ("GET", "/proxy"),
        ("GET", "/info"),
        ("POST", "/shutdown"),
    ):
        assert client.request(method, path, json={}).status_code in (403, 404), path
    # Pages take no tokens.
    page = httpx.get(f"{process.url}/hub/slices", headers=token, trust_env=False, timeout=PATIENCE)
    assert page.status_code == 302 and "/hub/login" in page.headers["location"]
    assert alice.running() and carol.queue().status_code == 200
    assert bob.page("/hub/slices").status_code == 200
    client.close()


def test_a_token_for_one_server_does_not_reach_another(user: Callable[[str], Browser]) -> None:
    alice, carol = user("alice"), user("carol")
    alice.spawn(gpu="1g.10gb")
    scopes = ["servers!server=carol/other"]
    token = carol.api("POST", "/users/carol/tokens", json={"scopes": scopes}).json()["token"]
    carol.spawn(gpu="1g.10gb")
    client = httpx.Client(base_url=f"{carol.hub.url}/hub/api", trust_env=False, timeout=PATIENCE)
    client.headers["Authorization"] = f"token {token}"
    assert client.get(QUEUE.format("carol") + "other").json()["message"] == "This notebook waits for nothing."
    assert client.get(QUEUE.format("carol")).json()["message"] != "This notebook waits for nothing."
    assert client.delete(QUEUE.format("carol")).status_code in (403, 404)
    assert carol.queue().status_code == 200
    client.close()


NAMES = (
    "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2f", "%00", "%0a", "%ff", "%c3%bc", "🙂", "a" * 5000, "*",
    "carol%2f", "carol%2f..%2fcarol", "%2fcarol", "carol%00", "carol%20", "CAROL%e2%80%ae", "' or 1=1 --",
)  # fmt: skip


def test_odd_names_in_addresses(user: Callable[[str], Browser]) -> None:
    alice, carol, mallory = user("alice"), user("carol"), user("mallory")
    alice.spawn(gpu="1g.10gb")
    carol.spawn(gpu="1g.10gb")
    for name in NAMES:
        for path in (
            f"/hub/api/gpufarm/users/{name}/queue/",
            f"/hub/api/gpufarm/users/mallory/queue/{name}",
            f"/hub/api/gpufarm/users/{name}/notices",
            f"/hub/api/users/{name}",
            f"/hub/api/users/{name}/server/progress",
            f"/hub/spawn/{name}",
            f"/hub/user/{name}/",
        ):
            answer = mallory.http.get(path, headers={"X-XSRFToken": mallory.xsrf})
            assert answer.status_code in (400, 403, 404, 424), path
        assert mallory.api("DELETE", f"/gpufarm/users/{name}/queue/").status_code in (400, 403, 404), name
    assert carol.queue().json()["position"] == 1


HUGE = "9" * 200_000


FIELDS: list[dict[str, Any]] = [
    {"memory": ["900G", "1G"]},
    {"memory": "1G\0"},
    {"memory": HUGE},
    {"gpu": HUGE},
    {"gpu": "1g.10gb", "slices": HUGE},
    {"gpu": "1g.10gb", "slices": "1e9"},
    {"gpu": "1g.10gb", "slices": "٣"},
    {"gpu": "<script>alert(1)</script>"},
    {"gpu": "${x}{{7*7}}%s{unit}"},
]


def test_odd_fields_of_the_form(user: Callable[[str], Browser]) -> None:
    alice = user("alice")
    for fields in FIELDS:
        answer = alice.http.post(f"/hub/spawn?_xsrf={alice.xsrf}", data=fields)
        assert answer.status_code in (400, 409), str(fields)[:99]
        assert "<script>alert" not in answer.text
        assert len(answer.text) < 50_000
    assert not alice.running()


OPTIONS: list[Any] = [
    {"memory": 1},
    {"memory": None},
    {"memory": ["1G"]},
    {"memory": {"1G": 1}},
    {"gpu": 1},
    {"gpu": ["1g.10gb"]},
    {"gpu": "1g.10gb", "slices": 1.5},
    {"gpu": "1g.10gb", "slices": True},
    {"gpu": "1g.10gb", "slices": None},
    {"gpu": "1g.10gb", "slices": [1]},
    {"gpu": "1g.10gb", "slices": {"a": 1}},
    {"group": ["root"]},
    {"group": {"a": 1}},
    {"mounts": "/"},
    {"mounts": [["/etc"]]},
    {"mounts": {"a": 1}},
    {"mounts": 5},
    ["memory"],
    "memory",
    5,
]


def test_odd_options_by_the_api(user: Callable[[str], Browser]) -> None:
    alice = user("alice")
    for options in OPTIONS:
        answer = alice.api("POST", "/users/alice/server", json=options)
        assert answer.status_code in (400, 403, 409), options
    assert not alice.running()
