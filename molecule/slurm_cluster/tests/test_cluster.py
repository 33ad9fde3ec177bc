"""The controller has the nodes as they are, and jobs get their own GPUs and slices only."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re

import pytest

# Opens the device nodes of all slices. "No such device" tells that it may, as the bench has no driver.
OPEN = (
    "for device in /dev/nvidia-caps/nvidia-cap*; do"
    " error=$( (exec 3<$device) 2>&1 ); case $error in *'not permitted'*) ;; *) echo $device;; esac; done"
)
# The rights to partition GPUs, and to watch them.
OF_NO_SLICE = {"/dev/nvidia-caps/nvidia-cap1", "/dev/nvidia-caps/nvidia-cap2"}


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "ctl":
        pytest.skip("another machine")


def job(host, gres: str, command: str, user: str = "alice") -> str:
    """Return what a job of a user on a GPU or slice writes."""
    done = host.run("runuser -u %s -- timeout 60 srun --chdir=/ --gres=gpu:%s sh -c %s", user, gres, command)
    assert done.rc == 0, done.stderr
    return done.stdout.strip()


def test_the_nodes_are_idle_with_their_gpus_and_slices(host):
    lines = host.check_output("sinfo --noheader --Node --partition=gpu --format='%%N %%T %%G'").splitlines()
    found = {line.split()[0]: line.split()[1:] for line in lines}
    assert found["gpu1"][0] == found["gpu2"][0] == "idle"
    assert set(re.findall(r"gpu:([\w.]+:\d+)", found["gpu1"][1])) == {"1g.10gb:2", "2g.20gb:1", "3g.40gb:1"}
    assert re.findall(r"gpu:([\w.]+:\d+)", found["gpu2"][1]) == ["a30:2"]


def test_a_job_gets_a_slice_by_its_profile(host):
    one = job(host, "1g.10gb:1", "echo $CUDA_VISIBLE_DEVICES; hostname")
    assert re.fullmatch(r"MIG-[0-9a-f-]{36}\ngpu1", one)
    two = job(host, "1g.10gb:2", "echo $CUDA_VISIBLE_DEVICES").split(",")
    assert len(set(two)) == 2


@pytest.mark.parametrize("count", [1, 2])
def test_a_job_opens_the_devices_of_its_slices_only(host, count):
    opened = set(job(host, f"1g.10gb:{count}", OPEN).split()) - OF_NO_SLICE
    assert len(opened) == 2 * count  # of its GPU instance and of its compute instance


def test_a_job_gets_a_whole_gpu_by_its_model(host):
    assert job(host, "a30:1", "hostname; echo $CUDA_VISIBLE_DEVICES") == "gpu2\n0"


def test_a_profile_that_no_node_has_is_refused(host):
    done = host.run("timeout 60 srun --gres=gpu:7g.80gb:1 true")
    assert done.rc != 0 and "Requested node configuration is not available" in done.stderr


def test_partitions_have_their_nodes_and_limits(host):
    found = host.check_output("sinfo --noheader --format='%%P %%l %%D'").splitlines()
    assert sorted(found) == ["gpu* 1:00:00 2", "small infinite 1"]


def test_secrets_are_closed(host):
    key = host.file("/etc/munge/munge.key")
    assert (key.user, key.mode) == ("munge", 0o400)
    assert host.file("/etc/slurm/secrets").mode == 0o700


def test_a_user_sees_no_job_of_others(host):
    queued = "--parsable --chdir=/ --output=/dev/null --begin=now+1hour --wrap=true"
    number = host.check_output(f"runuser -u alice -- sbatch {queued}")
    assert number in host.check_output("runuser -u alice -- squeue --noheader --format=%i").split()
    assert host.check_output("runuser -u bob -- squeue --noheader --format=%i") == ""
    assert host.run("runuser -u bob -- scontrol --oneliner show job %s", number).stdout.strip() == ""
    host.check_output("scancel %s", number)


def test_no_user_gets_more_than_the_limit(host):
    done = host.run("runuser -u alice -- timeout 60 srun --chdir=/ --gres=gpu:1g.10gb:2 true")
    assert done.rc == 0, done.stderr
    done = host.run("runuser -u bob -- srun --immediate=5 --chdir=/ --gres=gpu:a30:2 true")
    assert done.rc != 0  # the account course has one GPU
