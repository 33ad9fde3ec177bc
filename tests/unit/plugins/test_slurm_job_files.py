"""Jobs are remembered in files of root; folders and output are looked at with the rights of their owner."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import json
import os
import pwd
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io import job
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io.job import (
    Memories,
    Slurm,
    account,
    check_folder,
    end_of,
    make_home,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.job import Job, JobProblem, Memory
from ansible_collections.gpufarm.cluster.plugins.modules import slurm_job, slurm_job_console

from lab.patience import PATIENCE

JOB = Job("train", "true", "", "", 1, 64, 0, "", 60, {"A": "b"})
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root takes the rights of others")


def user(home: Path) -> pwd.struct_passwd:
    return pwd.struct_passwd(("nobody", "x", 65534, 65534, "", str(home), "/bin/sh"))


@pytest.fixture(name="home")
def _home(tmp_path: Path) -> Path:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    os.chown(home, 65534, 65534)
    # Processes of tests that run together have a folder of their own in that of the run.
    base = Path(tempfile.gettempdir())
    for above in (tmp_path, *tmp_path.parents):
        if base in above.parents:
            above.chmod(0o755)
    return home


def test_runs_for_a_user_wait_for_one_another_and_for_nobody_else(tmp_path: Path) -> None:
    """A job that does not end, or a home that does not answer, holds up its owner alone."""

    def is_free(owner: str) -> bool:
        with Memories(owner, tmp_path, tmp_path).lock.open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            return True

    with Memories("ada", tmp_path, tmp_path).alone():
        assert is_free("bob") and not is_free("ada")
    assert is_free("ada")


def test_a_job_is_remembered_until_it_is_forgotten(tmp_path: Path) -> None:
    memories = Memories("ada", tmp_path / "gpufarm" / "jobs", tmp_path)
    assert memories.read("train") is None and not memories.forget("train")
    with memories.alone():
        memories.write(Memory(JOB, "0123456789abcdef", 17))
    path = tmp_path / "gpufarm" / "jobs" / "ada" / "train.json"
    assert memories.read("train") == Memory(JOB, "0123456789abcdef", 17)
    assert [oct(one.stat().st_mode & 0o777) for one in (path, path.parent, path.parent.parent)] == [
        "0o600",
        "0o700",
        "0o700",
    ]
    assert Memories("bob", tmp_path / "gpufarm" / "jobs").read("train") is None
    assert memories.forget("train") and not path.parent.parent.exists()


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"job": {"name": "x"}, "nonce": "", "number": 1}', "{"])
def test_a_broken_memory_is_none_and_can_be_forgotten(tmp_path: Path, text: str) -> None:
    memories = Memories("ada", tmp_path)
    (tmp_path / "ada").mkdir()
    (tmp_path / "ada" / "train.json").write_text(text)
    assert memories.read("train") is None
    assert memories.knows("train") and memories.forget("train")


@pytest.mark.parametrize(("uid", "refused"), [(999, True), (1000, False), (59999, False), (60000, True)])
def test_numbers_tell_accounts_of_people(uid: int, refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    found = pwd.struct_passwd(("ada", "x", uid, uid, "", "/home/ada", "/bin/sh"))
    monkeypatch.setattr(pwd, "getpwnam", lambda _name: found)
    if refused:
        with pytest.raises(JobProblem, match="account of the system"):
            account("ada", "farm")
    else:
        assert account("ada", "farm") == found


def test_accounts_of_the_system_have_no_jobs() -> None:
    for name in ("root", "daemon", "nobody"):
        with pytest.raises(JobProblem, match="account of the system on farm"):
            account(name, "farm")
    with pytest.raises(JobProblem, match="farm has no account eve"):
        account("eve", "farm")


@needs_root
def test_a_folder_is_made_with_the_rights_of_the_owner(home: Path) -> None:
    wanted = JOB.__class__(**{**JOB.__dict__, "folder": "work/one"})
    check_folder(user(home), wanted, make=False)
    assert not (home / "work").exists()
    check_folder(user(home), wanted, make=True)
    assert (home / "work" / "one").stat().st_uid == 65534
    check_folder(user(home), wanted, make=True)


def home_command(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    command = folder / "gpufarm-home"
    command.write_text(f"#!/bin/sh\n{script}\n")
    command.chmod(0o755)
    monkeypatch.setattr(job, "HOME_COMMAND", str(command))


def test_an_owner_who_has_never_logged_in_gets_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home_command(tmp_path, monkeypatch, f'mkdir "{tmp_path}/$1"')
    make_home(user(tmp_path / "nobody"))
    assert (tmp_path / "nobody").is_dir()


def test_why_an_owner_cannot_have_a_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home_command(tmp_path, monkeypatch, "echo /srv/home is not mounted.; exit 1")
    with pytest.raises(JobProblem, match=r"nobody cannot have a home: /srv/home is not mounted\."):
        make_home(user(tmp_path / "nobody"))


@needs_root
@pytest.mark.parametrize("where", ["away", "away/new"])
def test_a_link_out_of_the_home_is_refused(home: Path, where: str) -> None:
    other = home.parent / "other"
    other.mkdir(mode=0o777)
    other.chmod(0o777)
    (home / "away").symlink_to(other)
    with pytest.raises(JobProblem, match="which is not in the home of nobody"):
        check_folder(user(home), JOB.__class__(**{**JOB.__dict__, "folder": where}), make=True)
    assert not [*other.iterdir()]


@needs_root
def test_a_folder_that_the_owner_cannot_use_is_refused(home: Path) -> None:
    (home / "file").write_text("")
    with pytest.raises(JobProblem, match=r"cannot use the folder .*/file \(File exists\)"):
        check_folder(user(home), JOB.__class__(**{**JOB.__dict__, "folder": "file"}), make=True)
    with pytest.raises(JobProblem, match="cannot use the folder"):
        check_folder(user(home / "gone"), JOB, make=True)


@needs_root
def test_output_is_read_with_the_rights_of_the_owner(home: Path) -> None:
    out = home / "train-1.out"
    out.write_bytes(b"a" * 10 + b"\x1b[31mred\xff\n")
    os.chown(out, 65534, 65534)
    assert end_of(user(home), str(out), 1024) == ("aaaaaaaaaared\ufffd\n", False)
    assert end_of(user(home), str(out), 2) == ("\ufffd\n", True)
    secret = home.parent / "secret"
    secret.write_text("secret")
    secret.chmod(0o600)
    with pytest.raises(OSError):
        end_of(user(home), str(secret), 1024)
    link, pipe = home / "link", home / "pipe"
    link.symlink_to(out)
    os.mkfifo(pipe)
    os.chown(pipe, 65534, 65534)
    for path in (link, pipe, home):
        with pytest.raises(OSError):
            end_of(user(home), str(path), 1024)


@needs_root
def test_a_home_that_hangs_is_not_waited_for(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user may mount something there that never answers, and other requests wait for this one."""
    out = home / "train-1.out"
    out.write_text("")
    monkeypatch.setattr(job, "FILE_SECONDS", 0.2)
    for place, name in ((os.path, "commonpath"), (job, "readable")):
        monkeypatch.setattr(place, name, lambda *_words: time.sleep(PATIENCE))
    with pytest.raises(JobProblem, match=r"cannot use the folder .* \(it does not answer within 0 seconds\)"):
        check_folder(user(home), JOB, make=True)
    with pytest.raises(OSError, match="does not answer"):
        end_of(user(home), str(out), 1024)


