"""The three jobs of Slurm: what they wait for, and what they run."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging import jobs
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.declared import StagingError
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.plan import plan


@pytest.mark.parametrize(
    ("output", "number"), [("17\n", 17), ("17;farm\n", 17), ("a word before\n4711\n", 4711)]
)
def test_the_number_of_a_job_is_read(output: str, number: int) -> None:
    assert jobs.number(output) == number


@pytest.mark.parametrize("output", ["", "Submitted batch job 17\n", "0\n", "17 18\n"])
def test_no_number_is_guessed(output: str) -> None:
    with pytest.raises(StagingError, match="no number of the job"):
        jobs.number(output)


@pytest.mark.parametrize(
    ("output", "queued"),
    [
        ("(null)|physics\n", jobs.Queued("", "physics")),
        ("(null)|(null)\n", jobs.Queued("", "")),
        ("afterok:5(unfulfilled)|physics\n", jobs.Queued("afterok:5", "physics")),
        ("afterok:5_*(unfulfilled),singleton(unfulfilled)|\n", jobs.Queued("afterok:5,singleton", "")),
    ],
)
def test_what_a_job_waits_for_is_read(output: str, queued: jobs.Queued) -> None:
    assert jobs.queued(output) == queued


def test_a_job_that_is_gone_is_refused() -> None:
    with pytest.raises(StagingError, match="does not know the job"):
        jobs.queued("")


def test_a_job_waits_for_its_data_and_for_what_its_user_wants() -> None:
    assert jobs.dependency("", 18) == "afterok:18"
    assert jobs.dependency("afterok:5,afterany:6", 18) == "afterok:5,afterany:6,afterok:18"
    with pytest.raises(StagingError, match="of which one is enough"):
        jobs.dependency("afterok:5?afterok:6", 18)


@pytest.mark.parametrize(
    ("output", "waits"),
    [
        ("afterok:18(unfulfilled)|a\n", True),
        ("afterok:5(unfulfilled),afterok:18(unfulfilled)|a\nafterok:18(unfulfilled)|a\n", True),
        ("afterok:18(unfulfilled)|a\n(null)|a\n", False),
        ("afterok:180(unfulfilled)|a\n", False),
        ("(null)|afterok:18x\n", False),
        ("", False),
    ],
)
def test_every_part_of_a_job_waits(output: str, waits: bool) -> None:
    assert jobs.waits(output, 18) is waits


def test_a_copy_asks_for_what_it_needs() -> None:
    words = jobs.copy_words("in", 17, "/s/17.log", "", "", ("--hold",))
    assert "--hold" in words and "--output=/s/17.log" in words and "--requeue" in words
    assert not any(word.startswith(("--gres", "--account", "--partition")) for word in words)
    words = jobs.copy_words("out", 17, "/s/17.log", "physics", "copies", ())
    assert {"--account=physics", "--partition=copies"} < set(words)


@pytest.mark.parametrize(
    ("end", "restarts", "status", "queued"),
    [
        ("exit 0", "", 0, False),
        ("exit 1", "", 1, False),
        ("kill -9 $$", "", 137, True),
        ("kill -9 $$", "2", 137, True),
        ("kill -9 $$", "3", 137, False),
    ],
)
def test_a_copy_that_is_killed_is_queued_again_a_few_times(
    tmp_path: Path, end: str, restarts: str, status: int, queued: bool
) -> None:
    program = tmp_path / "gpufarm-stage"
    program.write_text(f"#!/bin/sh\n{end}\n")
    asked = tmp_path / "scontrol"
    asked.write_text(f'#!/bin/sh\necho "$*" >{tmp_path}/asked\n')
    for file in (program, asked):
        file.chmod(0o755)
    script = jobs.copy_words("in", 17, "/s/17.log", "", "", ())[-1].replace(jobs.PROGRAM, str(program))
    environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "18", "SLURM_RESTART_COUNT": restarts}
    done = subprocess.run(["sh", "-c", script], check=False, env=environment, capture_output=True)
    assert done.returncode == status
    assert (tmp_path / "asked").exists() is queued
    if queued:
        assert (tmp_path / "asked").read_text() == "requeue 18\n"


SETTINGS = {"areas": "/scratch/areas/users", "stores": [{"name": "bulk", "path": "/bulk"}], "partition": ""}
MOUNTS = (
    "21 1 8:2 / / rw - ext4 /dev/sda2 rw\n22 21 8:3 / /scratch rw - xfs /dev/sdb1 rw\n"
    "23 21 0:9 / /bulk rw - lustre s:/bulk rw\n"
)


def test_the_settings_of_the_commands_are_those_of_the_role() -> None:
    planned = plan(SETTINGS, MOUNTS)
    assert planned["problems"] == [] and planned["paths"] == ["/scratch/areas/users/.", "/bulk/."]
    assert planned["command"] == {
        "areas": "/scratch/areas/users",
        "stores": {"bulk": "/bulk"},
        "partition": "",
    }


def test_a_store_that_is_not_mounted_is_a_problem_of_the_machine_only() -> None:
    there = MOUNTS.splitlines()[0]
    assert plan(SETTINGS)["problems"] == []
    problems = plan(SETTINGS, there)["problems"]
    assert [sentence.partition(" is on")[0] for sentence in problems] == [
        "/scratch/areas/users (staging_areas)",
        "/bulk (store bulk)",
    ]
