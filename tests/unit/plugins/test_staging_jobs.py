"""The three jobs of Slurm: what they wait for, and what they run."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging import jobs
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.declared import StagingError
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.plan import plan

# Runs the script of a copy whose program ends so, with a log that has these lines; returns the exit status,
# the call of scontrol, and what the log says of the end.
Copy = Callable[[str, list[str]], tuple[int, str, str]]


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    log, asked = tmp_path / "it's a log", tmp_path / "asked"
    asked.touch()

    def run(end: str, before: list[str]) -> tuple[int, str, str]:
        for name, text in (("gpufarm-stage", end), ("scontrol", f'echo "$*" >{asked}')):
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
        log.write_text("".join(f"2026-01-01 00:00:00 {line}\n" for line in before))
        script = jobs.copy_words("in", 17, str(log), "", "", ())[-1]
        script = script.replace(jobs.PROGRAM, str(tmp_path / "gpufarm-stage"))
        with log.open("a") as output:
            done = subprocess.run(
                ["sh", "-c", script],
                check=False,
                env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_JOB_ID": "18"},
                stdout=output,
                timeout=30,
            )
        said = log.read_text().splitlines()[len(before) :]
        return done.returncode, asked.read_text(), said[0].split(" ", 2)[2] if said else ""

    return run


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


KILLED, LATE = "stage-in: job 18 was killed", "stage-in: job 18 ran out of time"
TIME_IS_UP = "sleep 0.3; kill -USR1 $PPID"


@pytest.mark.parametrize(
    ("end", "before", "status", "says"),
    [
        ("exit 0", [], 0, ""),
        ("exit 1", [], 1, ""),
        ("kill -9 $$", [], 137, KILLED),
        ("kill -9 $$", [KILLED] * 2, 137, KILLED),
        ("kill -9 $$", ["stage-in: job 118 was killed", *[LATE] * 9], 137, KILLED),
        (f"{TIME_IS_UP}; exec sleep 60", [], 143, LATE),
        (f"{TIME_IS_UP}; exec sleep 60", [*[KILLED] * 3, *[LATE] * 99], 143, LATE),
        (f"trap 'exit 0' TERM; {TIME_IS_UP}; sleep 1", [], 0, ""),
        (f"trap 'exit 1' TERM; {TIME_IS_UP}; sleep 1", [], 1, ""),
    ],
)
def test_a_copy_that_is_killed_or_late_is_queued_again(
    copy: Copy, end: str, before: list[str], status: int, says: str
) -> None:
    assert copy(end, before) == (status, "requeue 18\n" if says else "", says)


@pytest.mark.parametrize(
    ("end", "before", "status"),
    [
        ("kill -9 $$", [KILLED] * 3, 137),
        (f"{TIME_IS_UP}; exec sleep 60", [LATE] * 100, 143),
    ],
)
def test_a_copy_is_not_queued_again_for_ever(copy: Copy, end: str, before: list[str], status: int) -> None:
    assert copy(end, before) == (status, "", before[0])


def test_slurm_signals_a_copy_alone_before_its_time_is_up() -> None:
    assert "--signal=B:USR1@60" in jobs.copy_words("in", 17, "/s/17.log", "", "", ())


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
