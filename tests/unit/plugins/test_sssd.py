"""Settings of the role sssd, and entries of a directory beside the accounts of a machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
import configparser
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.entries import (
    clashes,
    entries,
    escaped,
    groups_filter,
    persons_filter,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._sssd.plan import plan
from hypothesis import given
from hypothesis import strategies as st

SETTINGS: dict[str, Any] = {
    "servers": ["ldaps://ldap.example.org"],
    "ca_file": "",
    "bind_dn": "",
    "bind_password": "",
    "user_base": "ou=people,dc=example,dc=org",
    "group_base": "ou=groups,dc=example,dc=org",
    "schema": "rfc2307",
    "login_groups": [],
    "home_folder": "",
}


def domain(groups: list[str] | None = None, **settings: Any) -> dict[str, str]:
    """Return what the configuration says of the domain, as SSSD reads it."""
    planned = plan({**SETTINGS, **settings}, groups)
    assert planned["problems"] == []
    parser = configparser.RawConfigParser(delimiters="=", comment_prefixes=("#", ";"), strict=True)
    parser.read_string(planned["configuration"])
    assert parser.sections() == ["sssd", "nss", "pam", "domain/directory"]
    assert all(parser[section]["debug_backtrace_enabled"] == "false" for section in parser.sections())
    return dict(parser["domain/directory"])


def test_nobody_logs_in_unless_groups_are_named() -> None:
    assert domain()["access_provider"] == "deny"
    named = domain(login_groups=["GPU users", "admins"])
    assert (named["access_provider"], named["simple_allow_groups"]) == ("simple", "GPU users, admins")


def test_the_certificate_is_verified_and_plain_connections_are_encrypted() -> None:
    found = domain(servers=["ldap://one.example.org", "ldaps://[2001:db8::1]:6636"], ca_file="/ca.pem")
    assert found["ldap_uri"] == "ldap://one.example.org, ldaps://[2001:db8::1]:6636"
    assert (found["ldap_tls_reqcert"], found["ldap_id_use_start_tls"]) == ("demand", "true")
    assert found["ldap_tls_cacert"] == "/etc/sssd/gpufarm-ca.pem"
    assert "ldap_tls_cacert" not in domain()


def test_groups_of_the_system_are_not_asked_for_by_number_or_by_name() -> None:
    found = domain(["audio", "odd(name)"])["ldap_group_search_base"]
    assert found.startswith("ou=groups,dc=example,dc=org?subtree?(&(gidNumber>=1000)(!(|")
    for name in ("(cn=sudo)", "(cn=docker)", "(cn=audio)", "(cn=odd\\28name\\29)"):
        assert name in found
    assert domain()["ldap_user_search_base"] == "ou=people,dc=example,dc=org?subtree?(uidNumber>=1000)"


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"servers": []}, "sssd_servers is empty"),
        ({"servers": ["ldap.example.org"]}, "sssd_servers has 'ldap.example.org'"),
        ({"servers": ["ldap://a.example.org\naccess_provider = permit"]}, "sssd_servers has"),
        ({"servers": ["ldap://a.example.org, ldap://b.example.org"]}, "sssd_servers has"),
        ({"user_base": ""}, "sssd_user_base is ''"),
        ({"user_base": "people"}, "no distinguished name"),
        ({"group_base": "ou=groups,dc=example?subtree?(cn=*)"}, "sssd_group_base is"),
        ({"user_base": "ou=people\naccess_provider = permit"}, "sssd_user_base is"),
        ({"bind_dn": "cn=reader,dc=example"}, "Only one of sssd_bind_dn and sssd_bind_password"),
        ({"bind_password": "secret"}, "Only one of sssd_bind_dn and sssd_bind_password"),
        ({"bind_dn": "cn=r,dc=x", "bind_password": "a\naccess_provider = permit"}, "control character"),
        ({"bind_dn": "cn=r,dc=x", "bind_password": " a"}, "begins or ends with a blank"),
        ({"login_groups": ["a, b"]}, "without commas"),
        ({"login_groups": [""]}, "sssd_login_groups has ''"),
        ({"login_groups": ["a\naccess_provider = permit"]}, "sssd_login_groups has"),
        ({"home_folder": "home"}, "no plain absolute path"),
        ({"home_folder": "/home/%d"}, "no plain absolute path"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(changed: dict[str, Any], words: str) -> None:
    planned = plan({**SETTINGS, **changed})
    assert any(words in problem for problem in planned["problems"]), planned
    assert "configuration" not in planned


def test_a_refusal_tells_no_password() -> None:
    planned = plan({**SETTINGS, "bind_dn": "cn=r,dc=x", "bind_password": "my-secret\t"})
    assert planned["problems"] and "my-secret" not in str(planned)


TEXTS = st.text(st.characters(codec="utf-8"), max_size=30)


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_no_text_adds_a_setting(base: str, password: str, group: str, home: str) -> None:
    settings = {"user_base": base, "bind_dn": "cn=r,dc=x", "bind_password": password}
    settings |= {"login_groups": [group], "home_folder": home}
    planned = plan({**SETTINGS, **settings})
    if not planned["problems"]:
        assert domain(**settings).keys() <= {*domain(), *domain(**{**settings}), "simple_allow_groups"}
        assert planned["configuration"].count("\naccess_provider = ") == 1
        assert len(planned["configuration"].splitlines()) < 40


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1))
def test_a_name_ends_no_filter(name: str) -> None:
    assert not set(escaped(name)) & set("*()")


LDIF = """\
dn: uid=ada,ou=people,dc=example,dc=org
uid: ada
uid: countess
uidNumber: 20001

