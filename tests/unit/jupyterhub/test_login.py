"""Admission, reasons of refusals, and logins while the provider is out of order."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import errno
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub import files
from gpufarm_hub.people import visitors
from gpufarm_hub.people.login_oidc import OidcLogin, groups_in
from tornado.httpclient import HTTPError as HttpClientError
from tornado.web import HTTPError


@pytest.fixture
def authenticator(tmp_path: Path) -> OidcLogin:
    return OidcLogin(
        issuer="https://iam.example.org/",
        persons_file=str(tmp_path / "persons.json"),
        refused_file=str(tmp_path / "refused.json"),
        relogin_hours=24,
        manage_groups=True,
        allowed_groups={"ml-infn-users"},
        admin_groups={"ml-infn"},
        enable_auth_state=True,
    )


def model(name: str, groups: list[str], subject: str = "s-1", admin: bool = False) -> dict[str, Any]:
    return {"name": name, "admin": admin, "groups": groups, "auth_state": {"oauth_user": {"sub": subject}}}


def allowed(authenticator: OidcLogin, login: dict[str, Any]) -> bool:
    return asyncio.run(authenticator.check_allowed(login["name"], login))


@pytest.mark.parametrize(
    ("claims", "groups"),
    [
        ({"groups": ["ml-infn", "cms"]}, ["ml-infn", "cms"]),
        ({"groups": ["/ml-infn", "/cms/it"]}, ["ml-infn", "cms/it"]),
        ({"groups": "ml-infn"}, []),
        ({"groups": [1, "a"]}, ["a"]),
        ({"groups": None}, []),
        ({}, []),
    ],
)
def test_groups_of_both_profiles_of_indigo_iam(claims: dict[str, Any], groups: list[str]) -> None:
    assert groups_in(claims, "groups") == groups


@pytest.mark.parametrize(
    ("claims", "name", "groups"),
    [
        ({"realm_access": {"roles": ["a", "/b/c"]}}, "realm_access.roles", ["a", "b/c"]),
        ({"wlcg.groups": ["/a"], "wlcg": {"groups": ["x"]}}, "wlcg.groups", ["a"]),
        ({"a": {"b": {"c": ["d"]}}}, "a.b.c", ["d"]),
        ({"a": ["b"]}, "a.b", []),
        ({"a": {"b": "c"}}, "a.b", []),
    ],
)
def test_groups_in_nested_claims(claims: dict[str, Any], name: str, groups: list[str]) -> None:
    assert groups_in(claims, name) == groups


def test_members_come_in_and_others_do_not(authenticator: OidcLogin) -> None:
    assert allowed(authenticator, model("alice", ["ml-infn-users"]))
    assert allowed(authenticator, model("boss", [], "s-2", admin=True))
    assert not allowed(authenticator, model("mallory", ["cms"], "s-3"))


@pytest.mark.parametrize("name", ["root", "daemon"])
def test_a_member_who_is_called_like_a_system_account(authenticator: OidcLogin, name: str) -> None:
    with pytest.raises(HTTPError) as caught:
        allowed(authenticator, model(name, ["ml-infn-users"]))
    assert caught.value.status_code == 403
    assert "belongs to an account of this machine itself" in caught.value.get_message()


def test_a_second_person_with_the_same_name(authenticator: OidcLogin) -> None:
    assert allowed(authenticator, model("alice", ["ml-infn-users"], "s-1"))
    with pytest.raises(HTTPError) as caught:
        allowed(authenticator, model("alice", ["ml-infn-users"], "s-2"))
    assert "belongs to another person" in caught.value.get_message()


def test_who_is_refused_reserves_no_name(authenticator: OidcLogin) -> None:
    assert not allowed(authenticator, model("alice", ["cms"], "s-9"))
    assert allowed(authenticator, model("alice", ["ml-infn-users"], "s-1"))


def refresh(authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch, answer: Any) -> Any:
    async def asked(self: Any, user: Any, handler: Any = None, **kwargs: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr("oauthenticator.generic.GenericOAuthenticator.refresh_user", asked)

    async def state() -> dict[str, Any]:
        return {"token_response": {}}

    user = SimpleNamespace(name="alice", get_auth_state=state)
    return asyncio.run(authenticator.refresh_user(user, None))


@pytest.mark.parametrize("failure", [HttpClientError(503), ConnectionRefusedError(111), TimeoutError()])
def test_nobody_is_thrown_out_while_the_provider_is_down(
    authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch, failure: Exception
) -> None:
    monkeypatch.setattr(time, "time", lambda: 1_800_000_000.0)
    assert authenticator.doubt("alice") == ""
    assert refresh(authenticator, monkeypatch, failure) is True
    monkeypatch.setattr(time, "time", lambda: 1_800_000_600.0)
    assert refresh(authenticator, monkeypatch, failure) is True
    assert authenticator.doubt("alice") == (
        "Your identity provider has not answered since 2027-01-15 08:00 UTC, so it is not known whether you "
        "may still come in. You stay signed in meanwhile."
    )
    assert authenticator.doubt("carol") == ""
    refresh(authenticator, monkeypatch, model("alice", ["ml-infn-users"]))
    assert authenticator.doubt("alice") == ""


def test_whom_the_provider_refuses_has_some_hours_to_log_in_again(
    authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The provider says the same of a session that is over and of an account that is closed."""
    ended: list[float] = []
    now = 1_800_000_000.0
    monkeypatch.setattr(time, "time", lambda: now)

    async def end(user: Any, handler: Any) -> None:
        ended.append(now)

    monkeypatch.setattr(authenticator, "_end", end)
    still = model("alice", ["ml-infn-users"])
    for hours in (0, 12, 24):
        now = 1_800_000_000.0 + 3600 * hours
        assert refresh(authenticator, monkeypatch, False) is False
    assert ended == []
    assert refresh(authenticator, monkeypatch, still) == still  # logged in again
    now += 1
    assert refresh(authenticator, monkeypatch, False) is False
    assert ended == []
    again = OidcLogin(refused_file=authenticator.refused_file, relogin_hours=24)  # the hub started anew
    monkeypatch.setattr(again, "_end", end)
    now += 24 * 3600 + 1
    assert refresh(again, monkeypatch, False) is False
    assert ended == [now]


