"""Logins at an OpenID provider through a real hub: PKCE, groups, the owner, refusals, failures, logout."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from hub_process import HubProcess, eventually, slices
from oidc_provider import OWNER, REFRESH, SECRET, TOKEN, Provider, claims, come_back, serve, settings

from lab.pages import parse
from lab.patience import PATIENCE


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    yield from serve()


@pytest.fixture(scope="module")
def hub(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    folder = tmp_path_factory.mktemp("hub")
    process = HubProcess(folder, [], login=settings(provider, folder))
    process.partition(slices(1))
    process.start()
    yield process
    process.kill()


@pytest.fixture
def browser(hub: HubProcess, provider: Provider) -> Iterator[httpx.Client]:
    provider.failure = 0
    provider.expired = provider.disabled = False
    (hub.folder / "ask-again").unlink(missing_ok=True)
    with httpx.Client(base_url=hub.url, trust_env=False, timeout=PATIENCE) as client:
        yield client


def messages(answer: httpx.Response) -> str:
    assert "Traceback" not in answer.text
    return " ".join(parse(answer.text).messages)


def account(browser: httpx.Client) -> dict[str, Any]:
    return browser.get("/hub/api/user").json()


def test_a_member_of_a_nested_group_comes_in_with_a_proof_of_possession(
    browser: httpx.Client, provider: Provider
) -> None:
    provider.claims = claims("alice", "/physics/gpu", "/other")
    answer = come_back(browser, provider)
    assert (answer.status_code, answer.headers["location"]) == (302, "/hub/home")
    assert provider.asked["code_challenge_method"] == "S256"
    assert (account(browser)["admin"], sorted(account(browser)["groups"])) == (
        False,
        ["other", "physics/gpu"],
    )


def test_administrators_come_from_their_group(browser: httpx.Client, provider: Provider) -> None:
    provider.claims = claims("olga", "operators")
    come_back(browser, provider)
    assert account(browser)["admin"]


def test_the_owner_needs_no_group(browser: httpx.Client, provider: Provider) -> None:
    provider.claims = claims("boss", subject=OWNER)
    assert come_back(browser, provider).status_code == 302
    assert account(browser)["admin"]


def test_an_administrator_who_is_none_any_more(browser: httpx.Client, provider: Provider) -> None:
    provider.claims = claims("gone", "operators")
    come_back(browser, provider)
    assert account(browser)["admin"]
    provider.claims = claims("gone", "physics/gpu")
    come_back(browser, provider)
    assert not account(browser)["admin"]


@pytest.mark.parametrize(
    ("told", "sentence"),
    [
        (claims("mallory", "other"), "none of the groups that may use this service (physics/gpu, operators)"),
        (claims("mallory", "physics"), "none of the groups"),
        (claims("root", "physics/gpu"), "root belongs to an account of this machine itself"),
        (claims("Alice B", "physics/gpu"), "cannot be used on this machine"),
        (claims("../etc", "physics/gpu"), "cannot be used on this machine"),
        (claims("frank", "physics/gpu") | {"preferred_username": None}, "tells no user name"),
        ({"sub": "x", "realm_access": {"roles": ["physics/gpu"]}}, "tells no user name"),
        (claims("frank") | {"realm_access": "physics/gpu"}, "none of the groups"),
        (claims("frank") | {"realm_access": {"roles": "physics/gpu"}}, "none of the groups"),
    ],
)
def test_who_cannot_come_in_is_told_why(
    browser: httpx.Client, provider: Provider, told: dict[str, Any], sentence: str
) -> None:
    provider.claims = told
    answer = come_back(browser, provider)
    assert answer.status_code == 403
    assert sentence in messages(answer)
    assert browser.get("/hub/home").status_code == 302


def test_a_name_that_now_is_another_persons(browser: httpx.Client, provider: Provider) -> None:
    provider.claims = claims("nora", "physics/gpu")
    come_back(browser, provider)
    provider.claims = claims("nora", "physics/gpu", subject="somebody else")
    assert "nora belongs to another person" in messages(come_back(browser, provider))


@pytest.mark.parametrize(
    ("failure", "status", "sentence"),
    [(500, 503, "does not answer"), (503, 503, "does not answer"), (400, 403, "took this login back")],
)
def test_a_provider_that_is_out_of_order(
    browser: httpx.Client, provider: Provider, failure: int, status: int, sentence: str
) -> None:
    provider.claims = claims("alice", "physics/gpu")
    provider.failure = failure
    answer = come_back(browser, provider)
    assert answer.status_code == status
    assert sentence in messages(answer)


def test_a_login_that_somebody_else_began_is_refused(browser: httpx.Client, provider: Provider) -> None:
    """The provider's response to an attacker would log the victim in as the attacker (RFC 6749, 10.12)."""
    provider.claims = claims("mallory", "physics/gpu")
    with httpx.Client(base_url=browser.base_url, trust_env=False, timeout=PATIENCE) as attacker:
        come_back(attacker, provider)
        stolen = provider.asked["state"]
    assert come_back(browser, provider, state=stolen).status_code == 400
    assert browser.get("/hub/oauth_callback", params={"code": "c"}).status_code == 400


