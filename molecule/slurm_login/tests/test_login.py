"""Users of the login node run jobs on the node of the cluster."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable

import pytest
from testinfra.host import Host


@pytest.fixture(autouse=True)
def _only_there(host: Host) -> None:
    if host.check_output("hostname") != "login":
        pytest.skip("another machine")


def test_a_job_runs_on_the_node_as_its_user(host: Host) -> None:
    done = host.run("runuser -u alice -- timeout 60 srun --chdir=/ sh -c 'hostname; id -un'")
    assert done.stdout.split() == ["n1", "alice"], done.stderr


def test_a_batch_job_is_queued_and_ends(host: Host, eventually: Callable[[Callable[[], bool]], None]) -> None:
    number = host.check_output(
        "runuser -u alice -- sbatch --parsable --chdir=/ --output=/dev/null --wrap=true"
    )
    state = f"runuser -u alice -- scontrol --oneliner show job {number}"
    eventually(lambda: "JobState=COMPLETED" in host.check_output(state))


@pytest.mark.parametrize("shell", ["bash -lc", "env SSH_CLIENT='::1 1 22' bash -c"])
@pytest.mark.parametrize("export", ["ALL", "NONE"])
def test_a_batch_script_loads_modules(host: Host, shell: str, export: str) -> None:
    """Sent from a login, and from the command of an SSH session, which bash knows by that variable."""
    script = "#!/bin/bash\nset -eu\nmodule load answer\necho $ANSWER on $(hostname)\n"
    send = f"sbatch --wait --chdir=/ --export={export} --output=/home/alice/answer-%j.out --parsable"
    clean = "env -i HOME=/home/alice USER=alice LOGNAME=alice PATH=/usr/bin:/bin"
    number = host.check_output(f"printf %s | runuser -u alice -- {clean} {shell} %s", script, send)
    told = f"/home/alice/answer-{number}.out"
    read = f"runuser -u alice -- srun --chdir=/ sh -c 'cat {told}; rm {told}'"
    assert host.check_output(read) == "42 on n1"


def test_no_job_runs_here(host: Host) -> None:
    assert host.check_output("sinfo --noheader --Node --format=%%N").split() == ["n1"]
    assert not host.exists("slurmd") and not host.exists("slurmctld")


def test_users_read_no_secret(host: Host) -> None:
    for path in ("/etc/munge/munge.key", "/etc/slurm/secrets/munge.key"):
        assert host.run("runuser -u alice -- cat %s", path).rc != 0


def test_it_starts_at_boot(host: Host) -> None:
    assert host.service("sackd").is_running and host.service("sackd").is_enabled
    assert not host.file("/etc/slurm/slurm.conf").exists
