"""The settings decide at once who may log in and where homes are; a wrong password changes nothing."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_nobody_logs_in_any_more(host):
    done = host.run("printf '%s\\n' 'password of bob' | pamtester sshd bob authenticate acct_mgmt")
    assert done.rc != 0
    assert host.check_output("id --user bob") == "20002"


def test_homes_are_where_the_settings_say(host):
    assert host.check_output("getent passwd bob").split(":")[5] == "/srv/homes/bob"


def test_users_stay_known_while_the_directory_is_away(host):
    host.check_output("nft add table inet away")
    host.check_output("nft add chain inet away out '{ type filter hook output priority 0; }'")
    host.check_output("nft add rule inet away out tcp dport 389 reject")
    try:
        assert host.check_output("id --user bob") == "20002"
    finally:
        host.check_output("nft delete table inet away")
