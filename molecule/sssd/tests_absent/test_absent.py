"""Users of the directory are gone from the machine, and its own accounts log in as before."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_users_of_the_directory_are_gone(host):
    assert host.run("id bob").rc != 0
    assert not host.file("/etc/sssd/sssd.conf").exists
    assert not host.service("sssd").is_running


def test_no_secret_is_left(host):
    assert host.run("grep -rl 'password of the hub' /etc /var/lib/sss /var/log/sssd /run").stdout == ""


def test_accounts_of_the_machine_log_in(host):
    assert host.run("printf '%s\\n' 'own password' | pamtester sshd ops authenticate acct_mgmt").rc == 0
    assert "pam_localuser.so" not in host.check_output("cat /etc/pam.d/common-auth")


def test_sssd_is_as_it_was_before(host):
    there = host.check_output("hostname") == "sssd13"
    assert host.service("sssd").is_enabled == there
    assert ("pam_sss.so" in host.check_output("cat /etc/pam.d/common-auth")) != there