def test_a_disk_that_is_full_ends_nothing(authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files, "replace", full)
    monkeypatch.setattr(authenticator, "relogin_hours", 0)
    assert refresh(authenticator, monkeypatch, False) is False


def test_requests_that_come_together_share_one_question(
    authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider may take a refresh token once only."""
    asked = []

    async def look_again(user: Any, handler: Any) -> Any:
        asked.append(user.name)
        await asyncio.sleep(0)
        return model("alice", ["ml-infn-users"])

    monkeypatch.setattr(authenticator, "look_again", look_again)
    user = SimpleNamespace(name="alice")

    async def together() -> list[Any]:
        return await asyncio.gather(*(authenticator.refresh_user(user) for _ in range(9)))

    first, *others = asyncio.run(together())
    assert asked == ["alice"] and all(one == first and one is not first for one in others)
    asyncio.run(together())
    assert asked == ["alice", "alice"]


def test_the_shared_account_is_nobody_who_could_leave(authenticator: OidcLogin) -> None:
    authenticator.shared_account = "collaborative"
    assert asyncio.run(authenticator.refresh_user(SimpleNamespace(name="collaborative"))) is True


def test_who_logged_in_another_way_logs_in_again(authenticator: OidcLogin) -> None:
    async def state() -> dict[str, Any]:
        return {"uid": 1001, "identifier": "x"}

    user = SimpleNamespace(name="alice", get_auth_state=state)
    assert asyncio.run(authenticator.refresh_user(user)) is False


def test_who_has_left_the_group_is_out(authenticator: OidcLogin, monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    async def end(user: Any, handler: Any) -> None:
        ended.append(user.name)

    monkeypatch.setattr(authenticator, "_end", end)
    assert refresh(authenticator, monkeypatch, model("alice", ["cms"])) is False
    assert ended == ["alice"]
    still = model("alice", ["ml-infn-users"])
    assert refresh(authenticator, monkeypatch, still) == still
    assert refresh(authenticator, monkeypatch, False) is False


def test_all_notebooks_of_a_member_who_has_left_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(visitors, "shut_out", lambda *_about: None)
    told: list[str] = []
    desk = SimpleNamespace(notices=SimpleNamespace(tell=lambda owner, _words: told.append(owner)))
    servers = {
        name: SimpleNamespace(ready=True, pending=None, owner=f"erin/{name}", desk=desk)
        for name in ("", "more")
    }

    async def stop(user: Any, name: str) -> None:
        del user.spawners[name]  # as JupyterHub does

    user = SimpleNamespace(name="erin", orm_user=None, spawners=servers)
    asyncio.run(OidcLogin()._end(user, SimpleNamespace(stop_single_user=stop)))
    assert told == ["erin/", "erin/more"] and not servers
