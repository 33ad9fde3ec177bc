"""The controller answers as its settings say, and does not start with a state that it cannot read."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest

STATE = "/var/lib/slurm/slurmctld"


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "ctl1":
        pytest.skip("another machine")


def test_it_knows_its_partition_and_its_node(host):
    assert host.check_output("sinfo --noheader --format='%%P %%l %%N'") == "cpu* 1:00:00 ctl1"


def test_the_settings_hold(host):
    config = host.check_output("scontrol show config")
    assert "= debug\n" in config
    assert "enable_configless" in config


def test_a_job_that_no_partition_gives_so_much_time_is_refused(host):
    refused = host.run("sbatch --time=61 --wrap true")
    assert refused.rc != 0 and "time limit" in refused.stderr


def test_nobody_else_reads_the_key(host):
    key = host.file("/etc/munge/munge.key")
    assert (key.user, key.mode) == ("munge", 0o400)
    assert host.file("/etc/slurm/secrets").mode == 0o700
    assert host.check_output("munge --no-input | unmunge --no-output; echo $?") == "0"


@pytest.mark.parametrize(
    ("spoil", "mend"),
    [
        (f"chown root: {STATE}/node_state", f"chown slurm: {STATE}/node_state"),
        (
            f"mv {STATE} {STATE}.away && install -d -o slurm {STATE}",
            f"rmdir {STATE} && mv {STATE}.away {STATE}",
        ),
    ],
    ids=["a file of another account", "a folder that is not mounted"],
)
def test_it_does_not_start_with_a_state_that_it_cannot_read(host, spoil, mend):
    host.check_output("systemctl stop slurmctld")
    host.check_output(spoil)
    refused = host.run("systemctl start slurmctld")
    told = host.check_output("journalctl --unit=slurmctld --since=-1min --output=cat")
    host.check_output("systemctl reset-failed slurmctld")
    host.check_output(mend)
    assert refused.rc != 0 and f"slurm cannot read all of {STATE}" in told
    host.check_output("systemctl start slurmctld")
    assert host.service("slurmctld").is_running
