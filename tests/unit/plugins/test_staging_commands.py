"""Three jobs or none: what is refused, what Slurm is asked for, and what copies leave behind."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import pwd
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mounts.table import Mount
from ansible_collections.gpufarm.cluster.plugins.module_utils._staging.io import (
    stage_command,
    stages,
    submit_command,
    trees,
)

ME = pwd.getpwuid(os.getuid()).pw_name
JOB = 17
# Programs of Slurm: they note how they are called, and answer as `answers` says.
PROGRAM = """\
#!/bin/sh
printf '%s|' "${{0##*/}}" "$@" | tr '\\n' ' ' >>{calls}
echo >>{calls}
[ -e {answers}/${{0##*/}}-fails ] && {{ cat {answers}/${{0##*/}}-fails >&2; exit 1; }}
case "${{0##*/}} $*" in
  'sbatch --parsable --hold '*) echo 17 ;;
  *job-name=stage-in-17*) echo 18 ;;
  *job-name=stage-out-17*) echo 19 ;;
  squeue*)
    if grep -q '^scontrol|update' {calls}; then cat {answers}/then; else cat {answers}/first; fi ;;
esac
"""


class Site:
    """A login node with a store, an area, and programs that stand for Slurm."""

    def __init__(self, folder: Path) -> None:
        self.store, self.area = folder / "bulk", folder / "users" / ME
        self.stage = self.area / "staging" / str(JOB)
        self.log = self.area / "staging" / f"{JOB}.log"
        self.answers, self._calls = folder / "answers", folder / "calls"
        for path in (self.store, self.area, self.answers, folder / "bin"):
            path.mkdir(parents=True)
        for name in ("sbatch", "squeue", "scontrol", "scancel"):
            program = folder / "bin" / name
            program.write_text(PROGRAM.format(calls=self._calls, answers=self.answers))
            program.chmod(0o755)
        self.answer("first", "(null)|physics")
        self.answer("then", "afterok:18(unfulfilled)|physics")
        (self.store / "data").mkdir()
        (self.store / "data" / "file").write_text("data")

    def answer(self, name: str, text: str) -> None:
        (self.answers / name).write_text(f"{text}\n")

    @property
    def calls(self) -> list[list[str]]:
        if not self._calls.exists():
            return []
        return [line.rstrip("|").split("|") for line in self._calls.read_text().splitlines()]

    def called(self, program: str) -> list[list[str]]:
        return [words[1:] for words in self.calls if words[0] == program]


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    made = Site(tmp_path)
    mount = Mount(str(tmp_path), "xfs", "/dev/sdb1", True, "private")
    for module in (stages, trees, submit_command):
        monkeypatch.setattr(module, "mounted", lambda path: mount)
    monkeypatch.setattr(stages, "SETTINGS", tmp_path / "staging.json")
    settings = {"areas": str(tmp_path / "users"), "stores": {"bulk": str(made.store)}, "partition": "copies"}
    (tmp_path / "staging.json").write_text(json.dumps(settings))
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.delenv("SLURM_JOB_ID", raising=False)
    return made


def submit(*words: str) -> int:
    return submit_command.main(["--input=bulk/data", "--output=result:bulk/result", *words])


def test_three_jobs_wait_for_one_another(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("--gres=gpu:1", "job.sh", "it's") == 0
    job, first, last = site.called("sbatch")
    assert job == ["--parsable", "--hold", "--kill-on-invalid-dep=yes", "--gres=gpu:1", "job.sh", "it's"]
    assert {"--hold", "--account=physics", "--partition=copies", f"--output={site.log}"} < set(first)
    assert {"--dependency=afterok:17", "--kill-on-invalid-dep=yes"} < set(last) and "--hold" not in last
    assert site.called("scontrol") == [
        ["update", "JobId=17", "Dependency=afterok:18"],
        ["release", "18,17"],
    ]
    assert site.called("scancel") == []
    said = capsys.readouterr().out
    assert "squeue --jobs=18,17,19" in said and str(site.log) in said and "gpufarm-stage out 17" in said
    assert (site.stage.stat().st_mode & 0o777, site.stage.parent.stat().st_mode & 0o777) == (0o700, 0o700)


def test_results_of_a_failed_job_go_to_the_store_if_that_is_asked_for(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("--always", "job.sh") == 0
    assert "--dependency=afterany:17" in site.called("sbatch")[2]
    assert "when the job has ended" in capsys.readouterr().out


def test_a_job_waits_for_other_jobs_too(site: Site) -> None:
    site.answer("first", "afterok:5_*(unfulfilled)|physics")
    site.answer("then", "afterok:5_*(unfulfilled),afterok:18(unfulfilled)|physics")
    assert submit("--dependency=afterok:5", "job.sh") == 0
    assert site.called("scontrol")[0] == ["update", "JobId=17", "Dependency=afterok:5,afterok:18"]


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        ("then", "afterok:18(unfulfilled)|a\n(null)|a", "a part of the job would not wait"),
        ("first", "afterok:5?afterok:6|a", "of which one is enough"),
        ("scontrol-fails", "Invalid job id", "scontrol has failed: Invalid job id"),
    ],
)
def test_nothing_is_left_of_a_submission_that_fails(
    site: Site, capsys: pytest.CaptureFixture[str], name: str, text: str, says: str
) -> None:
    site.answer(name, text)
    assert submit("job.sh") == 1
    cancelled = site.called("scancel")[0]
    assert cancelled[0] == "17" and set(cancelled) <= {"17", "18", "19"}
    assert len(cancelled) == len(site.called("sbatch")) and not site.stage.exists()
    assert says in capsys.readouterr().err
    assert ["release", "18,17"] not in site.called("scontrol")


def test_a_job_that_sbatch_refuses_leaves_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.answer("sbatch-fails", "sbatch: error: Invalid account")
    assert submit("job.sh") == 1
    assert "nothing was submitted" in capsys.readouterr().err
    assert len(site.calls) == 1 and not site.stage.exists()


def test_what_an_earlier_job_of_the_number_has_left_stays(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.stage.mkdir(parents=True)
    (site.stage / "result").write_text("precious")
    assert submit("job.sh") == 1
    assert "is left of an earlier job" in capsys.readouterr().err
    assert (site.stage / "result").read_text() == "precious" and site.called("scancel") == [["17"]]


def refused(site: Site, capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert submit_command.main([*words, "job.sh"]) == 1
    assert site.calls == []
    said = capsys.readouterr()
    assert said.out == "" and said.err.count("\n") == 1 and said.err.endswith(".\n")
    return said.err


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--input=bulk/gone"], "bulk/gone cannot be read: No such file"),
        (["--input=other/data"], "is in no store"),
        (["--output=r:bulk/data"], "bulk/data is there already; give another place, or --replace"),
        (["--output=r:bulk/gone/r"], "bulk/gone/r cannot be reached: No such file"),
    ],
)
def test_what_cannot_be_staged_is_refused_before_any_job(
    site: Site, capsys: pytest.CaptureFixture[str], words: list[str], says: str
) -> None:
    assert says in refused(site, capsys, *words)


def test_an_input_that_is_too_large_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    with (site.store / "large").open("w") as stream:
        os.truncate(stream.fileno(), 1 << 43)
    assert "has room for" in refused(site, capsys, "--input=bulk/large")


def test_an_input_beyond_the_quota_is_refused(
    site: Site, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    program = tmp_path / "bin" / "quota"
    program.write_text(f"#!/bin/sh\necho '{tmp_path} 100 0 100 0 1 0 0 0'\n")
    program.chmod(0o755)
    assert "has room for 0.000 GB" in refused(site, capsys, "--input=bulk/data")
    program.write_text(f"#!/bin/sh\necho '{tmp_path} 0 0 0 0 1 0 2 0'\n")
    assert "you may have 1 more" in refused(site, capsys, "--input=bulk/data")
    program.write_text(f"#!/bin/sh\necho '{tmp_path} 0 0 0 0 1 0 3 0'\n")
    assert submit("job.sh") == 0


def test_a_link_of_the_site_leads_to_the_areas(site: Site, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "users")
    settings = json.loads(stages.SETTINGS.read_text())
    stages.SETTINGS.write_text(json.dumps({**settings, "areas": str(tmp_path / "link")}))
    assert submit("job.sh") == stage("in", "17") == 0
    assert (site.stage / "data" / "file").read_text() == "data"


def test_a_user_without_an_area_is_refused(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    site.area.rmdir()
    site.area.symlink_to(site.store)
    assert f"{ME} has no area" in refused(site, capsys, "--input=bulk/data")


def test_options_in_the_environment_are_for_the_job_only(
    site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SBATCH_GRES", "gpu:8")
    program = tmp_path / "bin" / "sbatch"
    program.write_text(
        program.read_text() + f'echo "$1 $2 ${{SBATCH_GRES:-none}}" >>{tmp_path}/environment\n'
    )
    assert submit("job.sh") == 0
    assert [line.split()[-1] for line in (tmp_path / "environment").read_text().splitlines()] == [
        "gpu:8", "none", "none",
    ]  # fmt: skip


def test_help_names_the_stores(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit_command.main(["--help"]) == 0
    said = capsys.readouterr().out
    assert f"bulk ({site.store})" in said and "{" not in said


def stage(*words: str) -> int:
    return stage_command.main(list(words))


def test_data_come_in_and_results_go_out(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("job.sh") == 0
    assert stage("in", "17") == 0
    assert (site.stage / "data" / "file").read_text() == "data"
    (site.stage / "result").write_text("answer")
    assert "stage-in: bulk/data is there as data" in capsys.readouterr().out
    assert stage("out", "17") == 0
    assert (site.store / "result").read_text() == "answer" and not site.stage.exists()
    assert "stage-out: result is in bulk/result" in capsys.readouterr().out
    assert sorted(path.name for path in site.store.iterdir()) == ["data", "result"]


def test_jobs_with_data_are_listed_with_the_last_line_of_their_log(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("job.sh") == 0
    for number, log in (("5", "begun\nde\x1b[2Jad\n"), ("120", "")):
        (site.stage.parent / number).mkdir()
        (site.stage.parent / f"{number}.log").write_text(log)
    (site.stage.parent / "4.log").write_text("over\n")
    capsys.readouterr()
    assert stage() == 0
    assert [line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines()] == [
        ["5", "de\\x1b[2Jad"],
        ["17", "nothing was copied so far"],
        ["120", "nothing was copied so far"],
    ]


def test_a_second_run_of_either_changes_nothing(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("job.sh") == stage("in", "17") == 0
    inode = (site.stage / "data" / "file").stat().st_ino
    assert stage("in", "17") == 0 and (site.stage / "data" / "file").stat().st_ino == inode
    (site.stage / "result").write_text("answer")
    assert stage("out", "17") == 0
    assert stage("out", "17") == 1
    assert "its data are in the store" in capsys.readouterr().err


def test_nothing_is_lost_of_results_that_cannot_go_out(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit("--output=more:bulk/more", "job.sh") == 0
    (site.stage / "result").write_text("answer")
    (site.store / "result").write_text("theirs")
    assert stage("out", "17") == 1
    said = capsys.readouterr().err
    assert "result is there already" in said and "the output more cannot be read: No such file" in said
    assert (site.stage / "result").read_text() == "answer" and (site.store / "result").read_text() == "theirs"
    (site.stage / "more").symlink_to("/etc/passwd")
    (site.store / "result").unlink()
    assert stage("out", "17") == 1
    assert (site.store / "result").read_text() == "answer" and not (site.store / "more").exists()
    (site.stage / "more").unlink()
    (site.stage / "more").mkdir()
    assert stage("out", "17") == 0 and (site.store / "more").is_dir() and not site.stage.exists()


def test_outputs_take_a_place_if_that_was_asked_for(site: Site) -> None:
    (site.store / "result").write_text("old")
    assert submit("--replace", "job.sh") == 0
    (site.stage / "result").write_text("new")
    assert stage("out", "17") == 0 and (site.store / "result").read_text() == "new"


@pytest.mark.parametrize(("way", "job"), [("in", "JobId=17"), ("out", "JobId=19")])
def test_the_reason_of_a_failure_is_where_users_look(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], way: str, job: str
) -> None:
    assert submit("job.sh") == 0
    (site.store / "data" / "file").unlink()
    (site.store / "data").rmdir()
    monkeypatch.setenv("SLURM_JOB_ID", "19")
    assert stage(way, "17") == 1
    words: Any = site.called("scontrol")[-1]
    assert words[:2] == ["update", job] and words[2].startswith(f"Comment=stage-{way} failed: ")
    why = f"stage-{way} failed: "
    assert "cannot be read: No such file" in words[2] and why in capsys.readouterr().err


def test_two_copies_of_a_stage_do_not_meet(site: Site, capsys: pytest.CaptureFixture[str]) -> None:
    assert submit("job.sh") == 0
    with stages.Stage(site.stage.parent, JOB).alone():
        assert stage("in", "17") == 1
    assert "another process copies" in capsys.readouterr().err
    assert stage("in", "17") == 0


def test_no_file_is_open_in_the_folder_that_is_removed(site: Site, tmp_path: Path) -> None:
    """NFS keeps such a file, and rm fails for its folder."""
    assert submit("job.sh") == 0
    (site.stage / "result").write_text("answer")
    program = tmp_path / "bin" / "rm"
    program.write_text(
        f"#!/bin/sh\nls -l /proc/$PPID/fd | grep -F '{site.stage}/' && exit 1\nexec /bin/rm \"$@\"\n"
    )
    program.chmod(0o755)
    assert stage("out", "17") == 0 and not site.stage.exists()


def test_a_copy_that_comes_late_finds_no_stage_and_makes_none(
    site: Site, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stage("out", "17") == 1 and not site.log.exists()
    assert submit("job.sh") == 0
    (site.stage / "result").write_text("answer")
    lock = stages.fcntl.flock

    def late(*words: Any) -> None:
        monkeypatch.setattr(stages.fcntl, "flock", lock)
        assert stage("out", "17") == 0
        lock(*words)

    monkeypatch.setattr(stages.fcntl, "flock", late)
    assert stage("out", "17") == 1
    assert capsys.readouterr().err.count("its data are in the store") == 2 and not site.stage.exists()


@pytest.mark.parametrize("number", ["../17", "-1", "17;id", "\u0661", ""])
def test_only_numbers_are_numbers(site: Site, number: str) -> None:
    with pytest.raises(SystemExit):
        stage("in", number)


def test_the_machine_is_checked(site: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert stage("check") == 0
    site.area.rmdir()
    site.area.parent.rmdir()
    assert stage("check") == 1 and "there is no folder" in capsys.readouterr().err
    (tmp_path / "staging.json").unlink()
    assert stage("check") == 1 and "settings of this machine cannot be read" in capsys.readouterr().err
