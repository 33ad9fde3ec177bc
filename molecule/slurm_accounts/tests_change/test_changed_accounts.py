"""Accounts that are no longer declared are gone, and those that others made stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations


def test_only_what_is_declared_is_left(host):
    left = host.check_output("sacctmgr --noheader --parsable2 show association format=Account,User,GrpJobs")
    assert sorted(left.splitlines()) == ["physics|ben|", "physics||", "root|root|", "root||", "theirs||"]
    qualities = host.check_output("sacctmgr --noheader --parsable2 show qos format=Name")
    assert qualities.split() == ["normal"]