@pytest.mark.parametrize(
    "target", ["https://evil.example/", "//evil.example/", r"/\evil.example", r"\\evil.example"]
)
def test_a_login_leads_to_no_other_site(browser: httpx.Client, provider: Provider, target: str) -> None:
    provider.claims = claims("alice", "physics/gpu")
    away = browser.get("/hub/oauth_login", params={"next": target})
    provider.asked = {k: v[0] for k, v in parse_qs(urlsplit(away.headers["location"]).query).items()}
    answer = browser.get("/hub/oauth_callback", params={"code": "c", "state": provider.asked["state"]})
    reached = httpx.URL(f"{browser.base_url}/hub/").join(answer.headers["location"])
    assert reached.host == browser.base_url.host
    assert not answer.headers["location"].startswith(("//", "/\\"))


def test_a_logout_ends_the_session_here_and_leads_to_the_providers(
    browser: httpx.Client, provider: Provider
) -> None:
    provider.claims = claims("alice", "physics/gpu")
    come_back(browser, provider)
    assert browser.get("/hub/home").status_code == 200
    answer = browser.get("/hub/logout")
    assert (answer.status_code, answer.headers["location"]) == (
        302,
        f"{provider.url}/logout?ui=web&client_id=hub",
    )
    assert browser.get("/hub/home").status_code == 302
    assert browser.get("/hub/api/user").status_code == 403


def test_no_token_is_written_down(hub: HubProcess, browser: httpx.Client, provider: Provider) -> None:
    provider.claims = claims("alice", "physics/gpu")
    come_back(browser, provider)
    log = Path(hub.folder / "hub.log").read_text()
    assert not [secret for secret in (TOKEN, REFRESH, SECRET) if secret in log]


