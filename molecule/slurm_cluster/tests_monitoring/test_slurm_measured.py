"""Prometheus has jobs, slices and nodes of the cluster, and alerts tell what is wrong."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from shlex import quote
from urllib.parse import urlencode

import pytest
import yaml
from testinfra.host import Host

PLOTS = yaml.safe_load((Path(__file__).parents[3] / "roles/monitoring/files/plots.yml").read_text())
IDENTITY = "/etc/gpufarm/monitoring"
CURL = (
    f"curl --silent --fail --cacert {IDENTITY}/cert.pem --cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
)
SUBMIT = "runuser -u alice -- sbatch --parsable --chdir=/ --output=/dev/null"
Told = dict[tuple[str, ...], float]


@pytest.fixture(autouse=True)
def _only_there(host: Host) -> None:
    if host.check_output("hostname") != "ctl":
        pytest.skip("another machine")


@pytest.fixture
def jobs(host: Host) -> Iterator[None]:
    """Queue jobs of all kinds, and cancel them at the end."""
    host.check_output("scontrol update partitionname=small state=down")
    for options in (
        "--gres=gpu:1g.10gb:1 --wrap='exec sleep 3600'",
        "--gres=gpu:3g.40gb:1 --wrap='exec sleep 3600'",
        "--nodelist=gpu1 --exclusive --wrap=true",
        "--partition=small --wrap=true",
    ):
        host.check_output(f"{SUBMIT} {options}")
    yield
    host.check_output("scancel --user=alice")
    host.check_output("scontrol update partitionname=small state=up")


def query(host: Host, expression: str) -> Told:
    """Return what is so now, by the values of the labels in the order of their names."""
    url = f"https://localhost:9090/api/v1/query?{urlencode({'query': expression})}"
    found = json.loads(host.check_output(f"{CURL} {quote(url)}"))["data"]["result"]
    hidden = ("__name__", "instance", "job")
    return {
        tuple(value for name, value in sorted(one["metric"].items()) if name not in hidden): float(
            one["value"][1]
        )
        for one in found
    }


@pytest.mark.usefixtures("jobs")
def test_jobs_and_slices_are_measured(host: Host, eventually: Callable[[Callable[[], bool]], None]) -> None:
    eventually(lambda: query(host, "gpufarm_slurm_jobs").get(("gpu", "running")) == 2)
    eventually(lambda: query(host, "gpufarm_slurm_jobs_stuck") == {("small", "PartitionDown"): 1})
    held = {("physics", "1g.10gb"): 1, ("physics", "3g.40gb"): 1}
    assert query(host, "gpufarm_slurm_slices_held") == held
    assert query(host, "gpufarm_slurm_budget_hours") == {("physics", "gpu"): 1000}
    assert 0 <= query(host, "gpufarm_slurm_budget_used_hours")["physics", "gpu"] < 100
    idle = {("1g.10gb",): 1, ("2g.20gb",): 1, ("3g.40gb",): 0, ("a30",): 2}
    eventually(lambda: query(host, "gpufarm_slurm_slices_idle") == idle)
    eventually(lambda: ("gpu",) in query(host, "gpufarm_slurm_wait_longest_seconds > 0"))
    for plot in PLOTS:
        if "Slurm" in plot["title"]:
            assert query(host, plot["query"].replace("$window", "300s")), plot["title"]


def test_a_drained_node_is_told_with_its_reason(
    host: Host, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    host.check_output("""scontrol update nodename=gpu2 state=drain 'reason=the "fan" is loud'""")
    told = ("gpu2", 'the "fan" is loud', "idle+drain")
    eventually(lambda: told in query(host, "gpufarm_slurm_node_unusable"))
    assert ("a30",) in query(host, "gpufarm_slurm_slices_idle == 0")
    eventually(lambda: bool(query(host, "ALERTS{alertname='SlurmNodeUnusable'}")))
    host.check_output("scontrol update nodename=gpu2 state=resume")
    eventually(lambda: not query(host, "gpufarm_slurm_node_unusable"))


def test_a_controller_that_stops_is_told(
    host: Host, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    host.check_output("systemctl stop slurmctld")
    eventually(lambda: query(host, "gpufarm_slurm_controller_up") == {("ctl",): 0})
    assert query(host, "gpufarm_slurm_jobs") == {}
    eventually(lambda: bool(query(host, "ALERTS{alertname='SlurmDown'}")))
    host.check_output("systemctl start slurmctld")
    eventually(lambda: query(host, "gpufarm_slurm_controller_up") == {("ctl",): 1})


def test_metrics_are_for_those_with_a_certificate(host: Host) -> None:
    unit = "gpufarm-slurm-metrics.timer"
    assert host.service(unit).is_enabled and host.service(unit).is_running
    security = host.check_output("systemd-analyze security --no-pager gpufarm-slurm-metrics.service")
    assert "exposure level" in security.splitlines()[-1]
