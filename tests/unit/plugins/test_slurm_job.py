"""A batch job: what is refused, what Slurm is told, and what becomes of a change."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shlex
import subprocess
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.job import (
    Decision,
    Job,
    JobProblem,
    Memory,
    Queued,
    Told,
    decide,
    mark,
    number_of,
    ours,
    plan,
    problems,
    read_accounting,
    read_details,
    read_job,
    read_name,
    read_number,
    read_queue,
    script,
    serves,
    words,
)

ASKED: dict[str, Any] = {
    "name": "train",
    "command": "python3 train.py",
    "folder": "",
    "partition": "",
    "cpus": 1,
    "memory": 1024,
    "gpus": 0,
    "gpu": "",
    "minutes": 60,
    "environment": {},
}
NONCE, OTHER = "0123456789abcdef", "fedcba9876543210"
JOB = read_job("ada", ASKED)
CHANGED = replace(JOB, minutes=61)


def queued(number: int, state: str, job: Job = JOB, nonce: str = NONCE) -> Queued:
    return Queued(number, state, job.name, job.name, job.digest(), nonce)


@pytest.mark.parametrize("owner", ["", "root", "Ada", "-ada", "ada\n", "ada bob", "../ada", "$(id)"])
def test_owners_that_are_no_accounts_of_people_are_refused(owner: str) -> None:
    [wrong] = problems(owner, ASKED)
    assert wrong.startswith("slurm_job_owner is ") and "name the user's account" in wrong


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("name", ["", "a b", "-x", "a/b", "..", "a\nb", "a%j", "a:b", "x" * 65, "é"]),
        ("command", ["", " \n\t", "a\0b", "a\rb", "\x1b[1m", "x" * 65537]),
        ("folder", ["/etc", "..", "a/../b", "a//b", "a/", "./a", "a\nb", "a\\b", "a\u2028b", "x" * 256]),
        ("partition", ["-p", "a,b", "a b", "a\nb", "%j"]),
        ("cpus", [0, -1, 4097]),
        ("memory", [0, 2**26 + 1]),
        ("gpus", [-1, 65]),
        ("minutes", [0, 527041]),
        (
            "environment",
            [{"1A": ""}, {"A=B": ""}, {"A\n": ""}, {"A": "a\nb"}, {"A": []}, {"A": True}, {"A": "\0"}],
        ),
    ],
)
def test_each_field_is_refused_in_a_sentence_that_names_it(field: str, values: list[Any]) -> None:
    for value in values:
        wrong = problems("ada", {**ASKED, field: value})
        assert [line.split(" ")[0] for line in wrong] == [f"slurm_job_{field}"], (value, wrong)
        assert wrong[0].isprintable() and wrong[0].endswith("."), wrong


@pytest.mark.parametrize("gpu", ["1g.10gb:2", "a100,mps:1", "-x", "a b", "A\n"])
def test_types_of_gpus_are_words(gpu: str) -> None:
    assert "slurm_job_gpu is" in problems("ada", {**ASKED, "gpus": 1, "gpu": gpu})[0]
    assert "say how many" in problems("ada", {**ASKED, "gpu": "a100"})[0]


def test_all_problems_are_told_at_once() -> None:
    with pytest.raises(JobProblem, match=r"slurm_job_owner .* slurm_job_name .* slurm_job_cpus "):
        read_job("root", {**ASKED, "name": "", "cpus": 0})


def test_a_removal_needs_owner_and_name_only() -> None:
    assert read_name("ada", {"name": "train"}) == "train"
    with pytest.raises(JobProblem, match="slurm_job_name"):
        read_name("ada", {"name": "../bob/train"})
    gone = {**ASKED, "owner": "ada", "state": "absent", "command": ""}
    assert plan(gone)["problems"] == [] and len(plan({**gone, "state": "present"})["problems"]) == 1


def test_the_words_of_sbatch_are_options_of_ours() -> None:
    asked = {**ASKED, "folder": "-50%j dir", "partition": "gpu", "gpus": 2, "gpu": "1g.10gb", "cpus": 3}
    job = read_job("ada", asked)
    told = words(job, "/home/ada", NONCE)
    assert told[:3] == ["sbatch", "--parsable", "--ignore-pbs"]
    assert all(word.startswith("--") for word in told[1:])
    assert {
        "--job-name=train",
        f"--comment={mark(job, NONCE)}",
        "--cpus-per-task=3",
        "--mem=1024M",
        "--time=60",
        "--gres=gpu:1g.10gb:2",
        "--partition=gpu",
        "--export=NONE",
        "--chdir=/home/ada/-50%j dir",
        "--output=/home/ada/-50%%j dir/train-%j.out",
        "--error=/home/ada/-50%%j dir/train-%j.err",
    } <= {*told}
    plain = words(JOB, "/home/ada", NONCE)
    assert not [word for word in plain if word.startswith(("--gres", "--partition"))]
    assert "--gres=gpu:2" in words(replace(JOB, gpus=2), "/home/ada", NONCE)


def test_no_line_of_a_user_comes_before_the_first_command() -> None:
    hostile = '#SBATCH --uid=0\r\n#PBS -N x\necho "$A"'
    job = read_job("ada", {**ASKED, "command": hostile, "environment": {"A": "'; #SBATCH `id` $(id)"}})
    lines = script(job).splitlines()
    assert lines[:2] == ["#!/bin/bash", ":"]
    assert "\r" not in script(job)
    done = subprocess.run(["bash"], input=script(job), capture_output=True, text=True, check=True)
    assert done.stdout == "'; #SBATCH `id` $(id)\n" and not done.stderr


def test_srun_in_a_job_passes_its_variables_on(monkeypatch: pytest.MonkeyPatch) -> None:
    # As Slurm sets it after `sbatch --export=NONE`.
    monkeypatch.setenv("SLURM_EXPORT_ENV", "NONE")
    job = read_job("ada", {**ASKED, "command": 'echo "$SLURM_EXPORT_ENV"', "environment": {"A": "b"}})
    done = subprocess.run(["bash"], input=script(job), capture_output=True, text=True, check=True)
    assert done.stdout == "ALL\n"


def test_numbers_of_variables_are_texts() -> None:
    job = read_job("ada", {**ASKED, "environment": {"B": 2, "A": 1.5}})
    assert job.environment == {"A": "1.5", "B": "2"}
    assert f"export B={shlex.quote('2')}\n" in script(job)
    assert "environment" in job.shown() and job.shown()["environment"] == ["A", "B"]


def test_every_field_is_in_the_digest() -> None:
    other = {
        "name": "x",
        "command": "x",
        "folder": "x",
        "partition": "x",
        "cpus": 2,
        "memory": 2,
        "gpus": 2,
        "gpu": "x",
        "minutes": 2,
        "environment": {"A": "b"},
    }
    assert (
        len({JOB.digest(), *(replace(JOB, **{name: value}).digest() for name, value in other.items())}) == 11
    )


@pytest.mark.parametrize(("name", "found"), [("slurm", True), ("ada", False), ("slu", False), ("", False)])
def test_the_account_of_slurm_is_known(name: str, found: bool) -> None:
    printed = "SlurmdUser              = root(0)\nSlurmUser               = slurm(64030)\n"
    assert serves(name, printed) is found and not serves("slurm", "")


@pytest.mark.parametrize(
    ("printed", "number"),
    [("17\n", 17), ("17;farm\n", 17), ("", 0), ("Submitted batch job 17\n", 0), ("17\n18\n", 0), ("0\n", 0)],
)
def test_the_number_is_the_only_thing_that_sbatch_tells(printed: str, number: int) -> None:
    assert read_number(printed) == number


def test_jobs_are_known_by_their_comments() -> None:
    printed = (
        f"17|RUNNING|train|{mark(JOB, NONCE)}\n18|PENDING|other|(null)\n19|PENDING|a|b|gpufarm:train\nx|y\n"
    )
    assert read_queue(printed) == [
        queued(17, "RUNNING"),
        Queued(18, "PENDING", "other", "", "", ""),
        Queued(19, "PENDING", "a", "", "", ""),
    ]


def test_a_job_whose_comment_its_owner_has_changed_is_known_by_its_number() -> None:
    changed = Queued(17, "RUNNING", "train", "", "", "")
    memory = Memory(JOB, NONCE, 17)
    assert ours("train", [changed, queued(16, "COMPLETED")], memory) == [changed]
    assert decide("ada", JOB, [changed], memory) == Decision(17, NONCE, [])
    assert ours("train", [changed._replace(name="other")], memory) == [], "the number is that of another job"


@pytest.mark.parametrize(
    ("there", "memory", "expected"),
    [
        ([], None, Decision(0, "", [])),
        ([queued(17, "RUNNING")], None, Decision(17, NONCE, [])),
        ([queued(17, "RUNNING")], Memory(JOB, NONCE, 17), Decision(17, NONCE, [])),
        ([queued(17, "PENDING", CHANGED)], Memory(CHANGED, NONCE, 17), Decision(0, "", [17])),
        ([queued(17, "COMPLETED")], Memory(JOB, NONCE, 17), Decision(17, NONCE, [])),
        ([], Memory(JOB, NONCE, 17), Decision(17, NONCE, [])),
        ([], Memory(CHANGED, NONCE, 17), Decision(0, "", [])),
        # Removed before, and asked for again while Slurm remembers the one that was ended.
        ([queued(17, "CANCELLED")], None, Decision(0, "", [])),
        # The run ended while it submitted the job: before, and after Slurm had it.
        ([], Memory(JOB, NONCE, 0), Decision(0, "", [])),
        ([queued(17, "COMPLETED")], Memory(JOB, NONCE, 0), Decision(17, NONCE, [])),
        ([queued(17, "COMPLETED", nonce=OTHER)], Memory(JOB, NONCE, 0), Decision(0, "", [])),
        # Two machines have submitted it.
        ([queued(17, "PENDING"), queued(18, "PENDING")], None, Decision(18, NONCE, [17])),
    ],
)
def test_what_a_run_does(there: list[Queued], memory: Memory | None, expected: Decision) -> None:
    assert decide("ada", JOB, there, memory) == expected


def test_the_work_of_a_job_that_runs_is_not_lost() -> None:
    with pytest.raises(JobProblem, match="The job train of ada runs as 17 with another definition"):
        decide("ada", CHANGED, [queued(17, "RUNNING")], Memory(JOB, NONCE, 17))


def test_the_number_of_a_job_that_was_never_submitted() -> None:
    assert number_of([], None) == number_of([], Memory(JOB, NONCE, 0)) == 0
    assert number_of([queued(17, "FAILED")], Memory(JOB, NONCE, 0)) == 17


DETAILS = (
    "JobId=17 JobName=train UserId=ada(2001) GroupId=ada(2001) JobState={state} Reason={reason}"
    " ExitCode={code} StartTime=1700000000 EndTime=1700000060 ReqNodeList=(null) ExcNodeList=(null)"
    " NodeList=n1 Comment=x"
)


@pytest.mark.parametrize(
    ("state", "reason", "code", "told"),
    [
        (
            "PENDING",
            "Resources",
            "0:0",
            Told("waiting", "The resources that it asks for are in use (Resources).", "", 0.0, 0.0, "n1"),
        ),
        ("PENDING", "None", "0:0", Told("waiting", "", "", 0.0, 0.0, "n1")),
        ("RUNNING", "None", "0:0", Told("running", "", "", 1700000000.0, 0.0, "n1")),
        ("COMPLETED", "None", "0:0", Told("succeeded", "", "0", 1700000000.0, 1700000060.0, "n1")),
        (
            "FAILED",
            "NonZeroExitCode",
            "3:0",
            Told("failed", "NonZeroExitCode", "3", 1.7e9, 1700000060.0, "n1"),
        ),
        ("TIMEOUT", "TimeLimit", "0:15", Told("failed", "TIMEOUT", "143", 1.7e9, 1700000060.0, "n1")),
        ("CANCELLED", "None", "0:0", Told("killed", "", "0", 1.7e9, 1700000060.0, "n1")),
        ("NODE_FAIL", "None", "0:0", Told("lost", "", "0", 1.7e9, 1700000060.0, "n1")),
    ],
)
def test_slurm_tells_how_a_job_goes(state: str, reason: str, code: str, told: Told) -> None:
    printed = DETAILS.format(state=state, reason=reason, code=code)
    assert read_details(printed, "ada", 17) == told
    assert read_details(printed, "bob", 17) is None and read_details(printed, "ada", 1) is None


@pytest.mark.parametrize(
    ("reason", "told"),
    [
        ("Priority", "Others are before it (Priority)."),
        ("Dependency", "It waits for another job (Dependency)."),
        ("Reservation", "The resources that it asks for are reserved (Reservation)."),
        (
            "ReqNodeNotAvail,_May_be_reserved_for_other_job",
            "The resources that it asks for are reserved (ReqNodeNotAvail, May be reserved for other job).",
        ),
        (
            "ReqNodeNotAvail,_Reserved_for_maintenance",
            "The machines with these resources are reserved for maintenance "
            "(ReqNodeNotAvail, Reserved for maintenance).",
        ),
        (
            "ReqNodeNotAvail,_UnavailableNodes:gpu[1-2]",
            "The machines with these resources are out of service "
            "(ReqNodeNotAvail, UnavailableNodes:gpu[1-2]).",
        ),
        (
            "Nodes_required_for_job_are_DOWN,_DRAINED_or_reserved_for_jobs_in_higher_priority_partitions",
            "The machines with these resources are out of service (Nodes required for job are DOWN, "
            "DRAINED or reserved for jobs in higher priority partitions).",
        ),
        ("PartitionTimeLimit", "It asks for more time than its partition gives (PartitionTimeLimit)."),
        (
            "AssocGrpGRES",
            "All users of the account together have what they may have (AssocGrpGRES).",
        ),
        (
            "MaxGRESPerAccount",
            "All users of the account together have what they may have (MaxGRESPerAccount).",
        ),
        (
            "QOSGrpCpuLimit",
            "All users with this quality of service together have what they may have (QOSGrpCpuLimit).",
        ),
        ("AssocGrpGRESMinutes", "Too few hours are left for it (AssocGrpGRESMinutes)."),
        ("QOSGrpCPUMinutesLimit", "Too few hours are left for it (QOSGrpCPUMinutesLimit)."),
        (
            "AssocGrpGRESRunMinutes",
            "Others have what may be in use at once until some of it ends (AssocGrpGRESRunMinutes).",
        ),
        ("QOSMaxGRESPerUser", "Its owner has as much as one may have at once (QOSMaxGRESPerUser)."),
        ("AssocMaxJobsLimit", "Its owner has as much as one may have at once (AssocMaxJobsLimit)."),
        ("QOSMaxGRESPerJob", "It asks for more than its account may (QOSMaxGRESPerJob)."),
        ("QOSUsageThreshold", "Its account is at its limit (QOSUsageThreshold)."),
        ("SomethingNew", "SomethingNew"),
    ],
)
def test_an_owner_reads_why_a_job_waits(reason: str, told: str) -> None:
    printed = DETAILS.format(state="PENDING", reason=reason, code="0:0")
    found = read_details(printed, "ada", 17)
    assert found and found.reason == told


def test_accounting_tells_how_a_job_went() -> None:
    printed = "17|other|FAILED|1:0|1|2|n1\n17|train|CANCELLED by 2001|0:9|1700000000|1700000060|n1\nx\n"
    assert read_accounting(printed, "train", 17) == Told("killed", "", "137", 1.7e9, 1700000060.0, "n1")
    assert read_accounting(printed, "train", 18) is None
    assert read_accounting("", "train", 17) is None
