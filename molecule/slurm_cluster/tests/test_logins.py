"""Users get in to a node only while they have a job there, and nothing that they start leaves the job."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from testinfra.backend.base import CommandResult
from testinfra.host import Host

Eventually = Callable[[Callable[[], bool]], None]
SSH = (
    "timeout 60 ssh -i /root/.ssh/id_ed25519 -o BatchMode=yes -o StrictHostKeyChecking=no"
    " -o UserKnownHostsFile=/dev/null"
)
# As in test_cluster.py.
OPEN = (
    "for device in /dev/nvidia-caps/nvidia-cap*; do"
    " error=$( (exec 3<$device) 2>&1 ); case $error in *'not permitted'*) ;; *) echo $device;; esac; done"
)
OF_NO_SLICE = {"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"}
GROUP = "tail -n 1 /proc/self/cgroup"


@pytest.fixture(autouse=True)
def _only_there(host: Host) -> None:
    if host.check_output("hostname") != "gpu1":
        pytest.skip("another machine")


def login(host: Host, user: str, command: str, options: str = "") -> CommandResult:
    """Log in to the node and run a command there."""
    # testinfra takes ssh's own exit status for that of its connection to the host.
    return host.run(f"{SSH} {options} {user}@localhost %s || exit 1", command)


def queue(host: Host, user: str) -> str:
    """Return the number of a job on a slice of the node."""
    return host.check_output(
        "runuser -u %s -- sbatch --parsable --chdir=/ --output=/dev/null --nodelist=gpu1 --gres=gpu:1g.10gb:1"
        " --wrap='exec sleep 3600'",
        user,
    )


def jobs(host: Host, *options: str) -> list[str] | None:
    """Return the numbers of jobs; None if the controller, which is busy, gives no answer in time."""
    answer = host.run(f"squeue --noheader --format=%i {' '.join(options)}")
    return answer.stdout.split() if answer.rc == 0 else None


@pytest.fixture(scope="module")
def _all_end(host: Host, eventually: Eventually) -> Iterator[None]:
    yield
    eventually(lambda: host.run("scancel --user=alice").rc == 0 and jobs(host) == [])


@pytest.fixture
def job(host: Host, eventually: Eventually, _all_end: None) -> str:
    """A job of alice that runs on a slice of the node; that of the test before, if it is still there."""
    found: list[str] = []

    def runs() -> bool:
        found[:] = jobs(host, "--states=running", "--user=alice") or []
        return bool(found)

    if not runs() and jobs(host, "--states=pending,configuring,running", "--user=alice") == []:
        queue(host, "alice")
    eventually(runs)
    return found[0]


@pytest.mark.parametrize(
    ("command", "options"), [("id", ""), ("", "-N"), ("sftp", "-s"), ("", "-N -R 7777:localhost:22")]
)
def test_a_user_without_a_job_is_refused(host: Host, job: str, command: str, options: str) -> None:
    done = login(host, "bob", command, options)
    assert done.rc == 1 and "you have no active jobs on this node" in done.stderr


def test_a_user_with_a_job_opens_the_slice_of_the_job_only(host: Host, job: str) -> None:
    assert f"/job_{job}/" in login(host, "alice", GROUP).stdout
    opened = {*login(host, "alice", OPEN).stdout.split()} - OF_NO_SLICE
    assert len(opened) == 2  # of its GPU instance and of its compute instance


def test_a_user_with_a_job_has_the_files_and_processes_of_the_job_only(host: Host, job: str) -> None:
    assert login(host, "alice", "echo mine >/tmp/of-alice && ls -A /tmp").stdout == "of-alice\n"
    seen = "cat /tmp/of-alice; stat --format=%u /proc/[0-9]* 2>/dev/null | sort --unique"
    assert login(host, "alice", seen).stdout.split() == ["mine", "2001"]
    assert not host.file("/tmp/of-alice").exists
    for user in ("root", "carol"):
        assert login(host, user, "test -e /tmp/of-alice || ls -d /proc/1").stdout == "/proc/1\n"


def test_what_a_login_leaves_behind_ends_with_the_job(host: Host, job: str, eventually: Eventually) -> None:
    left = "setsid nohup sh -c 'sleep 3579; sleep 3579' >/dev/null 2>&1 </dev/null &"
    assert login(host, "alice", left).rc == 0
    assert host.run("pgrep --uid alice --full 'sleep 3579'").rc == 0
    host.check_output("scancel %s", job)
    eventually(lambda: host.run("pgrep --uid alice").rc != 0)
    assert login(host, "alice", "id").rc == 1


@pytest.mark.parametrize("command", [f"su - alice -c '{GROUP}'", f"su bob -c '{GROUP}'"])
def test_other_programs_that_ask_pam_stay_in_the_job(host: Host, job: str, command: str) -> None:
    done = login(host, "alice", f"echo of-the-test | {command}")
    assert f"/job_{job}/" in done.stdout, done.stderr


@pytest.mark.parametrize(
    "command",
    [
        f"XDG_RUNTIME_DIR=/run/user/2001 systemd-run --user --pipe --wait {GROUP}",
        f"systemd-run --pipe --wait {GROUP}",
        f"systemd-run --uid=alice --pipe --wait {GROUP}",
    ],
)
@pytest.mark.parametrize("lingers", [False, True])
def test_no_manager_starts_programs_elsewhere(host: Host, job: str, command: str, lingers: bool) -> None:
    if lingers:  # where polkit is installed, a user may have that without an administrator
        host.check_output("loginctl enable-linger alice")
    try:
        done = login(host, "alice", command)
        assert done.rc != 0 and "/" not in done.stdout
        assert host.run("systemctl is-active user@2001.service").rc != 0
        assert not host.file("/sys/fs/cgroup/user.slice/user-2001.slice/user@2001.service").exists
    finally:
        host.run("loginctl disable-linger alice")


def test_cron_starts_nothing_of_users(host: Host, job: str, eventually: Eventually) -> None:
    for user in ("alice", "root"):
        host.check_output(f"echo '@reboot touch /tmp/cron-of-{user}' | crontab -u {user} -")
    # cron takes that for a boot.
    host.check_output("rm /run/crond.reboot && systemctl restart cron")
    eventually(lambda: host.file("/tmp/cron-of-root").exists)
    eventually(lambda: "Authentication failure" in host.check_output("journalctl --unit cron --lines 20"))
    assert not host.file("/tmp/cron-of-alice").exists
    for user in ("alice", "root"):
        host.check_output(f"crontab -u {user} -r")


@pytest.mark.parametrize("user", ["root", "carol"])
def test_administrators_get_in_and_have_a_session(host: Host, user: str) -> None:
    assert "/session-" in login(host, user, GROUP).stdout


@pytest.mark.parametrize("gone", ["slurmd", "pam_slurm_adopt"])
def test_administrators_get_in_whatever_is_broken(host: Host, job: str, gone: str) -> None:
    module = "/usr/lib/x86_64-linux-gnu/security/pam_slurm_adopt.so"
    away, back = {
        "slurmd": ("systemctl stop slurmd", "systemctl start slurmd"),
        "pam_slurm_adopt": (f"mv {module} /root", f"mv /root/pam_slurm_adopt.so {module}"),
    }[gone]
    host.check_output(away)
    try:
        assert [login(host, user, "true").rc for user in ("root", "carol", "bob", "alice")] == [0, 0, 1, 1]
    finally:
        host.check_output(back)
    assert login(host, "alice", "true").rc == 0


def test_root_becomes_any_user(host: Host) -> None:
    """As administrators and Ansible do."""
    assert host.check_output("su - bob -c 'id -un' </dev/null") == "bob"
    assert host.check_output("sudo -u bob id -un") == "bob"
