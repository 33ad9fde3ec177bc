"""A second machine is watched over the network, and answers nobody but the server."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from typing import Any

from testinfra.host import Host

from lab.patience import PATIENCE

IDENTITY = "/etc/gpufarm/monitoring"
CURL = (
    f"curl --silent --fail --cacert {IDENTITY}/cert.pem --cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
)


def ask(host: Host, what: str) -> dict[str, Any]:
    return json.loads(host.check_output(f"{CURL} https://localhost:9090/api/v1/{what}"))["data"]


def test_the_second_machine_is_seen(host: Host) -> None:
    end = time.monotonic() + PATIENCE
    health: dict[str, str] = {}
    while health.get("node iam") != "up" and time.monotonic() < end:
        targets = ask(host, "targets")["activeTargets"]
        health = {one["scrapePool"]: one["health"] for one in targets}
        time.sleep(1)
    pools = ("prometheus mon12", "node mon12", "hub mon12", "alertmanager mon12", "node iam")
    assert health == dict.fromkeys(pools, "up")


def test_it_answers_the_server_alone(host: Host, bench: dict[str, Any]) -> None:
    address = next(entry["address"] for entry in bench["hosts"] if entry["name"] == "iam")
    url = f"https://gpufarm-monitoring:9100/metrics --resolve gpufarm-monitoring:9100:{address}"
    known = f"--cacert {IDENTITY}/targets/iam.pem"
    key = f"--cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
    assert "node_load1" in host.check_output(f"curl --silent --fail {known} {key} {url}")
    assert host.run(f"curl --silent --fail {known} {url}").rc != 0
    # A certificate that anybody can make for themselves.
    other = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=gpufarm-monitoring"
    host.check_output(f"openssl req {other} -keyout /root/other.key -out /root/other.pem")
    stranger = "--cert /root/other.pem --key /root/other.key"
    assert host.run(f"curl --silent --fail {known} {stranger} {url}").rc != 0


def test_muted_alerts_are_not_raised(host: Host) -> None:
    rules = ask(host, "rules")["groups"][0]["rules"]
    names = {one["name"] for one in rules}
    assert "GpuTemperature" in names and "GpuPersistence" not in names
