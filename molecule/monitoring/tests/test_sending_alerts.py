"""Alerts and their ends reach people by mail and webhooks, one message for each machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import testinfra
from testinfra.host import Host

from lab.patience import PATIENCE

IDENTITY = "/etc/gpufarm/monitoring"
CURL = f"curl --silent --show-error --fail --cacert {IDENTITY}/cert.pem"
CLIENT = f"--cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
ALERTMANAGER = "https://localhost:9093"
Entries = list[dict[str, Any]]
Received = Callable[[str], Entries]


@pytest.fixture(scope="module", autouse=True)
def quick(host: Host) -> None:
    """Let the Alertmanager collect alerts for seconds instead of minutes."""
    waits = r"s/(group_wait|group_interval)\": \"[^\"]*/\1\": \"5s/"
    host.check_output("sed --in-place --regexp-extended %s %s/secrets/alertmanager.yml", waits, IDENTITY)
    host.check_output("systemctl restart prometheus-alertmanager")
    host.check_output(
        f"{CURL} {CLIENT} --retry 60 --retry-connrefused --retry-delay 1 {ALERTMANAGER}/-/ready"
    )


@pytest.fixture(scope="module")
def receivers(host: Host) -> Host:
    """Return the machine of the receivers."""
    return testinfra.get_host(f"ansible://iam?ansible_inventory={host.backend.ansible_inventory}")


@pytest.fixture
def received(receivers: Host) -> Received:
    """Read what has come by mail or by hooks."""

    def read(by: str) -> Entries:
        lines = receivers.run(f"cat /srv/received/{by}").stdout.splitlines()
        return [json.loads(line) for line in lines]

    return read


def wait(found: Callable[[], Any]) -> Any:
    """Wait until there is something, and return it."""
    end = time.monotonic() + PATIENCE
    while not (there := found()):
        assert time.monotonic() < end, f"nothing came within {PATIENCE} s"
        time.sleep(2)
    return there


def tell(host: Host, instance: str, *names: str) -> None:
    """Tell the Alertmanager of alerts of a machine, as Prometheus does."""
    alerts = [
        {
            "labels": {"alertname": name, "instance": instance, "severity": "critical"},
            "annotations": {"summary": f"{instance}: {name}.", "next_step": 'Look <there> & "here".'},
        }
        for name in names
    ]
    header = "Content-Type: application/json"
    command = f"{CURL} {CLIENT} --header %s --data %s {ALERTMANAGER}/api/v2/alerts"
    host.check_output(command, header, json.dumps(alerts))


def failures(host: Host) -> float:
    """Return how many requests to receivers have failed."""
    metrics = host.check_output(f"{CURL} {CLIENT} {ALERTMANAGER}/metrics")
    lines = [line for line in metrics.splitlines() if "notification_requests_failed_total{" in line]
    return sum(float(line.split()[-1]) for line in lines)


@pytest.mark.parametrize("path", ["metrics", "api/v2/status"])
def test_only_prometheus_is_answered(host: Host, path: str) -> None:
    assert host.run(f"{CURL} {CLIENT} {ALERTMANAGER}/{path}").rc == 0
    assert host.run(f"{CURL} {ALERTMANAGER}/{path}").rc != 0


def test_its_interface_tells_no_secret(host: Host) -> None:
    assert "s3cret" not in host.check_output(f"{CURL} {CLIENT} {ALERTMANAGER}/api/v2/status")


def test_an_alert_and_its_end_are_sent(host: Host, received: Received) -> None:
    # The disk of the machine below the bench may be told of in the same mail.
    def mails(status: str) -> Entries:
        return [
            one
            for one in received("mail")
            if re.search(f"^{status}: mon12.*: the GPU is hot", one["text"], re.M)
        ]

    def hooks(status: str) -> Entries:
        return [
            alert
            for one in received("hooks")
            for alert in one["alerts"]
            if (alert["labels"]["alertname"], alert["status"]) == ("GpuTemperature", status)
        ]

    host.check_output("simgpu set 0 temperature=95")
    host.check_output("systemctl start gpufarm-health.service")
    mail = wait(lambda: mails("critical"))[0]
    assert re.fullmatch("mon12: [1-9] problems?", mail["subject"])
    assert mail["to"] == ["ops@example.org", "o'brien+gpu@example.org"]
    assert mail["from"] == "farm@example.org"
    assert "Next step: Check the cooling." in mail["text"]
    assert wait(lambda: hooks("firing"))[0]["annotations"]["next_step"].startswith("Check the cooling.")
    host.check_output("simgpu set 0 temperature=40")
    host.check_output("systemctl start gpufarm-health.service")
    assert wait(lambda: mails("resolved")) and wait(lambda: hooks("resolved"))


def test_a_machine_is_one_message(host: Host, received: Received) -> None:
    tell(host, "gpu8", "HubDown", "GpuCount")
    tell(host, "gpu9", "HubDown")
    mails = wait(lambda: [one for one in received("mail") if one["subject"] == "gpu8: 2 problems"])
    assert [mails[0]["text"].count(word) for word in ("HubDown).", "GpuCount).", "gpu9")] == [1, 1, 0]
    assert 'Next step: Look <there> & "here".' in mails[0]["text"]
    assert wait(lambda: [one for one in received("mail") if one["subject"] == "gpu9: 1 problem"])


def test_nothing_is_sent_about_parts_of_a_machine_that_is_not_seen(host: Host, received: Received) -> None:
    tell(host, "gpu10", "MachineNotSeen", "HubDown")
    mails = wait(lambda: [one for one in received("mail") if one["subject"].startswith("gpu10:")])
    assert "MachineNotSeen" in mails[0]["text"] and "HubDown" not in mails[0]["text"]


@pytest.fixture(params=["down", "not-trusted"])
def trouble(receivers: Host, request: pytest.FixtureRequest) -> Iterator[str]:
    """Let the receivers be down, or have a certificate that nobody trusts; what it is called."""
    other = "-x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=iam"
    made = "-keyout /srv/tls/iam.key -out /srv/tls/iam.pem -addext subjectAltName=DNS:iam"
    receivers.check_output("cp --archive /srv/tls /srv/tls-before && systemctl stop receivers")
    if request.param == "not-trusted":
        receivers.check_output(f"openssl req {other} {made} && systemctl start receivers")
    yield request.param
    receivers.check_output("rm -r /srv/tls && mv /srv/tls-before /srv/tls && systemctl restart receivers")


def test_what_cannot_be_sent_is_counted_and_sent_later(
    host: Host, receivers: Host, received: Received, trouble: str
) -> None:
    def arrived(by: str) -> bool:
        return trouble in json.dumps(received(by))

    before = failures(host)
    tell(host, trouble, "HubDown")
    wait(lambda: failures(host) >= before + 2)
    assert not arrived("mail") and not arrived("hooks")
    receivers.check_output(
        "systemctl stop receivers && cp /srv/tls-before/* /srv/tls && systemctl start receivers"
    )
    wait(lambda: arrived("mail") and arrived("hooks"))