dn:: {}
cn:: {}
gidNumber: 30000

# a comment
result: 4
"""


def test_entries_are_read_with_their_first_values() -> None:
    dn, cn = (base64.b64encode(text.encode()).decode() for text in ("cn=Gäste,dc=example", "Gäste"))
    assert entries(LDIF.format(dn, cn)) == [
        {"dn": "uid=ada,ou=people,dc=example,dc=org", "uid": "ada", "uidnumber": "20001"},
        {"dn": "cn=Gäste,dc=example", "cn": "Gäste", "gidnumber": "30000"},
    ]


def test_a_long_line_is_one_value() -> None:
    assert entries("dn: uid=ada,\n dc=org\nuid: a\n da\n") == [{"dn": "uid=ada,dc=org", "uid": "ada"}]


ACCOUNTS = {"root": 0, "ops": 1000, "bob": 5001, "nobody": 65534}


def test_only_accounts_of_persons_are_asked_for() -> None:
    assert persons_filter({"root": 0, "nobody": 65534}) == ""
    asked = persons_filter(ACCOUNTS)
    assert "(uid=ops)(uidNumber=1000)" in asked and "root" not in asked and "65534" not in asked
    assert groups_filter({"users": 100, "ops": 1000}) == "(&(objectClass=posixGroup)(|(gidNumber=1000)))"


def person(name: str, number: int) -> dict[str, str]:
    return {"dn": f"uid={name}", "uid": name, "uidnumber": str(number)}


def group(name: str, number: int) -> dict[str, str]:
    return {"dn": f"cn={name}", "cn": name, "gidnumber": str(number)}


def test_an_account_that_is_the_same_everywhere_clashes_with_nothing() -> None:
    assert [*clashes([person("bob", 5001)], ACCOUNTS, [group("ops", 1000)], {"ops": 1000})] == []


@pytest.mark.parametrize(
    ("persons", "groups", "words"),
    [
        ([person("bob", 20002)], [], "bob has the number 5001 on the machine and 20002 in the directory"),
        ([person("carol", 1000)], [], "1000 is ops on the machine and carol in the directory"),
        ([], [group("guests", 1000)], "1000 is the group ops on the machine and guests in the directory"),
    ],
)
def test_an_entry_that_is_somebody_else_on_the_machine_is_told(
    persons: list[dict[str, str]], groups: list[dict[str, str]], words: str
) -> None:
    (problem,) = clashes(persons, ACCOUNTS, groups, {"ops": 1000})
    assert words in problem


@pytest.mark.parametrize(("group", "own"), [("staff", []), ("Staff", []), ("users", ["users", "root"])])
def test_groups_that_are_passed_over_let_nobody_log_in_unnoticed(group: str, own: list[str]) -> None:
    """The filter of groups leaves them out, so nobody would be their member on the machine."""
    assert f"(cn={group.lower()})" in domain(own)["ldap_group_search_base"]
    [problem] = plan({**SETTINGS, "login_groups": [group]}, own)["problems"]
    assert problem.startswith(f"sssd_login_groups has '{group}', a name for groups of the machine,")
