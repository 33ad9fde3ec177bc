"""Queries to a directory, and its answers. A scenario tests a real directory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import io
import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import ldap3
import pytest
from gpufarm_hub.people import accounts
from gpufarm_hub.people import directory as program
from gpufarm_hub.people.directory import Address, Directory, DirectoryError, parse_url
from gpufarm_hub.people.login_ldap import LdapLogin
from hypothesis import given, settings
from hypothesis import strategies as st
from tornado.web import HTTPError

PEOPLE, GROUPS = "ou=people,dc=example", "ou=groups,dc=example"


def entries() -> dict[str, dict[str, Any]]:
    """The content of a directory: distinguished name to attributes."""
    found: dict[str, dict[str, Any]] = {
        "cn=hub,dc=example": {"objectClass": "person", "userPassword": "hub's"},
        PEOPLE: {"objectClass": "organizationalUnit"},
        GROUPS: {"objectClass": "organizationalUnit"},
    }
    for name, more in (
        ("alice", {"uidNumber": "20001", "entryUUID": "id-1"}),
        ("bob", {"uidNumber": "x"}),
        ("mallory", {}),
    ):
        found[f"uid={name},{PEOPLE}"] = {
            "objectClass": "person",
            "uid": name,
            "userPassword": f"{name}'s",
            **more,
        }
    for name, members in (
        ("physics", [f"uid=alice,{PEOPLE}"]),
        ("gpu", [f"cn=physics,{GROUPS}", f"cn=ring,{GROUPS}"]),
        ("ring", [f"cn=gpu,{GROUPS}"]),
        ("ops", [f"uid=bob,{PEOPLE}"]),
        ("others", [f"uid=mallory,{PEOPLE}"]),
    ):
        found[f"cn={name},{GROUPS}"] = {"objectClass": "groupOfNames", "cn": name, "member": members}
    return found


def directory(
    content: dict[str, dict[str, Any]], urls: tuple[str, ...] = ("ldaps://a",), **other: Any
) -> Directory:
    def connect(address: Address, ca_file: str) -> ldap3.Connection:
        if address.host == "down":
            raise ldap3.core.exceptions.LDAPSocketOpenError("connection refused")
        connection = ldap3.Connection(
            ldap3.Server(address.host),
            client_strategy=ldap3.MOCK_SYNC,
            raise_exceptions=True,
            check_names=False,
        )
        for dn, attributes in content.items():
            connection.strategy.add_entry(dn, attributes)
        return connection

    values: dict[str, Any] = {
        "urls": urls,
        "ca_file": "",
        "bind_dn": "cn=hub,dc=example",
        "bind_password": "hub's",
        "user_base": PEOPLE,
        "user_attribute": "uid",
        "user_filter": "(objectClass=person)",
        "group_base": GROUPS,
        "group_attribute": "cn",
        "group_filter": "(|(member={dn})(memberUid={uid}))",
        "connect": connect,
    }
    return Directory(**{**values, **other})


def login(content: dict[str, dict[str, Any]], folder: Path, **other: Any) -> LdapLogin:
    return LdapLogin(
        directory=directory(content, **other),
        issuer=f"ldap:{PEOPLE}",
        persons_file=str(folder / "persons.json"),
        refused_file=str(folder / "refused.json"),
        manage_groups=True,
        allowed_groups={"gpu"},
        admin_groups={"ops"},
    )


class Request:
    """A request to log in with a browser that nobody knows."""

    request = SimpleNamespace(headers={}, protocol="https")
    hub = SimpleNamespace(base_url="/hub/")

    def get_signed_cookie(self, name: str, max_age_days: float) -> bytes | None:
        return None

    def set_signed_cookie(self, name: str, value: str, **options: Any) -> None:
        assert options["secure"] and options["httponly"] and options["path"] == "/hub/login"


def come_in(authenticator: LdapLogin, name: str, password: str = "") -> dict[str, Any] | None:
    data = {"username": name, "password": password or f"{name}'s"}
    return asyncio.run(authenticator.get_authenticated_user(Request(), data))


@pytest.fixture(autouse=True)
def no_accounts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "_entry", lambda name: None)


@pytest.mark.parametrize(
    ("url", "address"),
    [
        ("ldaps://ldap.example.org", Address("ldap.example.org", 636, "connect")),
        ("ldaps://[2001:db8::1]:6636/", Address("2001:db8::1", 6636, "connect")),
        ("ldap://ldap.example.org", Address("ldap.example.org", 389, "start")),
        ("ldap://127.0.0.1", Address("127.0.0.1", 389, "")),
        ("ldap://[::1]:3890", Address("::1", 3890, "")),
        ("ldap://localhost", Address("localhost", 389, "")),
        ("ldap://localhost.example.org", Address("localhost.example.org", 389, "start")),
    ],
)
def test_only_this_machine_is_asked_without_encryption(url: str, address: Address) -> None:
    assert parse_url(url) == address


@pytest.mark.parametrize(
    "url", ["", "ldap.example.org", "http://a", "ldaps://", "ldaps://a/dc=b", "ldap://a:b"]
)
def test_what_is_no_address_of_a_directory(url: str) -> None:
    with pytest.raises(DirectoryError, match="is no URL of a directory"):
        parse_url(url)


def test_a_user_with_groups_that_are_members_of_each_other() -> None:
    entry = directory(entries()).find("alice")
    assert entry and entry.groups == {"physics", "gpu", "ring"}
    assert (entry.name, entry.uid, entry.identifier) == ("alice", 20001, "id-1")
    other = directory(entries()).find("bob")
    assert other and (other.groups, other.uid, other.identifier) == ({"ops"}, None, f"uid=bob,{PEOPLE}")


def test_who_is_not_there() -> None:
    assert directory(entries()).find("nobody") is None
    assert directory(entries(), user_filter="(objectClass=device)").find("alice") is None


@settings(max_examples=50, deadline=None)
@given(st.text(alphabet='*()\\|&=,+"<>;#\0 aliceuid', max_size=12))
def test_a_name_is_never_a_part_of_a_question(name: str) -> None:
    found = directory(entries()).find(name)
    assert found is None or found.name == name == "alice"


def test_names_that_are_not_unique() -> None:
    twice = entries()
    twice[f"cn=second,{PEOPLE}"] = {"objectClass": "person", "uid": "alice", "userPassword": "x"}
    with pytest.raises(DirectoryError, match="2 entries below ou=people,dc=example match"):
        directory(twice).find("alice")


def test_the_first_server_that_answers_is_asked() -> None:
    assert directory(entries(), urls=("ldaps://down", "ldaps://b")).find("alice")
    with pytest.raises(DirectoryError, match=r"No directory answers \(ldaps://down: connection refused"):
        directory(entries(), urls=("ldaps://down",)).find("alice")


def test_members_come_in_and_are_told_why_not(tmp_path: Path) -> None:
    hub = login(entries(), tmp_path)
    alice, bob = come_in(hub, "alice"), come_in(hub, "BOB", "bob's")
    assert alice and (alice["name"], alice["admin"], alice["groups"]) == (
        "alice",
        False,
        ["gpu", "physics", "ring"],
    )
    assert alice["auth_state"] == {"uid": 20001, "identifier": "id-1"}
    assert bob and (bob["name"], bob["admin"]) == ("bob", True)
    with pytest.raises(HTTPError, match=r"none of the groups that may use this service \(gpu, ops\)"):
        come_in(hub, "mallory")


@pytest.mark.parametrize(("name", "password"), [("alice", "bob's"), ("nobody", "x"), ("alice", "\0alice's")])
def test_wrong_passwords(tmp_path: Path, name: str, password: str) -> None:
    assert come_in(login(entries(), tmp_path), name, password) is None


def test_an_empty_password_is_none(tmp_path: Path) -> None:
    data = {"username": "alice", "password": ""}
    assert asyncio.run(login(entries(), tmp_path).get_authenticated_user(None, data)) is None
    entry = directory(entries()).find("alice")
    assert entry and not directory(entries()).accepts(entry, "")


@pytest.mark.parametrize(
    ("question", "result", "sentence"),
    [
        ("bind", "referral", "lets nobody log in: referral"),
        ("search", "sizeLimitExceeded", r"does not tell all that matches \(&\(uid=alice\)"),
        ("search", "timeLimitExceeded", "does not tell all"),
        ("search", "referral", "does not tell all"),
    ],
)
def test_an_answer_that_is_none(question: str, result: str, sentence: str) -> None:
    entry = directory(entries()).find("alice")
    assert entry

    def connect(address: Address, ca_file: str) -> Any:
        connection = directory(entries()).connect(address, ca_file)

        def answer(*arguments: Any, **options: Any) -> bool:
            connection.result = {"result": 10, "description": result}
            return False

        setattr(connection, question, answer)
        return connection

    with pytest.raises(DirectoryError, match=sentence):
        directory(entries(), connect=connect).find("alice")
    if question == "bind":
        with pytest.raises(DirectoryError, match=sentence):
            directory(entries(), connect=connect).accepts(entry, "alice's")


def test_a_second_person_of_the_same_name(tmp_path: Path) -> None:
    content = entries()
    come_in(login(content, tmp_path), "alice")
    content[f"uid=alice,{PEOPLE}"]["entryUUID"] = "id-2"
    with pytest.raises(HTTPError, match="alice belongs to another person"):
        come_in(login(content, tmp_path), "alice")


@pytest.mark.parametrize(("uid", "mine"), [(20001, True), (1001, False), (0, False)])
def test_an_account_that_the_machine_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, mine: bool
) -> None:
    monkeypatch.setattr(accounts, "_entry", lambda name: SimpleNamespace(pw_uid=uid))
    if mine:
        assert come_in(login(entries(), tmp_path), "alice")
    else:
        with pytest.raises(HTTPError, match="alice belongs to an account of this machine itself"):
            come_in(login(entries(), tmp_path), "alice")


def test_a_directory_that_is_down_is_told_and_throws_nobody_out(tmp_path: Path) -> None:
    hub = login(entries(), tmp_path, urls=("ldaps://down",))
    with pytest.raises(HTTPError, match="Passwords cannot be checked at the moment") as caught:
        come_in(hub, "alice")
    assert caught.value.status_code == 503
    assert asyncio.run(hub.refresh_user(SimpleNamespace(name="alice"))) is True
    assert hub.doubt("alice").startswith("The directory that knows the users has not answered since ")


def test_who_leaves_is_out_soon(tmp_path: Path) -> None:
    content = entries()
    alice = SimpleNamespace(name="alice")
    model = asyncio.run(login(content, tmp_path).look_again(alice, None))
    assert isinstance(model, dict) and model["groups"] == ["gpu", "physics", "ring"]
    content[f"cn=gpu,{GROUPS}"]["member"] = [f"uid=mallory,{PEOPLE}"]
    assert asyncio.run(login(content, tmp_path).look_again(alice, None)) is None
    del content[f"uid=alice,{PEOPLE}"]
    assert asyncio.run(login(content, tmp_path).look_again(alice, None)) is None


def test_what_the_settings_name_is_looked_for() -> None:
    directory(entries()).check(["gpu", "ops"])
    with pytest.raises(DirectoryError, match=r"shows no group \(cn=nope\) below ou=groups,dc=example"):
        directory(entries()).check(["gpu", "nope"])
    with pytest.raises(DirectoryError, match="shows no users"):
        directory(entries(), user_filter="(objectClass=device)").check([])


def test_groups_of_users_and_of_administrators_are_looked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    login = {
        **dict.fromkeys(("ca_file", "bind_dn", "user_base", "user_attribute", "user_filter"), "x"),
        **dict.fromkeys(("group_base", "group_attribute", "group_filter", "bind_password"), "x"),
        "urls": ["ldaps://ldap.example.org"],
        "groups": ["gpu"],
        "admin_groups": ["ops"],
    }
    looked: list[str] = []
    monkeypatch.setattr(Directory, "check", lambda _self, groups: looked.extend(groups))
    monkeypatch.setattr(sys, "stdin", io.StringIO(json.dumps(login)))
    assert program.main() == 0
    assert looked == ["gpu", "ops"]


class Careless:
    """A server at which a bind without a password succeeds as nobody, for each name."""

    server = SimpleNamespace(name="a")

    def bind(self) -> bool:
        return True

    def unbind(self) -> None:
        pass


@pytest.mark.parametrize("password", ["", "\u00ad", "\u200d\u2060", "\0", "\ufdd0"])
def test_a_password_that_is_sent_as_an_empty_one_is_none(password: str) -> None:
    asked = directory({}, connect=lambda _address, _ca_file: Careless())
    alice = program.Entry("alice", f"uid=alice,{PEOPLE}", "id-1", None, frozenset())
    assert not asked.accepts(alice, password)
    assert asked.accepts(alice, "alice's")
