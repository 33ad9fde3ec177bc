"""Jobs of two users on one node have folders, sockets and processes of their own, which go with them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

Eventually = Callable[[Callable[[], bool]], None]
BASE = "/var/lib/gpufarm/slurm-jobs"
FOLDERS = ["/tmp", "/var/tmp", "/dev/shm"]
ARGUMENT, VARIABLE = "s3cret-argument", "s3cret-variable"
# Listens at a socket, and has secrets in its arguments and variables.
SERVER = (
    "import socket, time; s = socket.socket(socket.AF_UNIX); s.bind('/tmp/socket'); s.listen();"
    " time.sleep(3600)"
)
JOB = f"""\
for folder in {" ".join(FOLDERS)}; do echo of-ada >$folder/file; chmod 777 $folder $folder/file; done
SECRET={VARIABLE} exec python3 -c "{SERVER}" {ARGUMENT}
"""


@pytest.fixture(autouse=True, scope="module")
def _only_there(host: Host) -> None:
    if host.check_output("hostname") != "one":
        pytest.skip("another machine")


def run(host: Host, user: str, script: str, options: str = "--nodelist=one") -> CommandResult:
    """Run a job, or a step of one, to its end."""
    return host.run(f"timeout 60 runuser -u {user} -- srun --chdir=/ {options} bash -c %s", script)


def queued(host: Host) -> str:
    return host.check_output("squeue --noheader --format=%%i")


def state(host: Host) -> str:
    """Return the state of the node and the last reason for a drain."""
    return host.check_output("sinfo --noheader --nodes=one --format='%%T %%E'")


def runs_jobs(host: Host) -> bool:
    return state(host).split()[0] in ("idle", "mixed", "allocated")


@pytest.fixture(scope="module")
def job(host: Host, eventually: Eventually, _only_there: None) -> Iterator[str]:
    """Return the number of a job of ada that runs, with files in all folders, a socket and a process."""
    options = "--parsable --chdir=/ --output=/dev/null --nodelist=one"
    number = host.check_output(f"runuser -u ada -- sbatch {options} --wrap=%s", JOB)
    eventually(lambda: host.run("pgrep --uid ada --full %s", f" {ARGUMENT}").rc == 0)
    eventually(lambda: run(host, "ada", "test -S /tmp/socket", f"--jobid={number} --overlap").rc == 0)
    yield number
    host.check_output("scancel %s", number)
    eventually(lambda: queued(host) == "")


@pytest.fixture
def process(host: Host, job: str) -> str:
    """Return the number of the process of the job."""
    return host.check_output("pgrep --uid ada --full --newest %s", f"python3 .* {ARGUMENT}")


@pytest.mark.parametrize("folder", FOLDERS)
def test_files_are_seen_by_steps_of_the_job_alone(host: Host, job: str, folder: str) -> None:
    read = f"cat {folder}/file"
    assert run(host, "ada", read, f"--jobid={job} --overlap").stdout == "of-ada\n"
    for other in ("ada", "bob"):
        assert run(host, other, f"ls -A {folder}; {read}").stdout == ""
    assert not host.file(f"{folder}/file").exists
    # Slurm has one folder for /tmp, one for /var/tmp and none for /dev/shm.
    outside = f"find / -xdev -name file -path '*{folder}*' -user ada 2>/dev/null"
    assert host.run("runuser -u bob -- sh -c %s", outside).stdout == ""


def test_a_socket_of_another_job_cannot_be_reached(host: Host, job: str) -> None:
    done = run(
        host, "bob", "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"/tmp/socket\")'"
    )
    assert "FileNotFoundError" in done.stderr


def test_processes_of_others_are_not_there(host: Host, job: str, process: str) -> None:
    listed = run(host, "bob", "stat --format=%u /proc/[0-9]* 2>/dev/null | sort --unique").stdout
    assert listed.split() == ["2002"]
    seen = run(
        host, "bob", "cat /proc/[0-9]*/{cmdline,environ,comm,status} 2>/dev/null | tr '\\0' ' '"
    ).stdout
    assert "bash" in seen and ARGUMENT not in seen and VARIABLE not in seen and "slurmctld" not in seen
    for name in ("cmdline", "environ", "root/tmp/file", "cwd", "ns/mnt", "fd", "maps", "status"):
        done = run(host, "bob", f"ls /proc/{process}/{name}; cat /proc/{process}/{name}")
        assert done.stdout == "" and "No such file or directory" in done.stderr
    own = run(host, "ada", f"cat /proc/{process}/environ", f"--jobid={job} --overlap")
    assert VARIABLE in own.stdout


@pytest.mark.parametrize(
    "attack",
    [
        "unshare --map-root-user --mount umount /tmp",
        "unshare --map-root-user --mount umount /dev/shm",
        "unshare --map-root-user --mount umount /proc",
        "unshare --map-root-user --mount mount -t proc proc /mnt",
        "unshare --map-root-user --mount mount -o remount,hidepid=0 /proc",
        "unshare --map-root-user --mount mount --bind / /mnt",
        "unshare --map-root-user --mount sh -c 'mount --rbind / /mnt && umount --lazy /mnt/tmp'",
        "nsenter --mount=/proc/1/ns/mnt true",
        "nsenter --mount=/proc/PID/ns/mnt true",
        f"nsenter --mount={BASE}/one/JOB/.ns true",
        f"ls {BASE}",
        f"ls {BASE}/one/JOB",
        f"ln -s /etc {BASE}/one/9999",
        f"mv {BASE} /var/lib/gpufarm/other",
        f"umount {BASE}/one/JOB",
    ],
)
def test_nobody_gets_to_what_is_behind(host: Host, job: str, process: str, attack: str) -> None:
    attack = attack.replace("PID", process).replace("JOB", job)
    assert run(host, "bob", attack).rc != 0
    # The same outside of jobs, but for what has nothing of jobs there.
    if BASE in attack:
        assert host.run("runuser -u bob -- %s", attack).rc != 0


def test_the_folder_of_all_jobs_is_for_root_only(host: Host) -> None:
    assert host.check_output("stat --format='%%a %%U' %s", BASE) == "700 root"


def test_services_of_the_machine_see_all_processes(host: Host, job: str) -> None:
    assert "hidepid" not in host.check_output("findmnt --noheadings --output OPTIONS /proc")
    assert host.run("runuser -u bob -- pgrep --uid ada --full %s", ARGUMENT).rc == 0


def test_a_job_sees_what_the_machine_has_below_proc(host: Host, job: str) -> None:
    read = "cat /proc/driver/nvidia/gpus/*/information /proc/devices"
    assert run(host, "bob", read).stdout == host.run(read).stdout != ""


def test_a_job_sees_file_systems_that_are_mounted_later(host: Host, job: str) -> None:
    host.check_output("mount -t tmpfs -o mode=755 tmpfs /mnt && touch /mnt/later")
    try:
        assert run(host, "ada", "ls /mnt", f"--jobid={job} --overlap").stdout == "later\n"
    finally:
        host.check_output("umount /mnt")
    assert run(host, "ada", "ls /mnt", f"--jobid={job} --overlap").stdout == ""


def test_a_job_keeps_its_folders_when_daemons_are_restarted(
    host: Host, job: str, eventually: Eventually
) -> None:
    host.check_output("scontrol reconfigure")
    host.check_output("systemctl restart slurmd slurmctld")
    read = "cat /tmp/file /dev/shm/file; ls -d /proc/1"
    eventually(lambda: "of-ada" in run(host, "ada", read, f"--jobid={job} --overlap").stdout)
    done = run(host, "ada", read, f"--jobid={job} --overlap")
    assert done.stdout == "of-ada\nof-ada\n" and "/proc/1" in done.stderr


def test_nothing_is_left_of_a_job_that_has_ended(host: Host, job: str, eventually: Eventually) -> None:
    """Links are removed and not followed, and no depth of folders is too much."""
    host.check_output("install -d -m 777 /root/kept && touch /root/kept/file")
    fill = textwrap.dedent("""
        ln -s /root/kept /tmp/link; ln -s /root/kept/file /var/tmp/link
        mkfifo /tmp/fifo; touch $'/tmp/a\\n b'
        python3 -c 'import os; os.chdir("/tmp"); [(os.mkdir("d"), os.chdir("d")) for _ in range(5000)]'
        chmod 0 /var/tmp
    """)
    assert run(host, "bob", fill).rc == 0
    eventually(lambda: host.check_output(f"ls -A {BASE}/one") == job)
    assert host.file("/root/kept/file").exists
    host.check_output("rm -r /root/kept")


def test_nothing_is_left_of_a_job_whose_keeper_was_killed(host: Host, eventually: Eventually) -> None:
    number = host.check_output(
        "runuser -u bob -- sbatch --parsable --chdir=/ --output=/dev/null --nodelist=one --wrap=%s",
        "echo x >/tmp/x; exec sleep 3571",
    )
    eventually(lambda: host.file(f"{BASE}/one/{number}/.{number}/_tmp/x").exists)
    keeper = host.check_output(f"pgrep --full '^slurmstepd: .{number}.extern'")
    # With the process that the keeper waits for, which nobody would end otherwise.
    host.check_output(f"kill -KILL {keeper} $(pgrep --parent {keeper})")
    host.check_output("scancel %s", number)
    eventually(lambda: not host.file(f"{BASE}/one/{number}").exists)
    assert f"{BASE}/one/{number}" not in host.file("/proc/self/mountinfo").content_string
    assert runs_jobs(host)


def test_slurmd_removes_what_a_loss_of_power_has_left(host: Host, eventually: Eventually) -> None:
    host.check_output(f"install -d -m 700 {BASE}/one/9999/.9999/_tmp && touch {BASE}/one/9999/.9999/_tmp/x")
    host.check_output("systemctl restart slurmd")
    eventually(lambda: not host.file(f"{BASE}/one/9999").exists)


def test_a_node_is_drained_while_the_disk_of_jobs_is_full(host: Host, eventually: Eventually) -> None:
    host.check_output(f"mount -t tmpfs -o size=64M tmpfs {BASE}")
    try:
        eventually(lambda: "drain" in state(host))
        assert f"gpufarm: the disk of {BASE}, which has /tmp of jobs, is full" in state(host)
    finally:
        host.check_output(f"umount {BASE}")
    eventually(lambda: runs_jobs(host))


def test_a_job_does_not_begin_without_processes_of_its_own(
    host: Host, job: str, eventually: Eventually
) -> None:
    program = "/opt/gpufarm/slurm/namespace"
    host.check_output(
        f"mv {program} /root/namespace && printf '#!/bin/sh\\nexit 1\\n' >{program} && chmod +x {program}"
    )
    try:
        assert run(host, "bob", "echo began").stdout == ""
    finally:
        host.check_output(f"mv /root/namespace {program}")
    eventually(lambda: queued(host) == job)
    eventually(lambda: run(host, "bob", "echo began").stdout == "began\n")
