# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that slurmd runs: slices of jobs are told to mig, bad nodes drained, and jobs kept apart."""

from __future__ import annotations

import fcntl
import os
import stat
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._health import report
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Finding
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.holders import Holder, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.lock import locked

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = ROOT / "roles" / "slurm_node" / "files"
JOB = {"SLURM_JOB_ID": "18", "SLURM_JOB_USER": "alice", "SLURM_JOB_UID": "2001", "SLURMD_NODENAME": "n1"}
Run = Callable[..., None]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Start a program with variables, on the files of a folder instead of those of the machine."""

    def start_program(name: str, **variables: str) -> subprocess.Popen[str]:
        text = (PROGRAMS / name).read_text()
        for folder in ("/run/gpufarm", "/sys/fs/cgroup", "/proc/driver", "/var/lib/gpufarm", "/etc/gpufarm"):
            text = text.replace(folder, f"{tmp_path}{folder}")
        path = f"{tmp_path / 'bin'}:/usr/bin:/bin"
        return subprocess.Popen(
            ["sh", "-c", text, name], env={"PATH": path, **variables}, stderr=subprocess.PIPE, text=True
        )

    return start_program


@pytest.fixture
def run(start: Start) -> Run:
    """Run a program with variables to its end."""

    def run_program(name: str, **variables: str) -> None:
        with start(name, **variables) as process:
            assert process.wait() == 0, process.stderr

    return run_program


def holders(folder: Path) -> list[Holder]:
    return read(folder / "run" / "gpufarm" / "holders.d")


def test_a_job_holds_its_slices_from_prolog_to_epilog(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "sys/fs/cgroup/system.slice/n1_slurmstepd.scope").mkdir(parents=True)
    run("prolog", **JOB, CUDA_VISIBLE_DEVICES="MIG-1,MIG-2")
    group = "system.slice/n1_slurmstepd.scope/job_18"
    assert holders(tmp_path) == [Holder("job 18 of alice", ("slurmd.service",), ("MIG-1", "MIG-2"), group)]
    folder = tmp_path / "run" / "gpufarm" / "holders.d"
    assert [path.name for path in folder.iterdir()] == ["slurm-18.json"]
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "slurm-18.json").stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o755
    run("epilog", **JOB)
    assert holders(tmp_path) == []


def test_the_first_jobs_of_a_node_start_at_the_same_moment(run: Run, tmp_path: Path) -> None:
    faster = tmp_path / "bin" / "mkdir"
    faster.parent.mkdir()
    faster.write_text('#!/bin/sh\nfor folder; do :; done\n/bin/mkdir -p "$folder"\nexec /bin/mkdir "$@"\n')
    faster.chmod(0o755)
    (tmp_path / "run").mkdir()
    run("prolog", **JOB, CUDA_VISIBLE_DEVICES="MIG-1")
    assert [holder.who for holder in holders(tmp_path)] == ["job 18 of alice"]


def test_a_whole_gpu_is_held_by_its_uuid(run: Run, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    for minor, uuid in enumerate(("GPU-a", "GPU-b")):
        folder = tmp_path / "proc/driver/nvidia/gpus" / f"0000:0{minor}:00.0"
        folder.mkdir(parents=True)
        text = (
            f"Model: \t\t A30\nGPU UUID: \t {uuid}\nBus Location: \t 0000:01:00.0\nDevice Minor: \t {minor}\n"
        )
        (folder / "information").write_text(text)
    run("prolog", **JOB, CUDA_VISIBLE_DEVICES="1,0")
    (holder,) = holders(tmp_path)
    assert holder.slices == ("GPU-b", "GPU-a")
    assert holder.cgroup == ""


def test_a_job_without_gpus_holds_nothing(run: Run, tmp_path: Path) -> None:
    run("prolog", **JOB)
    run("epilog", **JOB)
    assert holders(tmp_path) == []


@pytest.mark.parametrize("name", ['a"b', "DOMAIN\\alice", "a\nb", ""])
def test_a_name_that_json_writes_otherwise_is_a_number(run: Run, tmp_path: Path, name: str) -> None:
    (tmp_path / "run").mkdir()
    run("prolog", **{**JOB, "SLURM_JOB_USER": name}, CUDA_VISIBLE_DEVICES="MIG-1")
    (holder,) = holders(tmp_path)
    assert holder.who == "job 18 of user 2001"


def waits(lock: Path) -> bool:
    """Return whether a process waits for a lock (proc_locks(5))."""
    inode = f":{lock.stat().st_ino} "
    return any("->" in line and inode in line for line in Path("/proc/locks").read_text().splitlines())


@pytest.mark.parametrize("made", [False, True], ids=["the same slices", "other slices"])
def test_no_job_starts_on_slices_that_a_change_of_partitions_takes(
    start: Start, tmp_path: Path, made: bool
) -> None:
    instances = tmp_path / "proc/driver/nvidia/capabilities/gpu0/mig"
    (instances / "gi1" / "ci0").mkdir(parents=True)
    runs = tmp_path / "run" / "gpufarm"
    with locked(runs):
        process = start("prolog", **JOB, CUDA_VISIBLE_DEVICES="MIG-1")
        while not waits(runs / "mig.lock"):
            time.sleep(0.01)
        assert holders(tmp_path) == []
        if made:
            (instances / "gi2" / "ci0").mkdir(parents=True)
    with process:
        assert (process.wait() != 0) == made
        assert process.stderr and ("partitions of the GPUs have changed" in process.stderr.read()) == made
    assert len(holders(tmp_path)) == int(not made)


def test_jobs_that_start_together_do_not_wait_for_one_another(run: Run, tmp_path: Path) -> None:
    runs = tmp_path / "run" / "gpufarm"
    with locked(runs):
        pass
    with (runs / "mig.lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH)
        run("prolog", **JOB, CUDA_VISIBLE_DEVICES="MIG-1")
    assert len(holders(tmp_path)) == 1


@pytest.mark.parametrize("above", ["", "n1"], ids=["one slurmd", "several"])
def test_what_slurm_has_left_of_a_job_goes(run: Run, tmp_path: Path, above: str) -> None:
    folder = tmp_path / "var/lib/gpufarm/slurm-jobs" / above
    for number in ("18", "180"):
        (folder / number / ".ns").mkdir(parents=True)
        (folder / number / "file").touch()
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (folder / "18" / "link").symlink_to(kept)
    run("epilog", **JOB)
    assert [path.name for path in folder.iterdir()] == ["180"]
    assert (kept / "file").exists()


AS_ROOT = pytest.mark.skipif(os.getuid() != 0, reason="mounts need root")


def namespace(folder: Path, *plant: str) -> str:
    """Return a script that runs the program in a mount namespace, after a line that plants mounts."""
    text = (PROGRAMS / "namespace").read_text().replace("/var/lib/gpufarm", f"{folder}/var/lib/gpufarm")
    program = folder / "namespace"
    folder.mkdir(exist_ok=True)
    program.write_text(text)
    program.chmod(0o755)
    (folder / "var/lib/gpufarm/slurm-jobs").mkdir(parents=True)
    return "\n".join(["set -e", *plant, f"{program} inside"])


def inside(script: str) -> str:
    command = ["unshare", "--mount", "sh", "-c", script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


# A number that no other program of this machine has.
AS_USER = "setpriv --reuid 61717 --regid 61717 --clear-groups"


@AS_ROOT
def test_a_job_sees_the_processes_of_its_user_only(tmp_path: Path) -> None:
    seen = inside(f"{namespace(tmp_path)}\n{AS_USER} sh -c 'echo /proc/[0-9]*; ls -d /proc/self'").split()
    assert seen[-1] == "/proc/self" and len(seen) == 2
    assert "hidepid" not in Path("/proc/mounts").read_text()
    assert f"/proc/{os.getpid()}" in inside(f"{namespace(tmp_path / 'root')}\necho /proc/[0-9]*").split()


@AS_ROOT
def test_mounts_below_proc_are_there_again(tmp_path: Path) -> None:
    """Also where users have chosen names of mounts that look like others, and a mounted file was removed."""
    planted = tmp_path / "planted"
    planted.write_text("planted")
    removed = tmp_path / "removed"
    removed.touch()
    other = tmp_path / "a - proc * b"
    other.mkdir()
    script = namespace(
        tmp_path,
        f"mount --bind {planted} /proc/devices",
        f"mount --bind {removed} /proc/version",
        f"rm {removed}",
        f"mount -t tmpfs 'ada@host:/proc/x' '{other}'",
        f"mkdir '{other}/*' && mount -t tmpfs autofs '{other}/*'",
    )
    read = f"{script}\ncat /proc/devices; stat --file-system --format=%T /proc/version"
    assert inside(read) == "plantedproc\n"


def test_a_job_does_not_begin_in_a_namespace_that_is_not_there(tmp_path: Path) -> None:
    text = namespace(tmp_path).splitlines()[-1].split()[0]
    variables = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_NS": f"{tmp_path}/none", "SLURM_JOB_ID": "18"}
    logger = tmp_path / "logger"
    logger.write_text(f"#!/bin/sh\ncat >{tmp_path}/told\n")
    logger.chmod(0o755)
    assert subprocess.run([text], env=variables, check=False).returncode == 1
    assert (tmp_path / "told").read_text().startswith("job 18 cannot begin: nsenter: ")


class Cluster:
    """A fake of scontrol, which remembers how it was called and tells a reason."""

    def __init__(self, folder: Path) -> None:
        self.calls, self.reason = folder / "calls", folder / "reason"
        (folder / "bin").mkdir()
        program = folder / "bin" / "scontrol"
        program.write_text(
            f'#!/bin/sh\nif [ "$1" = show ]; then cat {self.reason}; else echo "$@" >>{self.calls}; fi\n'
        )
        program.chmod(0o755)

    def told(self) -> list[str]:
        """Return the calls since the last time."""
        found = self.calls.read_text().splitlines() if self.calls.exists() else []
        self.calls.unlink(missing_ok=True)
        return found


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def verdict(folder: Path, **gpus: str) -> None:
    """Write what the health checks found of GPUs, by the end of their UUIDs."""
    findings = [
        Finding("ecc_uncorrected", status, f'3 errors "since" boot of {name}', gpu=f"GPU-{name}")
        for name, status in gpus.items()
    ]
    path = folder / "run" / "gpufarm" / "health"
    path.mkdir(parents=True, exist_ok=True)
    (path / "verdicts.json").write_text(report.verdicts(findings, 0.0))


def test_a_node_is_drained_once_and_resumed_when_all_gpus_are_well(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    run("health", **JOB)
    verdict(tmp_path, a="ok", b="warning")
    run("health", **JOB)
    assert cluster.told() == []
    verdict(tmp_path, a="warning", b="critical", c="ok")
    run("health", **JOB)
    run("health", **JOB)
    (call,) = cluster.told()
    assert call.startswith("update nodename=n1 state=drain reason=gpufarm: ecc_uncorrected: 3 errors")
    assert call.endswith("boot of b")
    cluster.reason.write_text("   Reason=gpufarm: ecc_uncorrected [root@2026]\n")
    verdict(tmp_path, a="ok", b="ok")
    run("health", **JOB)
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=resume"]


def test_a_node_is_drained_while_a_gpu_is_cordoned(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    cordons = tmp_path / "var/lib/gpufarm/cordons"
    cordons.mkdir(parents=True)
    (cordons / "GPU-a.json").write_text("{")
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=drain reason=gpufarm: GPU-a is cordoned"]
    (cordons / "GPU-a.json").unlink()
    cluster.reason.write_text("   Reason=gpufarm: GPU-a is cordoned [root@2026]\n")
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=resume"]


@pytest.mark.parametrize(
    ("left", "full"),
    [("102400   4%", False), ("102399   4%", True), ("102400 100%", True), ("999999   -", False)],
)
def test_a_node_is_drained_while_jobs_can_write_nothing(
    run: Run, cluster: Cluster, tmp_path: Path, left: str, full: bool
) -> None:
    folder = tmp_path / "var/lib/gpufarm/slurm-jobs"
    folder.mkdir(parents=True)
    df = tmp_path / "bin" / "df"
    df.write_text(f"#!/bin/sh\necho ' Avail IUse%'\necho '{left}'\n")
    df.chmod(0o755)
    run("health", **JOB)
    told = f"the disk of {folder}, which has /tmp of jobs, is full"
    assert cluster.told() == ([f"update nodename=n1 state=drain reason=gpufarm: {told}"] if full else [])


def test_a_node_is_drained_while_a_check_complains(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    checks = tmp_path / "etc/gpufarm/slurm/health.d"
    checks.mkdir(parents=True)
    for name, text, mode in (
        ("a-well", "true", 0o755),
        ("b-fails", "exit 3", 0o755),
        ("c-no-program", "echo never", 0o644),
        ("d-complains", 'echo "eth1 has no link"; echo more', 0o755),
    ):
        (checks / name).write_text(f"#!/bin/sh\n{text}\n")
        (checks / name).chmod(mode)
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=drain reason=gpufarm: eth1 has no link"]
    (checks / "d-complains").unlink()
    cluster.reason.write_text("   Reason=gpufarm: eth1 has no link [root@2026]\n")
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=resume"]


def test_a_check_that_does_not_end_is_killed(run: Run, cluster: Cluster, tmp_path: Path) -> None:
    checks = tmp_path / "etc/gpufarm/slurm/health.d"
    checks.mkdir(parents=True)
    for name, text in (
        ("a-stubborn", "trap '' TERM; while :; do sleep 1; done"),
        ("b-complains", "echo no link"),
    ):
        (checks / name).write_text(f"#!/bin/sh\n{text}\n")
        (checks / name).chmod(0o755)
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=drain reason=gpufarm: no link"]


def test_a_node_that_an_administrator_has_drained_stays_drained(
    run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    verdict(tmp_path, a="critical")
    run("health", **JOB)
    assert len(cluster.told()) == 1
    cluster.reason.write_text("   Reason=fan is loud [root@2026]\n")
    verdict(tmp_path, a="ok")
    run("health", **JOB)
    assert cluster.told() == []


def test_a_node_is_resumed_by_a_later_check_if_the_controller_does_not_answer(
    start: Start, run: Run, cluster: Cluster, tmp_path: Path
) -> None:
    verdict(tmp_path, a="critical")
    run("health", **JOB)
    cluster.told()
    verdict(tmp_path, a="ok")
    # As long as it has no reason to tell, the fake fails.
    with start("health", **JOB) as process:
        assert process.wait() != 0
    assert cluster.told() == []
    cluster.reason.write_text("   Reason=gpufarm: ecc_uncorrected [root@2026]\n")
    run("health", **JOB)
    assert cluster.told() == ["update nodename=n1 state=resume"]


@pytest.mark.parametrize(
    ("told", "status", "output", "complaint"),
    [
        ("idle gpu:1g.10gb:7(S:0) none", 0, "gpu:1g.10gb:7(S:0)\n", ""),
        ("drained* gpu:v100:4 gpufarm: GPU 0 is cordoned\nmixed gpu:v100:4 none", 0, "gpu:v100:4\n", ""),
        ("inval gpu:v100:4 gres/gpu count too low", 1, "", "inval gpu:v100:4 gres/gpu count too low\n"),
        ("down* (null) Not responding", 1, "", "down* (null) Not responding\n"),
        ("", 1, "", "unknown\n"),
    ],
)
def test_a_node_asks_whether_the_controller_can_use_it(
    tmp_path: Path, told: str, status: int, output: str, complaint: str
) -> None:
    # A name that is like a state must not stand in for it.
    (tmp_path / "down-for-good").touch()
    done = asked(tmp_path, f"[ \"$3\" = --nodes=n1 ] && printf '%s' '{told}'")
    assert (done.returncode, done.stdout, done.stderr) == (status, output, complaint)


def test_a_node_whose_controller_does_not_answer_says_what_slurm_says(tmp_path: Path) -> None:
    done = asked(tmp_path, "echo 'Unable to contact slurm controller' >&2; exit 1")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "Unable to contact slurm controller\n")


def asked(folder: Path, sinfo: str) -> subprocess.CompletedProcess[str]:
    """Ask a controller that says what a program does."""
    program = folder / "bin" / "sinfo"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{sinfo}\n")
    program.chmod(0o755)
    return subprocess.run(
        ["sh", PROGRAMS / "registered", "n1"],
        env={"PATH": f"{program.parent}:/usr/bin:/bin"},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize(
    ("squeue", "code", "told"),
    [
        ("exit 1", 1, ""),
        ("true", 0, ""),
        ("echo 7; echo 8", 0, "show job --details --oneliner 7\nshow job --details --oneliner 8\n"),
    ],
)
def test_a_controller_that_does_not_answer_has_not_said_that_no_job_runs(
    tmp_path: Path, squeue: str, code: int, told: str
) -> None:
    tasks = yaml.safe_load((ROOT / "playbooks" / "tasks" / "slurm_drain.yml").read_text())
    [task] = [task for task in tasks if task["name"] == "List the jobs on the node"]
    words = task["ansible.builtin.command"]["argv"]
    for name, text in (("squeue", squeue), ("scontrol", 'echo "$@"')):
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([*words[:3], "gpu1"], env=path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, told)
