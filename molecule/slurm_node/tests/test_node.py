"""Nodes run jobs with and without GPUs, and are drained while a GPU is bad."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest

GPU = "/proc/driver/nvidia/gpus/*/information"
VERDICTS = "/run/gpufarm/health/verdicts.json"


@pytest.fixture(autouse=True)
def _only_there(host):
    if host.check_output("hostname") != "one":
        pytest.skip("another machine")


def state(host) -> str:
    """Return the state of the node with a GPU, and the reason for it."""
    found = host.check_output("sinfo --noheader --Node --nodes=one --format='%%T %%E'")
    # Slurm keeps the reason of a former drain.
    return found if found.startswith("drain") else found.split()[0]


def told(host, status: str, reason: str = "") -> None:
    """Have the health checks say this of the GPU, in their form."""
    text = json.dumps({"time": 0, "gpus": {"GPU-1": {"status": status, "reason": reason}}}, indent=1)
    host.check_output("install -d /run/gpufarm/health && printf %%s %s >%s", text, VERDICTS)


def test_both_nodes_run_jobs(host, eventually):
    eventually(lambda: host.check_output("sinfo --noheader --format='%%T %%D'") == "idle 2")
    for name in ("one", "cpu"):
        assert host.check_output("timeout 60 srun --chdir=/ --nodelist=%s hostname", name) == name


def test_a_job_without_a_gpu_opens_none(host):
    done = host.run("timeout 60 srun --chdir=/ --nodelist=one head --bytes=1 /dev/nvidia0")
    assert "Operation not permitted" in done.stderr
    assert not host.run("ls /run/gpufarm/holders.d/*.json").stdout


def test_a_job_holds_its_gpu_as_long_as_it_runs(host):
    held = "sh -c 'cat /run/gpufarm/holders.d/slurm-$SLURM_JOB_ID.json'"
    entry = json.loads(host.check_output(f"timeout 60 srun --chdir=/ --gres=gpu:a30:1 {held}"))
    (holder,) = entry["holders"]
    assert entry["service"] == "slurmd.service"
    assert holder["who"].endswith(" of root")
    assert holder["slices"] == host.check_output(f"sed -n 's/^GPU UUID:[[:space:]]*//p' {GPU}").split()
    assert holder["cgroup"].startswith("system.slice/one_slurmstepd.scope/job_")


@pytest.fixture
def metadata(host):
    """Serve at the address at which clouds tell their machines about themselves."""
    host.check_output("ip address replace 169.254.169.254/32 dev lo")
    serve = "python3 -m http.server --bind 169.254.169.254 --directory /usr/share/common-licenses 80"
    host.check_output(f"systemd-run --quiet --unit=metadata {serve}")
    yield "timeout 60 {} python3 -c 'import urllib.request as r; r.urlopen(\"http://169.254.169.254/GPL-3\")'"
    host.check_output("systemctl stop metadata")
    host.check_output("ip address delete 169.254.169.254/32 dev lo")


def test_jobs_do_not_reach_the_metadata_service_of_a_cloud_and_services_do(host, metadata, eventually):
    job = metadata.format("runuser -u ada -- srun --chdir=/ --nodelist=one")
    eventually(lambda: host.run(metadata.format("")).rc == 0)
    assert "Connection refused" in host.run(job).stderr
    host.check_output("systemctl restart nftables")
    eventually(lambda: host.run("nft list table inet gpufarm_slurm").rc == 0)
    assert "Connection refused" in host.run(job).stderr
    assert host.run(metadata.format("")).rc == 0


def test_a_node_is_drained_while_a_gpu_is_critical(host, eventually):
    told(host, "critical", 'ecc_uncorrected: 3 errors "since" boot')
    eventually(lambda: state(host).startswith("drained gpufarm: ecc_uncorrected"))
    told(host, "ok")
    eventually(lambda: state(host) == "idle")


def test_a_node_that_an_administrator_drains_stays_drained(host, eventually):
    told(host, "critical", "gpu_responds: lost")
    eventually(lambda: state(host).startswith("drained gpufarm: gpu_responds"))
    host.check_output("scontrol update nodename=one state=drain reason=fan")
    told(host, "ok")
    eventually(lambda: not host.file("/var/lib/gpufarm/slurm-drained").exists)
    assert state(host) == "drained fan"
    host.check_output("scontrol update nodename=one state=resume")
    eventually(lambda: state(host) == "idle")
