"""A refusal says in plain words what is refused and what to do next."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.web import refusals
from hub_process import Browser, HubProcess
from oidc_provider import Provider, claims, come_back, serve, settings

from lab.patience import PATIENCE


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.partition([])
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    yield from serve()


@pytest.fixture(scope="module")
def oidc(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    folder = tmp_path_factory.mktemp("oidc")
    hub = HubProcess(folder, [], None, settings(provider, folder))
    hub.partition([])
    hub.start()
    yield hub
    hub.kill()


@pytest.mark.parametrize("path", ["/hub/slices", "/hub/admin"])
def test_a_page_for_administrators_says_so(process: HubProcess, path: str) -> None:
    alice = Browser(process, "alice")
    answer = alice.page(path)
    page = BeautifulSoup(answer.text, "html.parser")
    assert answer.status_code == 403
    assert page.find("h1").text.strip() == "Access refused"
    assert "it is for administrators of this service" in page.select_one(".error p").text
    assert "scope" not in page.select_one(".error").text
    assert page.find(id="sign-in-anew")["href"] == "/hub/logout"


def test_a_form_that_is_too_old_says_so(process: HubProcess) -> None:
    alice = Browser(process, "alice")
    answer = alice.http.post("/hub/logout", data={"_xsrf": "old"})
    assert answer.status_code == 403
    assert "open for too long" in answer.text and "XSRF" not in BeautifulSoup(answer.text, "html.parser").text


def test_a_user_in_no_group_can_sign_in_as_somebody_else(oidc: HubProcess, provider: Provider) -> None:
    browser = httpx.Client(base_url=oidc.url, trust_env=False, timeout=PATIENCE)
    provider.claims = claims("mallory", "other")
    answer = come_back(browser, provider)
    assert answer.status_code == 403
    link = BeautifulSoup(answer.text, "html.parser").find(id="sign-in-anew")
    assert link.text == "Sign in as somebody else"
    away = browser.get(str(link["href"])).headers["location"]
    assert away.startswith(f"{provider.url}/authorize")
    asked = parse_qs(urlsplit(away).query)
    assert asked["prompt"] == ["login"] and asked["code_challenge_method"] == ["S256"]
    usual = browser.get("/hub/oauth_login").headers["location"]
    assert "prompt" not in parse_qs(urlsplit(usual).query)


@pytest.mark.parametrize("message", ["", "Your account is in none of the groups.", "409 something"])
def test_other_messages_stay_as_they_are(message: str) -> None:
    assert refusals.explain(403, message) == message


@pytest.mark.parametrize(
    ("name", "path", "heading"),
    [
        ("alice", "/hub/user/alice/lab", "The notebook does not run"),
        ("alice", "/hub/my-use", "My use"),
        ("bob", "/hub/slices", "GPU slices"),
        ("bob", "/hub/admin", "Users and notebooks"),
    ],
)
def test_pages_have_a_landmark_and_the_words_of_users(
    process: HubProcess, name: str, path: str, heading: str
) -> None:
    page = BeautifulSoup(Browser(process, name).page(path).text, "html.parser")
    assert page.select_one("main h1").text.strip() == heading
    assert page.find(id="logout").text.strip() == "Sign out"
    assert "server" not in page.find("main").text.lower()
