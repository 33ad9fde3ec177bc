"""Logins at an OpenID provider through a real hub, where the users have accounts already."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import grp
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hub_process import HubProcess, eventually, slices
from oidc_provider import OWNER, Provider, claims, come_back, serve, settings

from lab.pages import parse
from lab.patience import PATIENCE

GROUP = "physics/gpu"
ALICE = "alice has no account that all machines of this service know"


def known(*names: str) -> dict[str, tuple[int, int]]:
    return {name: (2001 + number, 54321) for number, name in enumerate(names)}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    yield from serve()


@pytest.fixture(scope="module")
def process(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    folder = tmp_path_factory.mktemp("hub")
    process = HubProcess(folder, [], login=settings(provider, folder), known={})
    process.partition(slices(1))
    process.start()
    yield process
    process.kill()


@pytest.fixture
def hub(process: HubProcess) -> HubProcess:
    """A hub at which nobody has signed in yet."""
    process.know(known("alice", "bob", "mallory", "boss", "blake"))
    for file in ("persons.json", "ask-again"):
        (process.folder / file).unlink(missing_ok=True)
    return process


def sign_in(hub: HubProcess, provider: Provider, told: dict[str, Any]) -> str:
    """Sign in as the provider tells; return the refusal, or the user's name after a colon."""
    with httpx.Client(base_url=hub.url, trust_env=False, timeout=PATIENCE) as browser:
        provider.claims = told
        answer = come_back(browser, provider)
        if answer.status_code == 302:
            return ":" + browser.get("/hub/api/user").json()["name"]
        assert answer.status_code == 403 and "Traceback" not in answer.text
        return " ".join(parse(answer.text).messages)


def persons(hub: HubProcess) -> set[str]:
    file = hub.folder / "persons.json"
    return set(json.loads(file.read_text())) if file.exists() else set()


def test_the_name_of_the_claim_is_the_account_and_nothing_else_selects_one(
    hub: HubProcess, provider: Provider
) -> None:
    """U+212A is made a small k, as K is."""
    odd = [
        "Alice",
        "ALICE",
        "bla\u212ae",
        " alice",
        "alice ",
        "alice\n",
        "-alice",
        "2001",
        "alice@site",
        "a/b",
    ]
    refused = {
        "ada": "ada has no account that all machines of this service know, so no notebook can be started",
        "root": "The account root is no account of a person on this machine",
        "daemon": "The account daemon is no account of a person on this machine",
        **dict.fromkeys(odd, "cannot be used on this machine: it must start with a small letter"),
    }
    for name, sentence in refused.items():
        assert sentence in sign_in(hub, provider, claims(name, GROUP)), name
    assert persons(hub) == set()
    assert sign_in(hub, provider, claims("alice", GROUP)) == ":alice"
    assert persons(hub) == {"alice"}


def test_groups_of_the_claim_decide_and_the_owner_needs_an_account_as_well(
    hub: HubProcess, provider: Provider
) -> None:
    assert "none of the groups" in sign_in(hub, provider, claims("bob", "other"))
    assert sign_in(hub, provider, claims("boss", subject=OWNER)) == ":boss"
    assert ALICE.replace("alice", "owner") in sign_in(hub, provider, claims("owner", subject=OWNER))


def test_an_account_of_an_administrator_is_not_opened_by_a_name(hub: HubProcess, provider: Provider) -> None:
    hub.know({"cloud": (1000, grp.getgrnam("sudo").gr_gid)})
    assert "cloud can administer this machine (group sudo), so a name" in sign_in(
        hub, provider, claims("cloud", GROUP, "operators")
    )


def test_a_user_who_changes_the_claim_gets_no_other_account(hub: HubProcess, provider: Provider) -> None:
    assert sign_in(hub, provider, claims("mallory", GROUP, subject="m")) == ":mallory"
    told = "Your identity provider calls you alice now, and your account here is mallory."
    assert told in sign_in(hub, provider, claims("alice", GROUP, subject="m"))
    assert sign_in(hub, provider, claims("alice", GROUP, subject="a")) == ":alice"
    assert "alice belongs to another person" in sign_in(hub, provider, claims("alice", GROUP, subject="b"))
    assert sign_in(hub, provider, claims("mallory", GROUP, subject="m")) == ":mallory"


def test_a_session_stays_with_its_account_whatever_the_provider_says_later(
    hub: HubProcess, provider: Provider
) -> None:
    with httpx.Client(base_url=hub.url, trust_env=False, timeout=PATIENCE) as browser:
        provider.claims = claims("mallory", GROUP, subject="m")
        assert come_back(browser, provider).status_code == 302
        (hub.folder / "ask-again").touch()
        provider.claims = claims("alice", GROUP, subject="m")
        assert browser.get("/hub/api/user").json()["name"] == "mallory"
        for odd in ("Mallory", None, "mallory@site"):
            provider.claims = claims("mallory", GROUP, subject="m") | {"preferred_username": odd}
            assert browser.get("/hub/home").status_code == 302, odd
        (hub.folder / "ask-again").unlink()


def test_an_account_that_is_gone_ends_the_session_and_the_notebook_only_later(
    hub: HubProcess, provider: Provider
) -> None:
    """The service that knows the accounts may be down."""
    with httpx.Client(base_url=hub.url, trust_env=False, timeout=PATIENCE) as browser:
        provider.claims = claims("alice", GROUP)
        assert come_back(browser, provider).status_code == 302
        xsrf = next(cookie.value or "" for cookie in browser.cookies.jar if cookie.name == "_xsrf")
        browser.post("/hub/api/users/alice/server", headers={"X-XSRFToken": xsrf}, json={"memory": "1G"})
        notebook = hub.folder / "jupyterhub-notebook-alice.service.env"
        eventually(notebook.exists)
        (hub.folder / "ask-again").touch()
        hub.know({})
        assert browser.get("/hub/home").status_code == 302
        assert ALICE in sign_in(hub, provider, claims("alice", GROUP))
        assert "alice" in json.loads((hub.folder / "refused.json").read_text())
        hub.know(known("alice"))
        assert browser.get("/hub/api/user").json()["servers"][""]["ready"]
        hub.know({"alice": (0, 54321)})
        assert browser.get("/hub/home").status_code == 302
        hub.know(known("alice"))
        (hub.folder / "ask-again").unlink()
        assert come_back(browser, provider).status_code == 302
        eventually(lambda: not browser.get("/hub/api/user").json()["servers"])
