"""Users of the machine itself log in; its groups say who may."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import time

import pytest

from lab.visitor import Refused

WHO = "import os, pwd; print(pwd.getpwuid(os.getuid()).pw_name)"


def test_a_member_works_under_the_own_account(host, visitor):
    carol = visitor()
    account = carol.login("carol")
    assert (account.admin, set(account.groups)) == (False, {"carol", "gpu"})
    carol.spawn()
    assert carol.execute(WHO) == "carol"
    assert host.user("carol").shell == "/bin/bash"
    assert "jupyterhub-users" not in host.user("carol").groups


def test_a_member_of_the_administrators_group_administers(visitor):
    assert visitor().login("frank").admin


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("root", "Invalid username or password"),
        ("service", "Invalid username or password"),
        ("alice", "Invalid username or password"),
        ("grace", r"none of the groups that may use this service \(gpu, wheel\)"),
        ("heidi", "Your account may not sign in at the moment: it has expired"),
    ],
)
def test_who_cannot_come_in(visitor, name, sentence):
    with pytest.raises(Refused, match=sentence) as caught:
        visitor().login(name)
    assert caught.value.status == 403


def test_an_answer_to_a_wrong_password_takes_time(visitor):
    before = time.monotonic()
    with pytest.raises(Refused, match="Invalid username or password"):
        visitor().login("carol", "guess")
    assert time.monotonic() - before > 1.5  # three seconds, give or take a quarter: pam_fail_delay(3)


def test_who_leaves_the_group_is_out(host, visitor):
    carol = visitor()
    carol.login("carol")
    host.check_output("gpasswd --delete carol gpu")
    try:
        with pytest.raises(Refused):
            carol.spawn()
    finally:
        host.check_output("gpasswd --add carol gpu")


def test_a_former_administrator_and_a_notebook_of_who_left_end(host, visitor, eventually, hub_answers):
    carol, frank = visitor(), visitor()
    carol.login("carol")
    carol.spawn()
    frank.login("frank")
    token = frank._api("POST", "/hub/api/users/frank/tokens", json={}).json()["token"]
    listing = (
        "curl --silent --output /dev/null --write-out '%{http_code}' "
        f"--header 'Authorization: token {token}' http://127.0.0.1:8081/hub/api/users"
    )
    assert host.check_output(listing) == "200"
    host.check_output("gpasswd --delete carol gpu && gpasswd --delete frank wheel")
    try:
        host.check_output("systemctl restart jupyterhub")  # whose first look at a user asks
        eventually(hub_answers)
        eventually(lambda: host.run("systemctl is-active jupyterhub-notebook-carol").rc != 0)
        assert host.check_output(listing) == "403"
    finally:
        host.check_output("gpasswd --add carol gpu && gpasswd --add frank wheel")


def test_closed_logins_end_no_notebook(host, visitor, eventually, hub_answers):
    carol = visitor()
    carol.login("carol")
    carol.spawn()
    host.check_output("touch /run/nologin && systemctl restart jupyterhub")
    try:
        eventually(hub_answers)
        time.sleep(45)  # the keeper comes every 30 seconds
        assert host.service("jupyterhub-notebook-carol").is_running
    finally:
        host.check_output("rm /run/nologin")


def test_no_session_was_opened_and_no_password_written_down(host):
    journal = host.check_output("journalctl --unit=jupyterhub --unit=jupyterhub-proxy --no-pager")
    assert "password of" not in journal
    assert "pam_unix(jupyterhub:session)" not in journal
    assert "pam_unix(jupyterhub:auth): authentication failure" in journal


@pytest.mark.parametrize("path", ["/etc/jupyterhub/secrets/ldap_password", "/etc/jupyterhub/ldap-ca.crt"])
def test_nothing_of_the_directory_is_left(host, path):
    assert not host.file(path).exists