@needs_root
def test_the_rights_of_root_stay(home: Path) -> None:
    before = (os.getresuid(), os.getresgid(), os.getgroups(), os.umask(0o077))
    check_folder(user(home), JOB, make=True)
    assert (os.getresuid(), os.getresgid(), os.getgroups(), os.umask(before[3])) == (*before[:3], 0o077)


class Cluster:
    """Slurm that refuses to end jobs, and tells a queue."""

    def __init__(self, *queue: str) -> None:
        self.queue = "".join(f"{line}\n" for line in queue)

    def run_command(self, words: list[str], **_options: object) -> tuple[int, str, str]:
        if "scancel" in words:
            return 1, "", "scancel: error: Kill job error on job id 7: Invalid job id specified"
        return 0, self.queue, ""


@pytest.mark.parametrize("queue", [(), ("7|COMPLETING|train|",), ("7|COMPLETED|train|", "8|RUNNING|other|")])
def test_a_job_that_has_just_ended_is_no_mistake(tmp_path: Path, queue: tuple[str, ...]) -> None:
    Slurm(cast(Any, Cluster(*queue)), user(tmp_path), "login").cancel([7], waiting=False)


def test_a_job_that_cannot_be_ended_is_told(tmp_path: Path) -> None:
    cluster = Slurm(cast(Any, Cluster("7|RUNNING|train|")), user(tmp_path), "login")
    with pytest.raises(JobProblem, match="Invalid job id specified"):
        cluster.cancel([7], waiting=False)


