"""Users of a directory log in; its groups say who may."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

from lab.visitor import Refused

WHO = "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_name, os.getuid(), os.path.expanduser('~'))"


def change_group(host, how):
    """Let the group that alice is in be a member of the group that may come in, or not: "add" or "delete"."""
    member = "member: cn=physics,ou=groups,dc=example,dc=org"
    change = f"dn: cn=GPU users,ou=groups,dc=example,dc=org\nchangetype: modify\n{how}: member\n{member}\n"
    host.run_expect([0], "printf %s | ldapmodify -Q -Y EXTERNAL -H ldapi:///", change)


def test_a_member_by_way_of_another_group_works_under_an_account_of_her_own(host, visitor):
    alice = visitor()
    account = alice.login("alice")
    assert (account.admin, set(account.groups)) == (False, {"GPU users", "physics"})
    alice.spawn()
    name, _uid, home = alice.execute(WHO).split()
    assert (name, home) == ("alice", "/home/alice")
    assert "jupyterhub-users" in host.user("alice").groups


def test_a_member_of_a_posix_group_administers(visitor):
    account = visitor().login("Bob", "password of bob")
    assert (account.name, account.admin, account.groups) == ("bob", True, ["gpu-admins"])


def test_an_account_that_the_machine_has_from_the_directory_is_used_as_it_is(host, visitor):
    dora = visitor()
    assert set(dora.login("dora").groups) == {"GPU users", "guests"}
    dora.spawn()
    assert dora.execute(WHO).split() == ["dora", "5000", "/home/dora"]
    assert "jupyterhub-users" not in host.user("dora").groups


def test_somebody_elses_account_is_not(visitor):
    with pytest.raises(Refused, match="erin belongs to an account of this machine itself"):
        visitor().login("erin")


def test_who_is_in_no_group_is_told_so(host, visitor):
    with pytest.raises(
        Refused, match=r"none of the groups that may use this service \(GPU users, gpu-admins\)"
    ):
        visitor().login("mallory")
    assert not host.user("mallory").exists


@pytest.mark.parametrize(
    ("name", "password", "sentence"),
    [
        ("alice", "password of bob", "Invalid username or password"),
        ("nobody-of-this-name", "password", "Invalid username or password"),
        ("*", "password of alice", "cannot be used on this machine"),
        ("alice)(uid=*", "password of alice", "cannot be used on this machine"),
        ("al*", "password of alice", "cannot be used on this machine"),
    ],
)
def test_wrong_names_and_passwords(visitor, name, password, sentence):
    with pytest.raises(Refused, match=sentence) as caught:
        visitor().login(name, password)
    assert caught.value.status == 403


def test_the_form_is_said_why_while_the_directory_is_down(host, visitor):
    alice = visitor()
    alice.login("alice")
    host.check_output("systemctl stop slapd")
    try:
        with pytest.raises(Refused, match="Passwords cannot be checked at the moment") as caught:
            visitor().login("alice")
        assert caught.value.status == 503
        alice.spawn()  # asks for the groups anew, in vain
        assert "The directory that knows the users has not answered since" in alice.page("/hub/home")
        assert alice.running()
    finally:
        host.check_output("systemctl start slapd")
    assert "alice stays logged in: No directory answers" in host.check_output("journalctl --unit=jupyterhub")


def test_who_leaves_the_group_is_out(host, visitor):
    alice = visitor()
    alice.login("alice")
    change_group(host, "delete")
    try:
        with pytest.raises(Refused):
            alice.spawn()
        with pytest.raises(Refused, match="none of the groups"):
            visitor().login("alice")
    finally:
        change_group(host, "add")


def test_the_notebook_of_who_leaves_ends(host, visitor, eventually, hub_answers):
    alice = visitor()
    alice.login("alice")
    alice.spawn()
    change_group(host, "delete")
    try:
        host.check_output("systemctl restart jupyterhub")  # whose first look at a user asks
        eventually(hub_answers)
        eventually(lambda: host.run("systemctl is-active jupyterhub-notebook-alice").rc != 0)
    finally:
        change_group(host, "add")


@pytest.mark.parametrize(
    ("setting", "value", "sentence"),
    [
        ("user_base", "ou=nowhere,dc=example,dc=org", "shows nothing at ou=nowhere,dc=example,dc=org."),
        ("user_filter", "(objectClass=device)", "shows no users (&(uid=*)(objectClass=device)) below"),
        ("user_filter", "(uid=", "is no filter of a directory"),
        ("groups", ["GPU users", "2"], "shows no group (cn=2) below ou=groups,dc=example,dc=org."),
        ("bind_dn", "", "refuses questions without a bind account"),
        ("ca_file", "", "CERTIFICATE_VERIFY_FAILED"),
        ("urls", ["ldap://localhost"], "confidentialityRequired"),  # takes no passwords as plain text
        ("urls", ["ldaps://[::1]:6636"], "No directory answers (ldaps://[::1]:6636: "),
    ],
)
def test_settings_that_the_directory_does_not_fit(host, setting, value, sentence):
    login = json.loads(host.file("/etc/jupyterhub/settings.json").content_string)["login"]
    login |= {"bind_password": "password of the hub", setting: value}
    command = "/opt/jupyterhub/bin/python -m gpufarm_hub.people.directory"
    asked = host.run(f"printf %s | {command}", json.dumps(login))
    assert asked.rc == 1
    assert sentence in asked.stderr and len(asked.stderr.splitlines()) == 1


def test_cookies_travel_encrypted_only(visitor):
    bob = visitor()
    bob.login("bob")
    cookies = list(bob._http.cookies.jar)
    assert cookies and all(cookie.secure for cookie in cookies)


def test_passwords_are_kept_from_others_and_from_the_journal(host):
    file = host.file("/etc/jupyterhub/secrets/ldap_password")
    assert (file.user, file.mode) == ("root", 0o600)
    assert "password of the hub" not in host.file("/etc/jupyterhub/settings.json").content_string
    assert "password of" not in host.check_output(
        "journalctl --unit=jupyterhub --unit=jupyterhub-proxy --no-pager"
    )
