"""Keys, rights and accounts that were taken away are gone; homes are kept."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_a_key_that_was_taken_away_opens_nothing(login):
    assert "Permission denied" in login("ada", "ada", "true").stderr
    assert login("ada", "ada2", "true").returncode == 0


def test_rights_that_were_taken_away_are_gone(host, login):
    assert login("ada", "ada2", "sudo -n true").returncode != 0
    assert not host.file("/etc/sudoers.d/gpufarm-users").exists


def test_who_is_gone_is_locked_and_keeps_the_home(host, login):
    assert login("ben", "ben", "true").returncode != 0
    assert host.user("ben").password.startswith("!")
    assert host.user("ben").expiration_date.year == 1970
    assert host.file("/home/ben").is_directory
    assert "video" not in host.user("ben").groups


def test_what_the_locked_user_ran_was_ended(host):
    assert host.run("pgrep --uid ben").rc == 1