class Quiet:
    """Slurm without jobs."""

    user, machine, everyone = user(Path("/home/nobody")), "login", False

    def __init__(self, *, there: bool = True) -> None:
        self.there = there

    def is_there(self) -> bool:
        return self.there

    def refuse_its_own(self) -> None:
        """Refuse nobody."""

    def queue(self) -> list[object]:
        if not self.there:
            raise JobProblem("env: squeue: No such file or directory")
        return []

    def cancel(self, numbers: list[int], *, waiting: bool) -> None:
        assert not numbers


def test_a_job_of_another_deployment_is_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurm_job, "check_folder", lambda *_words, **_more: None)
    memories, said = Memories("nobody", tmp_path / "memory" / "jobs", tmp_path), []
    memories.write(Memory(JOB, "n", 7, "deployment one"))

    def run(work: Any, **params: Any) -> dict[str, Any]:
        asked = {"owner": "nobody", "job": JOB.__dict__, "made_for": "", "take_over": False, **params}
        module = SimpleNamespace(params=asked, check_mode=False, warn=said.append)
        return work(module, cast(Any, Quiet()), memories)

    for other in ("deployment two", ""):
        with pytest.raises(JobProblem, match="job train of nobody is there and was not made"):
            run(slurm_job.present, made_for=other)
        assert not run(slurm_job.absent, made_for=other)["changed"]
        assert memories.read("train") == Memory(JOB, "n", 7, "deployment one")
    assert said == ["The job train of nobody was not made for this deployment; it stays."] * 2
    assert run(slurm_job.absent, made_for="deployment two", take_over=True)["changed"]
    assert not memories.knows("train")


def test_a_job_is_forgotten_when_the_cluster_has_gone(tmp_path: Path) -> None:
    """Its owner could never remove the deployment."""
    memories, said = Memories("nobody", tmp_path / "memory" / "jobs", tmp_path), []
    asked = {"owner": "nobody", "job": JOB.__dict__, "made_for": "", "take_over": False}
    module = SimpleNamespace(params=asked, check_mode=False, warn=said.append)
    # A machine that has submitted nothing may be the wrong one.
    with pytest.raises(JobProblem, match="squeue"):
        slurm_job.absent(cast(Any, module), cast(Any, Quiet(there=False)), memories)
    memories.write(Memory(JOB, "n", 7, ""))
    assert slurm_job.absent(cast(Any, module), cast(Any, Quiet(there=False)), memories)["changed"]
    assert not memories.knows("train")
    assert said[0].startswith("login has Slurm no more, so the job train of nobody is forgotten.")


class Farm:
    """Slurm with jobs of several users, as root asks and ends them."""

    def __init__(self, *queue: str) -> None:
        self.queue = {line.partition("|")[0]: line for line in queue}
        self.said: list[str] = []

    def run_command(self, words: list[str], **_options: object) -> tuple[int, str, str]:
        assert words.count("--user=root") == 1 and not [word for word in words if "ada" in word]
        if "scancel" in words:
            for number in words[words.index("scancel") + 1 :]:
                del self.queue[number]
        return 0, "".join(f"{line}\n" for line in self.queue.values()), ""


def removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, farm: Farm, **params: Any) -> dict[str, Any]:
    """Have a job removed whose owner has no account any more."""
    memories = Memories("gone-ada", tmp_path / "memory" / "jobs", tmp_path)
    monkeypatch.setattr(slurm_job, "Memories", lambda _owner: memories)
    monkeypatch.setattr(Slurm, "is_there", lambda _self: True)
    asked = {"owner": "gone-ada", "job": {"name": "train"}, "made_for": "", "take_over": False, **params}
    module = SimpleNamespace(
        params={"state": "absent", **asked},
        check_mode=False,
        warn=farm.said.append,
        run_command=farm.run_command,
    )
    return slurm_job.keep(cast(Any, module))


def test_a_job_of_a_removed_account_is_ended_by_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    memories = Memories("gone-ada", tmp_path / "memory" / "jobs", tmp_path)
    nonce, other = "0123456789abcdef", "fedcba9876543210"
    mine = f"7|RUNNING|train|gpufarm:train:{nonce}:{nonce}"
    # Another user has a job of this name, and one had this number before Slurm was set up anew.
    farm = Farm(mine, "8|RUNNING|train|", f"9|RUNNING|train|gpufarm:train:{nonce}:{other}")
    memories.write(Memory(JOB, nonce, 8))
    assert removed(tmp_path, monkeypatch, farm)["changed"]
    assert [*farm.queue] == ["8", "9"] and not memories.knows("train")
    assert len(farm.said) == 1 and farm.said[0].startswith("gone-ada is no account of a person on ")
    assert not removed(tmp_path, monkeypatch, farm)["changed"] and len(farm.said) == 1
    memories.write(Memory(JOB, nonce, 8))
    memories.folder.joinpath("train.json").write_text("{")
    assert removed(tmp_path, monkeypatch, farm)["changed"]
    assert [*farm.queue] == ["8", "9"] and not memories.knows("train")
    with pytest.raises(JobProblem, match="has no account gone-ada"):
        removed(tmp_path, monkeypatch, farm, state="present", job=JOB.__dict__)


def test_a_job_of_a_removed_account_and_another_deployment_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = Memories("gone-ada", tmp_path / "memory" / "jobs", tmp_path)
    memories.write(Memory(JOB, "0123456789abcdef", 7, "deployment one"))
    farm = Farm("7|RUNNING|train|gpufarm:train:0123456789abcdef:0123456789abcdef")
    assert not removed(tmp_path, monkeypatch, farm, made_for="deployment two")["changed"]
    assert [*farm.queue] == ["7"] and memories.knows("train")
    assert farm.said == ["The job train of gone-ada was not made for this deployment; it stays."]


def test_what_a_job_of_another_deployment_prints_is_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memories = Memories("nobody", tmp_path / "memory" / "jobs", tmp_path)
    memories.write(Memory(JOB, "n", 7, "deployment one"))
    monkeypatch.setattr(slurm_job_console, "account", lambda *_words: user(tmp_path))
    monkeypatch.setattr(slurm_job_console, "Memories", lambda _owner: memories)

    def console(made_for: str) -> dict[str, Any]:
        asked = {"owner": "nobody", "name": "train", "kib": 64, "made_for": made_for}
        module = SimpleNamespace(params=asked, run_command=Cluster("7|PENDING|train|").run_command)
        return slurm_job_console.gather(cast(Any, module))

    for other in ("deployment two", ""):
        with pytest.raises(JobProblem, match="no job train of nobody for this deployment"):
            console(other)
    assert [(task["id"], task["own"]) for task in console("deployment one")["tasks"]] == [("7", True)]


def test_a_memory_that_names_no_deployment_is_of_nobody(tmp_path: Path) -> None:
    memories = Memories("nobody", tmp_path / "memory" / "jobs", tmp_path)
    memories.write(Memory(JOB, "n", 7))
    [file] = (tmp_path / "memory").rglob("train.json")
    known = json.loads(file.read_text())
    del known["made_for"]
    file.write_text(json.dumps(known))
    assert memories.read("train") == Memory(JOB, "n", 7, "")
