"""Notebooks as squeue, sstat and sacct of Slurm 24.11 tell of them, recorded on a cluster."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from gpufarm_hub import clock
from gpufarm_hub.slurm import client, engine, queue, reasons, submission
from gpufarm_hub.slurm.queue import Job, QueueError
from gpufarm_hub.spawning import deaths
from gpufarm_hub.spawning.engine import Death, EngineError
from hypothesis import given
from hypothesis import strategies as st

RECORDED = (Path(__file__).parent / "squeue_24_11.json").read_text()
AUTHORITY = b"ca"
HUB = submission.hub_of(AUTHORITY)
JOBS = {job.number: job for job in queue.read(RECORDED, HUB)}
RUNS, WAITS = JOBS[47], JOBS[49]


def changed(number: int = 47, **values: Any) -> str:
    """Return what squeue would print of one of the jobs with other values."""
    (entry,) = (one for one in json.loads(RECORDED)["jobs"] if one["job_id"] == number)
    return json.dumps({"jobs": [{**entry, **values}]})


def test_a_job_that_runs() -> None:
    assert (RUNS.owner, RUNS.uid, RUNS.node, RUNS.gpus) == ("alice/", 2001, "gpu1", "3g.40gb:1")
    assert not RUNS.waits and not RUNS.is_over
    assert len(RUNS.mark) == 16


def test_a_job_that_waits() -> None:
    assert WAITS.waits and not WAITS.is_over
    assert (WAITS.owner, WAITS.node, WAITS.reason) == ("carol/", "", "Resources")


def test_a_job_whose_processes_are_about_to_end_is_not_over() -> None:
    assert JOBS[4].states == ("CANCELLED", "COMPLETING")
    assert not JOBS[4].is_over
    assert {number for number, job in JOBS.items() if job.is_over} == {1, 2, 7, 8}


@pytest.mark.parametrize(
    "values",
    [
        {"comment": f"{HUB}:bob/:0123456789abcdef"},  # that alice may write
        {"name": "another"},
        {"user_name": ""},  # while the directory does not answer
    ],
)
def test_whose_a_job_is_depends_on_nothing_that_its_user_may_change(values: dict[str, Any]) -> None:
    assert queue.read(changed(**values), HUB) == [RUNS]


@pytest.mark.parametrize("note", ["", "checked", "jupyterhub-0123456789abcdef:alice/:64dc4bc9daf3f5ee"])
def test_a_job_of_another_hub_or_of_none_does_not_count(note: str) -> None:
    assert queue.read(changed(admin_comment=note), HUB) == []


def test_jobs_of_the_hub_among_others() -> None:
    listed = (
        f"47                  {HUB}:alice/:64dc4bc9daf3f\n"
        "48                  jupyterhub-0123456789abcdef:bob/:64d\n"
        f"49                  x{HUB}:\n"
        "50                                                \n"
        f"51                  {HUB}:carol/:\n"
    )
    assert queue.numbers(listed, HUB) == [47, 51]


@pytest.mark.parametrize(
    "text", ["", "{}", "[]", '{"jobs": 1}', '{"jobs": [{}]}', changed(job_id="x"), "[" * 99999]
)
def test_what_is_no_list_of_jobs_is_told(text: str) -> None:
    with pytest.raises(QueueError, match="squeue printed no list of jobs"):
        queue.read(text, HUB)


@given(note=st.text(max_size=40), ours=st.booleans())
def test_no_note_breaks_the_list(note: str, ours: bool) -> None:
    assert len(queue.read(changed(admin_comment=f"{HUB}:{note}" if ours else note), HUB)) == ours


@pytest.mark.parametrize(
    ("number", "canceller", "death"),
    [
        (1, None, None),
        (2, 0, Death("administrator")),
        (2, 2001, None),
        (2, None, Death("cancelled")),
        (7, None, Death("status", 3)),
        (8, None, Death("signal", 9)),
    ],
)
def test_how_a_job_has_ended(number: int, canceller: int | None, death: Death | None) -> None:
    assert queue.death(JOBS[number], canceller) == death


@pytest.mark.parametrize(
    ("state", "reason", "cause"),
    [
        ("OUT_OF_MEMORY", "OutOfMemory", "memory"),
        ("TIMEOUT", "TimeLimit", "time"),
        ("DEADLINE", "DeadLine", "time"),
        ("NODE_FAIL", "NodeDown", "node"),
        ("BOOT_FAIL", "None", "node"),
        ("PREEMPTED", "None", "preempted"),
        ("FAILED", "JobLaunchFailure", "node"),
    ],
)
def test_ends_that_slurm_has_words_for(state: str, reason: str, cause: str) -> None:
    (job,) = queue.read(changed(7, job_state=[state], state_reason=reason), HUB)
    death = queue.death(job, None)
    assert death and death.cause == cause
    assert deaths.explain(death, 1 << 30).startswith("Your notebook was ended at ")


def test_a_job_whose_log_cannot_be_opened_is_told_from_a_crash() -> None:
    ended = {"return_code": 0, "signal": {"id": {"set": True, "infinite": False, "number": 53}}}
    (job,) = queue.read(changed(8, state_reason="RaisedSignal:53(Real-time_signal_19)", exit_code=ended), HUB)
    death = queue.death(job, None)
    assert death == Death("home")
    assert "could not write into your home" in deaths.explain(death, 1 << 30)


def test_who_has_cancelled_a_job() -> None:
    assert queue.read_canceller("CANCELLED by 2001\n") == 2001
    assert queue.read_canceller("CANCELLED\n") is None
    assert queue.read_canceller("") is None


def test_the_cpu_time_of_jobs() -> None:
    recorded = (
        "48.extern|cpu=00:00:00,energy=0,fs/disk=4980,gres/gpumem=0,gres/gpuutil=0,mem=1860K,pages=0,vmem=3040K\n"
        "48.batch|cpu=00:01:05,energy=0,fs/disk=36767231,gres/gpumem=0,gres/gpuutil=0,mem=158180K,pages=12\n"
        "47.batch|cpu=1-02:00:01,energy=0\n"
        "46.batch|\n"
    )
    assert queue.read_use(recorded) == {48: 65, 47: 86400 + 7201, 46: 0}


def test_the_latest_job_counts() -> None:
    older = replace(RUNS, number=3)
    assert queue.latest([RUNS, older, WAITS], "alice/") == RUNS
    assert queue.latest([RUNS], "bob/") is None


@given(now=st.floats(0, 4e9), within=st.integers(1, 1000))
def test_a_job_may_ask_soon_after_its_start(now: float, within: int) -> None:
    assert WAITS.may_ask(within, now)
    begun = RUNS.start
    assert begun and RUNS.may_ask(within, now) == (now < begun + within)
    assert not JOBS[1].may_ask(within, begun)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("Resources", "what you chose is in use."),
        ("Priority", "others are before you."),
        ("QOSMaxGRESPerUser", "you have as much as you may have at once (QOSMaxGRESPerUser)."),
        ("QOSMaxJobsPerUserLimit", "you have as much as you may have at once (QOSMaxJobsPerUserLimit)."),
        ("AssocMaxJobsLimit", "you have as much as you may have at once (AssocMaxJobsLimit)."),
        ("AssocGrpGRES", "all users of your account together have what they may have (AssocGrpGRES)."),
        (
            "AssocGrpCpuLimit",
            "all users of your account together have what they may have (AssocGrpCpuLimit).",
        ),
        (
            "QOSGrpGRES",
            "all users with your quality of service together have what they may have (QOSGrpGRES).",
        ),
        (
            "MaxGRESPerAccount",
            "all users of your account together have what they may have (MaxGRESPerAccount).",
        ),
        ("AssocGrpGRESMinutes", "too few hours are left for it (AssocGrpGRESMinutes)."),
        ("QOSGrpCPUMinutesLimit", "too few hours are left for it (QOSGrpCPUMinutesLimit)."),
        (
            "AssocGrpGRESRunMinutes",
            "others have what may be in use at once until some of it ends (AssocGrpGRESRunMinutes).",
        ),
        ("QOSMaxGRESPerJob", "it is more than your account may choose (QOSMaxGRESPerJob)."),
        (
            "AssocMaxWallDurationPerJobLimit",
            "it is more than your account may choose (AssocMaxWallDurationPerJobLimit).",
        ),
        ("QOSUsageThreshold", "your account is at its limit (QOSUsageThreshold)."),
        ("Reservation", "what you chose is reserved."),
        ("ReqNodeNotAvail, May be reserved for other job", "what you chose is reserved."),
        (
            "ReqNodeNotAvail, Reserved for maintenance",
            "the machines that have what you chose are reserved for maintenance.",
        ),
        (
            "ReqNodeNotAvail, UnavailableNodes:gpu1",
            "the machines that have what you chose are out of service.",
        ),
        ("SomethingNew", "Slurm gives a reason (SomethingNew)."),
    ],
)
def test_a_user_reads_why_a_notebook_waits(reason: str, words: str) -> None:
    job = replace(WAITS, reason=reason, start=None)
    assert reasons.of(job) == f"Your notebook waits in the queue of the cluster: {words}"
    assert reasons.state(job).startswith("waits in the queue")


def test_a_user_reads_when_a_notebook_is_expected_to_begin() -> None:
    told = reasons.of(replace(WAITS, start=1795720649.0))
    assert told.endswith("It is expected to begin at 2026-11-26 19:17 UTC.")


def test_what_can_never_begin_has_no_time() -> None:
    told = reasons.of(replace(WAITS, reason="BadConstraints", start=1795720649.0))
    assert told.endswith("no machine has what you chose any more.")


def test_an_administrator_reads_where_a_notebook_runs() -> None:
    assert reasons.state(replace(RUNS, end=1795720649.0)) == "running on gpu1 until 2026-11-26 19:17 UTC"
    assert reasons.of(RUNS) == "Your notebook begins on gpu1."


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (
            "sbatch: error: Batch job submission failed: Invalid account or account/partition combination "
            "specified",
            "your account may not use the cluster; ask its administrator for an account of Slurm.",
        ),
        (
            "sbatch: error: Batch job submission failed: Requested node configuration is not available",
            "no machine of the cluster has so much; choose less.",
        ),
        (
            "sbatch: error: Invalid --gid specification",
            "the first group of your account has no name here; ask its administrator for one.",
        ),
        ("sbatch: error: Batch job submission failed: Something new", "Something new."),
    ],
)
def test_a_user_reads_why_a_notebook_is_not_taken(said: str, words: str) -> None:
    assert reasons.refused(said) == f"The cluster does not take your notebook: {words}"


@pytest.fixture
def slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """Put programs of Slurm in place, each a shell script that also writes down how it was called."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    authority = tmp_path / "ca.crt"
    authority.write_bytes(AUTHORITY)
    monkeypatch.setattr(engine, "AUTHORITY", authority)
    engine.JOBS.forget()
    engine._USE.forget()

    def program(name: str, script: str) -> None:
        path = tmp_path / name
        path.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/{name}.calls\n{script}\n')
        path.chmod(path.stat().st_mode | stat.S_IXUSR)

    return program


