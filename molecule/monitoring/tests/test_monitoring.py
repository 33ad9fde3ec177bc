"""Use of slices is measured and shown to administrators alone; problems raise alerts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from testinfra.host import Host

from lab.visitor import Refused, Visitor

PLOTS = yaml.safe_load((Path(__file__).parents[3] / "roles/monitoring/files/plots.yml").read_text())
IDENTITY = "/etc/gpufarm/monitoring"
CURL = (
    f"curl --silent --fail --cacert {IDENTITY}/cert.pem --cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
)
Query = Callable[[str], list[dict[str, Any]]]
Visit = Callable[[Host, str], Visitor]


def is_of_a_cluster(plot: dict[str, str]) -> bool:
    return "Slurm" in plot["title"] or "Mesos" in plot["title"]


@pytest.mark.parametrize(
    "name", ["prometheus", "prometheus-alertmanager", "prometheus-node-exporter", "gpufarm-metrics.timer"]
)
def test_services_run_now_and_after_a_reboot(host: Host, name: str) -> None:
    assert host.service(name).is_running
    assert host.service(name).is_enabled


@pytest.mark.parametrize("port", [9090, 9093, 9100])
def test_only_who_has_a_certificate_is_answered(host: Host, port: int) -> None:
    assert [one for one in host.socket.get_listening_sockets() if one.endswith(f":{port}")] == [
        f"tcp://127.0.0.1:{port}"
    ]
    assert host.run(f"curl --silent --insecure https://127.0.0.1:{port}/metrics").rc != 0
    assert host.run(f"curl --silent --fail http://127.0.0.1:{port}/metrics").rc != 0


def test_secrets_are_roots_alone(host: Host) -> None:
    for path in (
        "/etc/gpufarm/monitoring/key.pem",
        "/etc/gpufarm/monitoring/secrets/alertmanager.yml",
        "/etc/jupyterhub/secrets/monitoring_token",
    ):
        assert (host.file(path).user, host.file(path).mode) == ("root", 0o600)
    token = host.file("/etc/jupyterhub/secrets/monitoring_token").content_string.strip()
    assert token not in host.check_output("ps -eo args")
    assert host.run(f"grep --recursive --quiet {token} /etc/gpufarm /etc/systemd").rc == 1


def test_the_hub_tells_its_metrics_to_the_service_alone(host: Host) -> None:
    token = host.file("/etc/jupyterhub/secrets/monitoring_token").content_string.strip()
    ask = "curl --silent --output /dev/null --write-out %{http_code} http://127.0.0.1:8081/hub"
    as_service = f"--header 'Authorization: token {token}'"
    assert host.check_output(f"{ask}/metrics {as_service}") == "200"
    assert host.check_output(f"{ask}/metrics") == "403"
    assert host.check_output(f"{ask}/api/users {as_service}") == "403"


def test_the_role_wrote_where_files_come_from(host: Host) -> None:
    for path in (
        "/etc/gpufarm/monitoring/prometheus.yml",
        "/etc/systemd/system/prometheus.service.d/gpufarm.conf",
    ):
        assert host.file(path).contains("Ansible managed")


def test_alert_rules_do_what_they_say(host: Host) -> None:
    test = (Path(__file__).parents[1] / "files" / "alerts_test.yml").read_text()
    host.check_output("mkdir -p /root/rules && printf %%s %s > /root/rules/test.yml", test)
    done = host.run("promtool test rules /root/rules/test.yml")
    assert done.rc == 0, done.stdout + done.stderr


def test_every_alert_is_evaluated(host: Host) -> None:
    rules = json.loads(host.check_output(f"{CURL} https://localhost:9090/api/v1/rules"))["data"]["groups"][0][
        "rules"
    ]
    assert len(rules) > 40
    assert [one["name"] for one in rules if one["health"] == "err"] == []


def test_nothing_is_alerted_on_a_healthy_machine(query: Query) -> None:
    # How full the disk of the machine below the bench is, is not the role's affair.
    raised = query('ALERTS{alertstate="firing",alertname!~"Disk.*|Memory.*"}')
    assert [one["metric"] for one in raised] == []


def test_who_uses_which_slice_is_measured(host: Host, visit: Visit, eventually: Query, query: Query) -> None:
    alice = visit(host, "alice")
    alice.spawn(gpu="1g.10gb")
    piece = alice.slices().visible[0]
    host.check_output(f"simgpu process start --slice {piece} --memory 2048")
    held = eventually('gpufarm_slice_holder{user="alice"}')
    assert [(one["metric"]["uuid"], one["metric"]["profile"]) for one in held] == [(piece, "1g.10gb")]
    used = eventually('gpufarm_slice_processes > 0 and on (uuid) gpufarm_slice_holder{user="alice"}')
    assert len(used) == 1
    by_user = next(plot["query"] for plot in PLOTS if plot["title"] == "GPU memory used, by user")
    memory = {one["metric"]["user"]: float(one["value"][1]) for one in eventually(by_user)}
    assert 2 << 30 <= memory["alice"] < 3 << 30
    eventually('gpufarm_hub_slices_held{profile="1g.10gb"} == 1')
    assert query('gpufarm_hub_slices_held{profile="3g.40gb"} == 0')


def test_every_plot_has_data(eventually: Query) -> None:
    # NVML tells no utilization of a GPU that is divided, and clusters are in other scenarios.
    for plot in PLOTS:
        if not plot["title"].startswith("GPU utilization") and not is_of_a_cluster(plot):
            assert eventually(plot["query"].replace("$window", "300s")), plot["title"]


def test_each_disk_is_plotted_once(eventually: Query) -> None:
    disks = next(plot["query"] for plot in PLOTS if plot["title"] == "Disks used")
    devices = [one["metric"]["device"] for one in eventually(disks)]
    assert devices and len(set(devices)) == len(devices)


def test_a_sick_gpu_is_alerted_in_a_sentence(host: Host, visit: Visit, eventually: Query) -> None:
    host.check_output("simgpu set 0 temperature=95")
    host.check_output("systemctl start gpufarm-health.service")
    eventually('ALERTS{alertname="GpuTemperature",alertstate="firing",severity="critical"}')
    page = visit(host, "bob").page("/hub/use")
    host.check_output("simgpu set 0 temperature=40")
    host.check_output("systemctl start gpufarm-health.service")
    assert "the GPU is hot" in page and "Check the cooling." in page


def test_administrators_see_plots_and_others_do_not(host: Host, visit: Visit, eventually: Query) -> None:
    eventually('gpufarm_slice_holder{user="alice"} offset 30s')  # a plot ends up to 30 seconds ago
    page = visit(host, "bob").page("/hub/use?span=hour")
    missing = [plot["title"] for plot in PLOTS if plot["title"] not in page]
    assert missing == [plot["title"] for plot in PLOTS if is_of_a_cluster(plot)]  # this machine has none
    assert page.count("<svg") > 10 and "alice" in page and "1g.10gb" in page
    with pytest.raises(Refused) as refused:
        visit(host, "alice").page("/hub/use")
    assert refused.value.status in (403, 404)
    with pytest.raises(Refused, match="hour, day, week"):
        visit(host, "bob").page("/hub/use?span=year")
