"""Alert rules: one for each health check, complete, and the settings of the role that raises them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.catalogue import MEANINGS
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import CHECKS, Machine, evaluate
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import Reading
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.alerts import SERVICE, alerts, rules
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.mesos_alerts import MESOS
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.settings import plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.slurm_alerts import SLURM
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parents[3]
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


def settings(**changes: Any) -> dict[str, Any]:
    """Return the defaults of the role, without its name, and changes of them."""
    defaults = yaml.safe_load((ROOT / "roles" / "monitoring" / "defaults" / "main.yml").read_text())
    return {name.removeprefix("monitoring_"): value for name, value in defaults.items()} | changes


def test_every_health_check_has_an_alert() -> None:
    assert set(MEANINGS) == {*CHECKS, "nvml", "gpu_responds"}
    found = [re.search(r'gpufarm_health_check\{check="(\w+)"\}', one.expression) for one in alerts()]
    assert {one[1] for one in found if one} == set(MEANINGS)


def test_alerts_say_what_is_wrong_and_what_to_do() -> None:
    names = [one.name for one in alerts()]
    assert len(set(names)) == len(names)
    for one in alerts():
        assert re.fullmatch(r"[A-Z][A-Za-z]+", one.name)
        assert one.summary.endswith(".") and one.next_step.endswith("."), one.name
        assert "{{ $labels.instance }}" in one.summary, one.name


def test_the_readme_of_the_role_lists_the_alerts() -> None:
    readme = (ROOT / "roles" / "monitoring" / "README.md").read_text()
    for one in (*SERVICE, *SLURM, *MESOS):
        assert f"| `{one.name}` | {one.severity} |" in readme, one.name


def test_the_steps_are_those_of_the_findings() -> None:
    one = Reading(0, "GPU-1", "A100", "0000:07:00.0", {"vbios": "1"}, {})
    two = Reading(1, "GPU-2", "A100", "0000:0f:00.0", {"vbios": "2"}, {"temperature": "GPU_IS_LOST"})
    broken = Machine((one, two), driver_version="2", module_version="1", pci_gpus=8)
    findings = evaluate(broken, Settings(), Baseline()) + evaluate(Machine(error="x"), Settings(), Baseline())
    told = {one.check: one.action for one in findings if one.action}
    assert {"nvml", "gpu_count", "driver_match", "vbios", "gpu_responds"} <= set(told)
    assert {check: MEANINGS[check].step for check in told} == told


def test_alerts_can_be_muted() -> None:
    left = plan(settings(muted_alerts=["GpuPersistence"]))["rules"]
    assert [one["alert"] for one in rules([]) if one not in left] == ["GpuPersistence"]


@given(st.text(min_size=1), st.text(min_size=1))
def test_alertmanager_reads_each_password_as_it_is(password: str, token: str) -> None:
    found = plan(
        settings(
            alert_mail_to=["ops@example.org"],
            alert_mail_from="farm@example.org",
            alert_mail_server="smtp.example.org:587",
            alert_mail_user="farm",
            alert_mail_password=password,
            alert_webhooks=[{"url": "https://chat.example.org/hook", "token": token}],
        )
    )
    if not found["problems"]:
        (receiver,) = yaml.safe_load(found["alertmanager"])["receivers"]
        assert receiver["email_configs"][0]["auth_password"] == password
        http = receiver["webhook_configs"][0]["http_config"]
        assert http["authorization"]["credentials"] == token


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"parts": []}, "monitoring_parts is empty"),
        ({"port": 9100}, "monitoring_port and monitoring_node_port are both 9100"),
        ({"alertmanager_port": 9100}, "monitoring_node_port and monitoring_alertmanager_port are both 9100"),
        ({"interval": 9}, "monitoring_interval is 9, and alerts need several measurements in five minutes"),
        ({"interval": 10}, ""),
        ({"interval": 120}, ""),
        ({"interval": 121}, "choose 10 to 120 seconds"),
        ({"retention_days": 0}, "monitoring_retention_days is 0"),
        ({"retention_size": "5 gigabytes"}, "with MB, GB or TB"),
        ({"alertmanager_url": "alerts:9093"}, "monitoring_alertmanager_url is 'alerts:9093'"),
        ({"alertmanager_url": "https://user:word@alerts:9093"}, "monitoring_alertmanager_url is"),
        ({"alertmanager_url": "http://alerts:9093/am"}, ""),
        ({"alertmanager_url": "https://[2001:db8::7]:9093"}, ""),
        ({"muted_alerts": ["Noise"]}, "'Noise', which is no alert"),
        ({"muted_alerts": ["HubDown"]}, ""),
        ({"readers": ["me"]}, "is no certificate"),
        ({"readers": [PEM]}, ""),
        ({"targets": [{"name": "a", "address": "a:9100", "certificate": PEM}]}, ""),
        ({"targets": [{"name": "../a", "address": "a:9100", "certificate": PEM}]}, "other characters"),
        ({"targets": [{"name": "a", "address": "a:9100", "certificate": PEM}] * 2}, "used twice"),
        ({"targets": [{"name": "a", "address": "a", "certificate": PEM}]}, "write host and port"),
        ({"targets": [{"name": "a", "address": "[::1]:9100", "certificate": ""}]}, "entry point identity"),
        ({"hubs": [{"name": "h", "url": "https://h:8888", "ca_certificate": PEM, "token": "x"}]}, ""),
        ({"hubs": [{"name": "h", "url": "http://h", "ca_certificate": PEM, "token": "x"}]}, "https://"),
        ({"hubs": [{"name": "h", "url": "https://h", "ca_certificate": PEM, "token": ""}]}, "lacks"),
        ({"hubs": [{"name": "/h", "url": "https://h", "ca_certificate": PEM, "token": "x"}]}, "characters"),
    ],
)
def test_settings_that_cannot_work_are_refused(changes: dict[str, Any], said: str) -> None:
    told = plan(settings(**changes))["problems"]
    assert bool(said) == bool(told) and all(said in one for one in told)
