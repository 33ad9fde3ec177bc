"""The timer runs, sick GPUs are found, hooks are called once, and a driver that hangs hangs nothing."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time

from lab.patience import PATIENCE

METRICS = "/var/lib/prometheus/node-exporter/gpufarm_health.prom"
NO_CORDON = "Nothing is cordoned on this machine."
VERDICTS = "/run/gpufarm/health/verdicts.json"


def run_as_the_timer_does(host) -> None:
    host.check_output("systemctl start gpufarm-health.service")


def findings(host) -> dict[str, dict[str, str]]:
    """The findings that are not well, by check; cordons are apart, as the timer may make one at any time."""
    answer = json.loads(host.run("gpufarm-health --format json").stdout)
    bad = [one for one in answer["findings"] if one["status"] not in ("ok", "skipped")]
    return {one["check"]: one for one in bad if one["check"] != "cordon"}


def hooks(host) -> list[str]:
    host.check_output("journalctl --sync")
    log = host.check_output("journalctl --quiet --output=cat --identifier=gpufarm-hook")
    return log.split()


def test_the_timer_runs(host):
    assert host.service("gpufarm-health.timer").is_enabled
    assert host.service("gpufarm-health.timer").is_running
    deadline = time.monotonic() + PATIENCE
    while not host.file(METRICS).exists and time.monotonic() < deadline:
        time.sleep(1)
    metrics = host.file(METRICS).content_string
    assert "gpufarm_health_status 0" in metrics
    assert 'gpufarm_health_check{check="temperature",gpu="GPU-' in metrics


def test_all_is_well(host):
    run_as_the_timer_does(host)
    done = host.run("gpufarm-health --all")
    assert done.rc == 0, done.stdout
    assert "ok       GPU-" in done.stdout


def test_a_hot_gpu_is_told_to_services_that_hand_out_gpus(host):
    host.check_output("simgpu set 0 temperature=95")
    before = hooks(host)
    run_as_the_timer_does(host)
    assert hooks(host) == before
    assert host.run("gpufarm-health --fail-from critical").rc == 2
    assert set(findings(host)) == {"temperature"}
    assert "gpufarm_health_status 2" in host.file(METRICS).content_string
    told = host.file(VERDICTS)
    assert (told.user, told.mode) == ("root", 0o644)
    statuses = [gpu["status"] for gpu in json.loads(told.content_string)["gpus"].values()]
    assert sorted(statuses) in (["critical"], ["critical", "ok"])  # of the other host's second GPU
    host.check_output("simgpu set 0 temperature=81")
    run_as_the_timer_does(host)
    assert host.run("gpufarm-health").rc == 1
    assert host.run("gpufarm-health --fail-from critical").rc == 0
    host.check_output("simgpu set 0 temperature=40")
    assert host.check_output("gpufarm-health cordons") == NO_CORDON


def test_a_gpu_with_a_memory_error_is_cordoned_until_an_administrator_ends_that(host):
    before = hooks(host)
    host.check_output("simgpu set 0 ecc_uncorrected=1")
    run_as_the_timer_does(host)
    host.check_output("simgpu set 0 ecc_uncorrected=0")
    run_as_the_timer_does(host)
    assert hooks(host) == before
    listed = host.check_output("gpufarm-health cordons")
    uuid = listed.partition(" ")[0]
    assert listed.startswith("GPU-") and f"'gpufarm-health uncordon {uuid}' ends the cordon." in listed
    assert host.file(f"/var/lib/gpufarm/cordons/{uuid}.json").mode == 0o644
    host.check_output("gpufarm-health uncordon %s", uuid)
    assert host.check_output("gpufarm-health cordons") == NO_CORDON
    host.check_output("gpufarm-health cordon %s --reason 'fan is loud'", uuid)
    assert "by administrator" in host.check_output("gpufarm-health cordons")
    host.check_output("gpufarm-health uncordon %s", uuid)


def test_a_lost_gpu_drains_the_machine_once_and_a_healthy_one_resumes(host):
    before = hooks(host)
    host.check_output("simgpu set 0 lost=1")
    run_as_the_timer_does(host)
    run_as_the_timer_does(host)
    assert hooks(host) == [*before, "drain"]
    host.check_output("simgpu set 0 lost=0")
    run_as_the_timer_does(host)
    run_as_the_timer_does(host)
    assert hooks(host) == [*before, "drain", "resume"]
    # It does not come back by itself, though NVML did not tell its UUID while it was lost.
    [uuid] = [line.split()[0] for line in host.check_output("gpufarm-health cordons").splitlines()]
    host.check_output("gpufarm-health uncordon %s", uuid)


def test_a_lost_gpu_is_one_finding(host):
    host.check_output("simgpu set 0 lost=1")
    assert set(findings(host)) == {"gpu_responds"}
    host.check_output("simgpu set 0 lost=0")
    assert findings(host) == {}


def test_a_driver_that_hangs_is_bounded_and_named(host):
    host.check_output("simgpu fault add nvmlDeviceGetTemperature hang")
    found = findings(host)  # it ends, which the driver's call never does
    host.check_output("simgpu fault clear")
    assert "nvmlDeviceGetTemperature" in found["gpu_responds"]["detail"]
    assert findings(host) == {}


def test_what_the_kernel_logs_is_believed_and_what_users_log_is_not(host):
    line = "NVRM: Xid (PCI:0000:07:00): 79, pid=1, GPU has fallen off the bus."
    host.check_output("logger %s", line)
    host.check_output("logger --priority kern.err --tag kernel %s", line)
    assert findings(host) == {}
    host.check_output("simgpu xid 0 79")
    found = findings(host)
    assert set(found) == {"xid"}
    assert found["xid"]["status"] == "critical" and found["xid"]["gpu"].startswith("GPU-")
    host.check_output("gpufarm-health --acknowledge")
    assert findings(host) == {}


def test_what_a_job_left_behind_is_found(host):
    assert host.run("gpufarm-health --idle").rc == 0
    host.check_output("simgpu process start --gpu 0 --memory 100 --pid 4242")
    left = host.run("gpufarm-health --idle")
    assert left.rc == 2 and "4242" in left.stdout
    assert host.run("gpufarm-health").rc == 0
    host.check_output("simgpu process stop 4242")


def test_partitioned_gpus_are_checked_too(host):
    code = (
        "import pynvml as n; n.nvmlInit(); h = n.nvmlDeviceGetHandleByIndex(0); n.nvmlDeviceSetMigMode(h, {})"
    )
    host.check_output("/opt/gpufarm/gpu/bin/python -c %s", code.format(1))
    assert findings(host) == {}
    host.check_output("/opt/gpufarm/gpu/bin/python -c %s", code.format(0))


def test_dcgm_is_asked_where_it_is(host):
    script = """#!/bin/sh
echo '{"body": {"Overall Health": {"value": "Warning"}}, "header": ["Health Monitor Report"]}'
"""
    host.check_output("printf %%s %s > /usr/local/bin/dcgmi && chmod 755 /usr/local/bin/dcgmi", script)
    assert {name: one["status"] for name, one in findings(host).items()} == {"dcgm_health": "warning"}
    host.check_output("rm /usr/local/bin/dcgmi")