@dataclass
class Erin:
    """A user with a session, a notebook on a slice, and a token."""

    hub: HubProcess
    session: httpx.Client
    token: str

    def notebook(self) -> str:
        """The token with which the notebook asks the hub, also who comes with which cookie."""
        environment = json.loads((self.hub.folder / "jupyterhub-notebook-erin.service.env").read_text())
        return str(environment["JUPYTERHUB_API_TOKEN"])

    def request(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Send a request as a page of the hub does."""
        xsrf = next(cookie.value for cookie in self.session.cookies.jar if cookie.name == "_xsrf")
        return self.session.request(method, path, headers={"X-XSRFToken": str(xsrf)}, **options)

    def asks(self, token: str) -> int:
        headers = {"Authorization": f"token {token}"}
        return httpx.get(
            f"{self.hub.url}/hub/api/user", headers=headers, trust_env=False, timeout=PATIENCE
        ).status_code

    def answers(self) -> dict[str, int]:
        """Have the hub ask the provider; return what token, notebook and browser get."""
        (self.hub.folder / "ask-again").touch()
        return {
            "token": self.asks(self.token),
            "notebook": self.asks(self.notebook()),
            "page": self.session.get("/hub/home").status_code,
        }

    def holds(self) -> bool:
        return "erin/" in json.loads((self.hub.folder / "leases.json").read_text()).get("leases", {})


@pytest.fixture
def erin(hub: HubProcess, browser: httpx.Client, provider: Provider) -> Iterator[Erin]:
    provider.claims = claims("erin", "physics/gpu")
    assert come_back(browser, provider).status_code == 302
    one = Erin(hub, browser, "")
    made = one.request("POST", "/hub/api/users/erin/tokens", json={}).json()
    assert made["expires_at"], "no token lives forever"
    one.token = made["token"]
    one.request("POST", "/hub/api/users/erin/server", json={"memory": "1G", "gpu": "1g.10gb"})
    eventually(one.holds)
    assert one.answers() == {"token": 200, "notebook": 200, "page": 200} and one.holds()
    yield one
    (hub.folder / "ask-again").unlink(missing_ok=True)
    provider.claims, provider.failure = claims("erin", "physics/gpu"), 0
    provider.expired = provider.disabled = False
    come_back(browser, provider)
    one.request("DELETE", "/hub/api/users/erin/server")
    eventually(lambda: not one.holds())


def test_who_left_the_groups_is_out_with_token_notebook_and_cookie(
    erin: Erin, browser: httpx.Client, provider: Provider
) -> None:
    provider.claims = claims("erin", "other")
    assert erin.answers() == {"token": 403, "notebook": 403, "page": 302}
    eventually(lambda: not erin.holds())
    provider.claims = claims("erin", "physics/gpu")
    assert erin.asks(erin.token) == 403, "what has ended stays ended"
    come_back(browser, provider)
    assert browser.get("/hub/home").status_code == 200
    why = "you were in none of the groups that may use this service, or did not sign in again in time"
    eventually(lambda: why in browser.get("/hub/home").text)


def test_the_name_of_the_shared_account_is_one_like_others_where_there_is_no_such_account(
    hub: HubProcess, browser: httpx.Client, provider: Provider
) -> None:
    provider.claims = claims("collaborative", "physics/gpu")
    assert come_back(browser, provider).status_code == 302
    (hub.folder / "ask-again").touch()
    assert browser.get("/hub/home").status_code == 200
    provider.claims = claims("collaborative", "other")
    assert browser.get("/hub/home").status_code == 302


def test_the_notebook_alone_has_the_hub_find_out(erin: Erin, provider: Provider) -> None:
    """It reports every minute, so it ends although nobody opens a page."""
    provider.claims = claims("erin")
    assert erin.asks(erin.notebook()) == 403
    eventually(lambda: not erin.holds())


def test_a_notebook_that_never_asks_the_hub_ends_as_well(
    erin: Erin, browser: httpx.Client, provider: Provider
) -> None:
    """It is its user's own program, who may have altered it."""
    leavers = f"{erin.hub.url}/hub/api/gpufarm/leavers"
    headers = {"Authorization": f"token {erin.token}"}
    options: dict[str, Any] = {"trust_env": False, "timeout": PATIENCE}
    assert httpx.post(leavers, headers=headers, **options).status_code == 403, "it is for the keeper"
    headers = {"Authorization": f"token {erin.hub.keeper_token}"}
    (erin.hub.folder / "ask-again").touch()
    provider.failure = 503
    assert httpx.post(leavers, headers=headers, **options).status_code == 204
    assert erin.holds()
    provider.failure, provider.claims = 0, claims("erin", "other")
    assert httpx.post(leavers, headers=headers, **options).status_code == 204
    eventually(lambda: not erin.holds())
    assert erin.asks(erin.token) == 403


def test_who_leaves_while_the_notebook_waits_to_start_gets_none(erin: Erin, provider: Provider) -> None:
    erin.request("DELETE", "/hub/api/users/erin/server")
    eventually(lambda: not erin.holds())
    slow = erin.hub.folder / "slow-start"
    slow.touch()
    headers = {"Authorization": f"token {erin.hub.keeper_token}"}
    try:
        with ThreadPoolExecutor() as beside:
            path, options = "/hub/api/users/erin/server", {"memory": "1G", "gpu": "1g.10gb"}
            start = beside.submit(erin.request, "POST", path, json=options)
            eventually(erin.holds)
            provider.claims = claims("erin", "other")
            (erin.hub.folder / "ask-again").touch()
            leavers = f"{erin.hub.url}/hub/api/gpufarm/leavers"
            answer = httpx.post(leavers, headers=headers, trust_env=False, timeout=PATIENCE)
            assert answer.status_code == 204
            eventually(lambda: not erin.holds())
            start.result()
    finally:
        slow.unlink()
    provider.claims = claims("erin", "physics/gpu")
    come_back(erin.session, provider)
    eventually(lambda: "you were in none of the groups" in erin.session.get("/hub/home").text)


def test_who_gets_no_new_token_logs_in_again_and_the_notebook_goes_on(
    erin: Erin, browser: httpx.Client, provider: Provider
) -> None:
    provider.expired = provider.disabled = True
    assert erin.answers() == {"token": 403, "notebook": 403, "page": 302}
    assert erin.holds()
    provider.expired = provider.disabled = False
    come_back(browser, provider)
    assert erin.answers() == {"token": 200, "notebook": 200, "page": 200}


@pytest.mark.parametrize("expired", [True, False])
def test_while_the_provider_is_out_of_order_nobody_is_out(
    erin: Erin, provider: Provider, expired: bool
) -> None:
    provider.failure, provider.expired = 503, expired
    assert erin.answers() == {"token": 200, "notebook": 200, "page": 200}
    assert erin.holds()


def test_a_token_is_exchanged_when_it_is_over_but_the_provider_then_fails(
    erin: Erin, provider: Provider
) -> None:
    provider.expired, provider.broken = True, True
    assert erin.answers() == {"token": 200, "notebook": 200, "page": 200}
    provider.broken = False
