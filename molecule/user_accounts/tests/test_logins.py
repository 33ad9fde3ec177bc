"""Keys open the accounts, passwords do not, and sudo is for those who have it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_every_key_of_a_user_opens_the_account(login):
    assert login("ada", "ada", "id --user --name").stdout.strip() == "ada"
    assert login("ada", "ada2", "id --user --name").stdout.strip() == "ada"
    assert login("ben", "ben", "id --user --name --real && id --user").stdout.split() == ["ben", "2001"]


def test_the_key_of_another_user_opens_nothing(login):
    assert "Permission denied (publickey)" in login("ada", "ben", "true").stderr


def test_a_key_that_the_user_adds_opens_nothing(host, login):
    host.check_output("install -d -m 700 -o ben -g ben /home/ben/.ssh")
    host.check_output(
        "install -m 600 -o ben -g ben /etc/ssh/gpufarm-users.d/ada /home/ben/.ssh/authorized_keys"
    )
    assert "Permission denied" in login("ben", "ada", "true").stderr


def test_sudo_is_for_those_who_have_it_and_asks_for_no_password(login):
    assert login("ada", "ada", "sudo -n id --user --name").stdout.strip() == "root"
    assert login("ben", "ben", "sudo -n true").returncode != 0


def test_homes_are_private_and_groups_as_asked_for(host):
    assert host.file("/home/ada").mode == 0o700
    assert set(host.user("ben").groups) == {"ben", "gpufarm-users", "video"}
    assert host.user("ada").password == "*"
    assert host.file("/etc/sudoers.d/gpufarm-users").mode == 0o440


def test_refusals_have_left_nothing(host):
    assert not host.user("cyd").exists
    assert "gpufarm-users" not in host.user("hugo").groups


def test_other_accounts_are_told_nothing(host):
    settings = host.check_output("sshd -T -C user=root,host=localhost,addr=127.0.0.1")
    assert "gpufarm-users.d" not in settings
