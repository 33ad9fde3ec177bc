"""Accounts are in the database as declared; only their users can compute, and they see nothing of others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

# Of the tables of slurmdbd themselves, which no program of Slurm has put into words.
ACCOUNTS = (
    "select acct, user, shares, grp_jobs, parent_acct from farm_assoc_table"
    " where deleted = 0 order by acct, user"
)


def query(host, statement):
    return [
        line.split("\t")
        for line in host.check_output(
            "mariadb --batch --skip-column-names slurm_acct_db --execute %s", statement
        ).splitlines()
    ]


def submit(host, user, options=""):
    return host.run(f"runuser -u {user} -- sbatch --parsable {options} --output=/dev/null --wrap=true")


def test_the_database_has_what_was_declared(host):
    rows = [row for row in query(host, ACCOUNTS) if row[0] not in ("root", "theirs")]
    assert rows == [
        ["physics", "", "1", "NULL", "science"],
        ["physics", "ada", "1", "4", ""],
        ["physics", "ben", "1", "4", ""],
        ["science", "", "20", "NULL", "root"],
    ]


def test_limits_are_those_that_slurm_enforces(host):
    told = host.check_output("scontrol show assoc_mgr flags=assoc accounts=science,physics")
    for limit in ("mem=65536(0)", "gres/gpu=6(0)", "gres/gpu:1g.10gb=2(0)", "gres/gpu=60000(0)"):
        assert limit in told


def test_a_user_of_an_account_can_submit_a_job(host):
    job = submit(host, "ada", "--gres=gpu:1g.10gb:1")
    assert job.succeeded, job.stderr
    host.check_output("scancel %s", job.stdout.strip())


def test_a_user_of_no_account_cannot(host):
    refused = submit(host, "eve")
    assert refused.rc != 0
    assert "Invalid account" in refused.stderr


def test_users_see_no_one_else(host):
    seen = host.check_output("runuser -u ada -- sacctmgr --noheader --parsable2 show association format=User")
    assert set(seen.split()) <= {"ada"}
    job = submit(host, "ben")
    assert job.succeeded, job.stderr
    jobs = host.check_output(
        "runuser -u ada -- sacct --noheader --parsable2 --allocations --allusers --format=User"
    )
    assert set(jobs.split()) <= {"ada"}
    host.check_output("scancel %s", job.stdout.strip())


def test_a_course_has_its_reservation(host):
    if host.system_info.codename == "bookworm":
        pytest.skip("its Slurm is too old")
    told = host.check_output("scontrol show reservation ml_course --oneliner")
    for words in (
        "StartTime=2035-03-06T09:00:00 EndTime=2035-03-06T13:00:00 ",
        " Nodes=n1 ",
        " Accounts=physics ",
    ):
        assert words in told
    flags = told.partition(" Flags=")[2].split()[0].split(",")
    assert {"WEEKLY", "MAGNETIC", "NO_HOLD_JOBS_AFTER_END"} <= {*flags}
