"""Jobs find their data, and results are kept; a copy that is killed goes on, and what is wrong is told."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import STAGING, User

USE = 'cd "$GPUFARM_STAGE"; mkdir result; cat "data/-rf it/"* >"result/$*"; pwd >result/place'
DATA = "cd /bulk/ada && mkdir -p 'data/-rf it' && echo answer >'data/-rf it/a\"b' && ln -s . data/link"
BOTH = "--input bulk/ada/data --output result:bulk/ada/result"


def test_a_job_finds_its_data_and_its_results_are_kept(ada: User) -> None:
    ada.said("sh -c %s", DATA)
    first, job, last = ada.submit(USE, f"{BOTH} --export=NONE")
    ada.wait(last)
    assert ada.said("cat '/bulk/ada/result/it works'") == "answer\n"
    assert ada.said("cat /bulk/ada/result/place").strip() == f"{STAGING}/{job}"
    for number in (first, last):
        assert "TresPerNode=gres" not in ada.job(number) and "NumCPUs=1 " in ada.job(number)
    result = ada.host.file("/bulk/ada/result")
    assert result.user == "ada" and not ada.host.file(f"{STAGING}/{job}").exists
    assert sorted(ada.host.file("/bulk/ada").listdir()) == ["data", "result"]
    assert "stage-out: result is in bulk/ada/result" in ada.log(job)


def test_the_tasks_of_an_array_share_the_folder(ada: User) -> None:
    ada.said("sh -c %s", DATA)
    script = 'cat "$GPUFARM_STAGE/data/-rf it/"* >"$GPUFARM_STAGE/out/$SLURM_ARRAY_TASK_ID"'
    _first, _job, last = ada.submit(
        f'mkdir -p "$GPUFARM_STAGE/out"; {script}',
        "--input bulk/ada/data --output out:bulk/ada/out --array=1-3",
    )
    ada.wait(last)
    assert sorted(ada.host.file("/bulk/ada/out").listdir()) == ["1", "2", "3"]


def test_results_in_the_folder_of_a_project_belong_to_its_group(ada: User) -> None:
    ada.host.check_output("install -d -o ada -g users -m 2770 /bulk/ada/project")
    script = 'mkdir -p "$GPUFARM_STAGE/out/in"; echo answer >"$GPUFARM_STAGE/out/in/file"'
    _first, _job, last = ada.submit(script, "--output out:bulk/ada/project/out")
    ada.wait(last)
    told = ada.said("find /bulk/ada/project/out -printf '%y %g %m\\n'").splitlines()
    assert [line.rpartition(" ")[0] for line in told] == ["d users", "d users", "f users"]
    assert all(line.split()[2].startswith("2") for line in told if line.startswith("d"))


@pytest.fixture
def slow(ada: User) -> Iterator[User]:
    """A site where a copy takes a minute."""
    ada.host.check_output(
        "printf '#!/bin/sh\nexec /usr/bin/rsync --bwlimit=256k \"$@\"\n' >/usr/local/bin/rsync"
        " && chmod 755 /usr/local/bin/rsync"
    )
    yield ada
    ada.host.run("rm -f /usr/local/bin/rsync")


@pytest.mark.parametrize("end", ["killed", "damaged", "late"])
def test_a_copy_that_is_interrupted_goes_on_and_damage_is_found(slow: User, end: str) -> None:
    slow.said("dd if=/dev/urandom of=/bulk/ada/large bs=1M count=16 status=none")
    first, job, last = slow.submit(
        'cd "$GPUFARM_STAGE"; sha256sum <large >sum; stat -c %i large >>sum',
        "--input bulk/ada/large --output sum:bulk/ada/sum",
    )
    part = slow.host.file(f"{STAGING}/{job}/.gpufarm-{job}-large/data")
    slow.eventually(lambda: part.exists and part.size > 1 << 20)
    assert "JobState=PENDING" in slow.job(job) and "Reason=Dependency" in slow.job(job)
    if end == "late":
        slow.host.check_output(f"scontrol update JobId={first} TimeLimit=1")
    else:
        slow.host.check_output(f"pkill -KILL --full '([g]pufarm-stage in {job}|[r]sync .*/bulk/ada/large)'")
    slow.eventually(lambda: " Restarts=1 " in slow.job(first))
    written, inode = part.size, slow.host.check_output(f"stat -c %i {part.path}")
    assert 0 < written < 16 << 20 and not slow.host.file(f"{STAGING}/{job}/large").exists
    why = "ran out of time" if end == "late" else "was killed"
    assert f"stage-in: job {first} {why}\n" in slow.log(job)
    if end == "damaged":
        slow.host.check_output(f"dd if=/dev/zero of={part.path} bs=1M count=1 conv=notrunc status=none")
    slow.host.check_output("rm /usr/local/bin/rsync")
    # Slurm lets a job that is queued again wait for two minutes.
    slow.eventually(lambda: "JobState=PENDING" in slow.job(first))
    slow.host.check_output(f"scontrol update JobId={first} StartTime=now TimeLimit=60")
    slow.wait(last)
    *checksum, number = slow.said("cat /bulk/ada/sum").split()
    assert checksum == slow.said("sh -c 'sha256sum </bulk/ada/large'").split()
    # A copy that had begun anew would be another file.
    assert end == "damaged" or number == inode


def refused(ada: User, options: str) -> str:
    """Submit a job that is refused, in one sentence and before Slurm knows of it; return the sentence."""
    before = ada.host.check_output("squeue --all --noheader --states=all --format=%A | sort -n | tail -1")
    done = ada.run(f"gpufarm-submit {options} /tmp/job.sh")
    after = ada.host.check_output("squeue --all --noheader --states=all --format=%A | sort -n | tail -1")
    assert done.rc == 1 and before == after and len(done.stderr.splitlines()) == 1
    return str(done.stderr)


def test_what_cannot_be_staged_is_refused_at_once(ada: User) -> None:
    ada.host.check_output("echo secret >/bulk/ben/secret && chmod 600 /bulk/ben/secret")
    ada.host.check_output("mkdir -p -m 700 /bulk/ben/closed && chown ben /bulk/ben/*")
    ada.said("sh -c 'truncate --size=1G /bulk/ada/large; touch /bulk/ada/there; ln -s /etc /bulk/ada/etc'")
    for options, words in (
        ("--input bulk/ada/gone", "bulk/ada/gone cannot be read: No such file or directory"),
        ("--input bulk/ben/secret", "bulk/ben/secret cannot be read: you may not read it"),
        ("--input bulk/ben", "you may not open closed"),
        ("--input bulk/ada/large", "has room for"),
        ("--input bulk/ada/etc/passwd", "leads out of the stores, to /etc/passwd"),
        ("--input bulk/ada", "etc is a symbolic link that leads out of it"),
        ("--input bulk/../etc/passwd", "has an empty part, or '.' or '..'"),
        ("--output a:bulk/ada/there", "bulk/ada/there is there already"),
        ("--output a:bulk/ben/a", "you may not write to the folder of bulk/ben/a"),
        ("--output a:bulk/ada/etc/a", "leads out of the stores"),
    ):
        said = refused(ada, options)
        assert words in said or (words == "you may not open closed" and "you may not read secret" in said)


def test_a_job_whose_data_went_away_never_begins_and_says_why(ada: User) -> None:
    ada.said("sh -c %s", DATA)
    partition = ada.host.check_output("sinfo --noheader --format=%R")
    ada.host.check_output(f"scontrol update PartitionName={partition} State=DOWN")
    try:
        _first, job, last = ada.submit("true", BOTH)
        ada.said("rm -r /bulk/ada/data")
    finally:
        ada.host.check_output(f"scontrol update PartitionName={partition} State=UP")
    ada.wait(job, "CANCELLED")
    ada.wait(last, "CANCELLED")
    why = "stage-in failed: bulk/ada/data cannot be read: No such file or directory"
    assert f"Comment={why}" in ada.job(job) and why in ada.log(job)
    assert why in ada.said("gpufarm-stage")


def test_results_of_a_failed_job_are_kept_until_their_user_takes_them(ada: User) -> None:
    _first, job, last = ada.submit(
        'echo half >"$GPUFARM_STAGE/result"; exit 3', "--output result:bulk/ada/result"
    )
    ada.wait(job, "FAILED")
    ada.wait(last, "CANCELLED")
    assert not ada.host.file("/bulk/ada/result").exists
    assert ada.run(f"gpufarm-stage out {job}", name="ben").rc == 1
    assert "result is in bulk/ada/result" in ada.said(f"gpufarm-stage out {job}")
    assert ada.said("cat /bulk/ada/result") == "half\n"


def test_results_of_a_failed_job_are_taken_out_if_that_was_asked_for(ada: User) -> None:
    _first, _job, last = ada.submit(
        'echo half >"$GPUFARM_STAGE/result"; exit 3', "--always --output result:bulk/ada/result"
    )
    ada.wait(last)
    assert ada.said("cat /bulk/ada/result") == "half\n"


def test_what_somebody_else_has_put_in_the_place_stays(ada: User) -> None:
    script = 'echo mine >"$GPUFARM_STAGE/result"; until [ -e /bulk/all/result ]; do sleep 0.2; done'
    _first, job, last = ada.submit(script, "--output result:bulk/all/result")
    assert ada.run("sh -c 'echo theirs >/bulk/all/result'", name="ben").rc == 0
    ada.wait(last, "FAILED")
    assert ada.host.file("/bulk/all/result").content_string == "theirs\n"
    assert "/bulk/all/result is there already and stays as it is" in ada.job(last)
    assert ada.said(f"cat {STAGING}/{job}/result") == "mine\n"


def test_nobody_else_reads_what_is_staged(ada: User) -> None:
    ada.said("sh -c %s", DATA)
    _first, job, _last = ada.submit("exit 1", BOTH)
    ada.wait(job, "FAILED")
    for path in (STAGING, f"{STAGING}/{job}", f"{STAGING}/{job}.log"):
        assert ada.run(f"ls {path}", name="ben").rc != 0
