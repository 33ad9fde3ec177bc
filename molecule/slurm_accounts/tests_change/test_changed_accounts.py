"""Accounts that are no longer declared are gone, and those that others made stay."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest


def test_only_what_is_declared_is_left(host):
    left = host.check_output("sacctmgr --noheader --parsable2 show association format=Account,User,GrpJobs")
    assert sorted(left.splitlines()) == ["physics|ben|", "physics||", "root|root|", "root||", "theirs||"]
    qualities = host.check_output("sacctmgr --noheader --parsable2 show qos format=Name")
    assert qualities.split() == ["normal"]


def test_a_reservation_is_longer_and_those_of_others_stay(host):
    told = host.check_output("scontrol show reservations --oneliner")
    assert "ReservationName=theirs " in told
    if host.system_info.codename == "bookworm":
        pytest.skip("its Slurm is too old for ours")
    [course] = [line for line in told.splitlines() if line.startswith("ReservationName=ml_course ")]
    assert "EndTime=2035-03-06T14:00:00 Duration=05:00:00" in course