def shown(file: Path) -> str:
    """Return a script that prints a file of jobs as squeue does, in JSON or in columns."""
    columns = r's/.*"job_id": \([0-9]*\).*"admin_comment": "\([^"]*\)".*/\1 \2/p'
    return f"case \"$*\" in *--json*) cat {file};; *) sed -n '{columns}' {file};; esac"


def calls(folder: Path, name: str) -> list[str]:
    file = folder / f"{name}.calls"
    return file.read_text().splitlines() if file.exists() else []


def test_the_queue_is_asked_once_for_all_notebooks(slurm: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(RECORDED)
    slurm("squeue", shown(tmp_path / "jobs"))
    assert engine.running() == ["slurm:alice/", "slurm:bob/", "slurm:carol/"]
    assert [engine.is_over(f"slurm:{name}/") for name in ("alice", "bob", "carol", "dora")] == [
        False, False, False, True,
    ]  # fmt: skip
    assert engine.resumable() == engine.running()
    # Once in columns, and once in JSON for the jobs of the hub.
    assert len(calls(tmp_path, "squeue")) == 2


def test_a_controller_that_is_away_is_asked_once_too(
    slurm: Callable[[str, str], None], tmp_path: Path
) -> None:
    slurm("squeue", "echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1")
    for _ in range(5):
        with pytest.raises(EngineError, match="Unable to contact slurm controller"):
            engine.is_over("slurm:alice/")
    assert len(calls(tmp_path, "squeue")) == 1


def test_an_answer_serves_for_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [100.0]
    monkeypatch.setattr(clock, "steady", lambda: now[0])
    answers = iter(range(10))
    shared = client.Shared(lambda: next(answers), 3)
    assert (shared.get(), shared.get()) == (0, 0)
    now[0] += 3
    assert shared.get() == 1
    shared.forget()
    assert shared.get() == 2


def test_a_notebook_is_queued_and_the_queue_is_asked_anew(
    slurm: Callable[[str, str], None], tmp_path: Path
) -> None:
    slurm("squeue", "")
    slurm("scontrol", "")
    slurm("sbatch", f"cat > {tmp_path}/script; echo '77;cluster'")
    order = submission.Order("alice/", 2001, 2001, "/home/alice", 1, 1 << 30, "", 0, 10, "")
    assert engine.is_over("slurm:alice/")
    assert engine.submit(order, "#!/bin/sh\n") == 77
    assert (tmp_path / "script").read_text() == "#!/bin/sh\n"
    assert calls(tmp_path, "scontrol") == [f"update JobId=77 AdminComment={submission.note(order, HUB)}"]
    assert engine.is_over("slurm:alice/")
    assert len(calls(tmp_path, "squeue")) == 2


def test_a_job_that_cannot_be_marked_is_cancelled(slurm: Callable[[str, str], None], tmp_path: Path) -> None:
    slurm("sbatch", "echo 77")
    slurm("scontrol", "echo 'scontrol: error: away' >&2; exit 1")
    slurm("scancel", "")
    order = submission.Order("alice/", 2001, 2001, "/home/alice", 1, 1 << 30, "", 0, 10, "")
    with pytest.raises(EngineError, match="job 77 was cancelled, as it cannot be marked: scontrol"):
        engine.submit(order, "")
    assert calls(tmp_path, "scancel") == ["77"]


@pytest.mark.parametrize("printed", ["\\377", "", "x"])
def test_what_is_no_number_of_a_job_is_told(slurm: Callable[[str, str], None], printed: str) -> None:
    slurm("sbatch", f"printf '{printed}'")
    order = submission.Order("alice/", 2001, 2001, "/home/alice", 1, 1 << 30, "", 0, 10, "")
    with pytest.raises(EngineError, match="sbatch printed no number"):
        engine.submit(order, "")


def test_a_hub_that_does_not_know_itself_knows_no_job(
    slurm: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    slurm("squeue", "")
    monkeypatch.setattr(engine, "AUTHORITY", tmp_path / "lost.crt")
    with pytest.raises(EngineError, match="does not know which jobs are its own"):
        engine.running()


def test_bytes_that_users_write_break_no_list(slurm: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "jobs").write_bytes(RECORDED.encode().replace(b"gpu1", b"g\xff"))
    slurm("squeue", shown(tmp_path / "jobs"))
    assert engine.running() == ["slurm:alice/", "slurm:bob/", "slurm:carol/"]


def test_a_notebook_that_slurm_refuses(slurm: Callable[[str, str], None]) -> None:
    slurm("sbatch", "echo 'sbatch: error: no' >&2; exit 1")
    order = submission.Order("alice/", 2001, 2001, "/home/alice", 1, 1 << 30, "", 0, 10, "")
    with pytest.raises(client.RefusedError, match="sbatch: error: no"):
        engine.submit(order, "")


def test_a_stop_cancels_the_job_of_a_notebook_and_waits_until_it_is_over(
    slurm: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "PAUSE", 0)
    (tmp_path / "jobs").write_text(RECORDED)
    (tmp_path / "after").write_text(changed(47, job_state=["CANCELLED", "COMPLETING"]))
    # It completes at the second look.
    over = f'case "$*" in *--json*) [ ! -e {tmp_path}/go ] || : > {tmp_path}/jobs;; esac'
    slurm("squeue", f"{shown(tmp_path / 'jobs')}\n{over}")
    slurm("scancel", f"cp {tmp_path}/after {tmp_path}/jobs; touch {tmp_path}/go")
    engine.stop("slurm:alice/")
    assert calls(tmp_path, "scancel") == ["47"]
    assert engine.is_over("slurm:alice/")


def test_a_job_that_does_not_end_is_an_error(
    slurm: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine, "ENDS_WITHIN", -1)
    (tmp_path / "jobs").write_text(RECORDED)
    slurm("squeue", shown(tmp_path / "jobs"))
    with pytest.raises(EngineError, match="job 47 still runs after it was cancelled"):
        engine.stop("slurm:alice/")


def test_the_death_of_a_notebook_names_who_cancelled_it(
    slurm: Callable[[str, str], None], tmp_path: Path
) -> None:
    (tmp_path / "jobs").write_text(changed(2))
    slurm("squeue", shown(tmp_path / "jobs"))
    slurm("sacct", "echo CANCELLED by 0")
    assert engine.death("slurm:alice/") == Death("administrator")
    # Without accounting nobody knows.
    slurm("sacct", "exit 1")
    assert engine.death("slurm:alice/") == Death("cancelled")
    assert engine.death("slurm:bob/") is None


def test_the_cpu_time_of_a_notebook(slurm: Callable[[str, str], None], tmp_path: Path) -> None:
    (tmp_path / "jobs").write_text(RECORDED)
    slurm("squeue", shown(tmp_path / "jobs"))
    slurm("sstat", "echo '47.batch|cpu=00:00:09,energy=0'")
    assert engine.cpu_seconds("slurm:alice/") == 9
    assert engine.cpu_seconds("slurm:bob/") is None
    assert engine.cpu_seconds("slurm:nobody/") is None
    assert len(calls(tmp_path, "sstat")) == 1


@pytest.mark.parametrize("script", ["exec sleep 9", "echo 'x.batch|cpu=00:00:09'", "exit 1"])
def test_a_node_that_does_not_tell_the_cpu_time_keeps_nobody_from_looking(
    slurm: Callable[[str, str], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str
) -> None:
    monkeypatch.setattr(engine, "USE_WITHIN", 0.2)
    (tmp_path / "jobs").write_text(RECORDED)
    slurm("squeue", shown(tmp_path / "jobs"))
    slurm("sstat", script)
    assert engine.cpu_seconds("slurm:alice/") is None


@given(owner=st.text(min_size=1).map(lambda text: f"{text.replace('/', '')}/x"))
def test_units_of_notebooks(owner: str) -> None:
    assert engine.owner_of(engine.name_of(owner)) == owner


def test_jobs_have_no_key_of_a_gpu_of_this_machine() -> None:
    assert engine.reach() == {} and engine.processes("slurm:alice/") == frozenset()
    assert isinstance(RUNS, Job)
