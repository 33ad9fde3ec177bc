"""The role monitoring on a server that asks machines of the inventory."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import yaml
from harness.life import new, on
from harness.recording import Call
from harness.stubs import SECRET, encoded

READ = "Hubs | Read settings, certificates and tokens of hubs on other hosts"
LOOK = "Certificates | Read the certificates of other hosts"
ASKED = {"monitoring_machines": [["host2"]]}


def certificate(text: str) -> str:
    return f"-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n"


def test_a_machine_that_has_a_new_certificate_is_known_by_it() -> None:
    host = new("monitoring")
    for text in ("first", "second"):
        case = on(host, "monitoring")
        answers = {**case.answers, LOOK: encoded(certificate(text))}
        done = case.with_answers(answers).run("monitoring", ASKED)
        assert not done.failed, done.refusal
        assert host.files["/etc/gpufarm/monitoring/targets/host2.pem"].content == certificate(text)
        [compared] = [call for call in done.calls if call.args.get("step") == "compare"]
        assert compared.args["alone"] is False, "with the same variables it has to look again"


def test_a_machine_cannot_admit_a_server_without_a_certificate() -> None:
    case = on(new("monitoring"), "monitoring")
    done = case.with_answers({**case.answers, LOOK: {"failed": True}}).run(
        "monitoring", {"monitoring_parts": ["node"], "monitoring_servers": ["host2"]}
    )
    assert done.failed
    assert "host2, a machine of monitoring_servers, does not answer" in str(done.refusal)


def hub(call: Call) -> Mapping[str, Any]:
    """Files of a machine with a hub, as they are read there."""
    files = {
        "/etc/jupyterhub/settings.json": json.dumps({"public_url": "https://hub.example.org:8888"}),
        "/etc/jupyterhub/secrets/monitoring_token": SECRET + "hub",
        "/etc/jupyterhub/tls/cert.pem": certificate("hub"),
        "/etc/ssl/certs/ca-certificates.crt": certificate("system"),
    }
    path = call.args["src"]
    return encoded(files[path]) if path in files else {"failed": True}


def test_a_hub_on_another_machine_is_asked_also_while_that_is_down() -> None:
    host, folder = new("monitoring"), "/etc/gpufarm/monitoring"
    kept = {}
    for answer in (hub, {"unreachable": True}):
        case = on(host, "monitoring")
        done = case.with_answers({**case.answers, READ: answer}).run(
            "monitoring", {"monitoring_hub_machines": [["host2"]]}
        )
        assert not done.failed, done.refusal
        [compared] = [call for call in done.calls if call.args.get("step") == "compare"]
        assert compared.args["alone"] is False, "with the same variables it has to look again"
        names = ("prometheus.yml", "hubs/host2.pem", "hubs/host2.token", "hubs/host2.url")
        kept[str(answer)] = {name: host.files[f"{folder}/{name}"] for name in names}
    first, second = kept.values()
    assert second == first
    assert first["hubs/host2.token"].content.strip() == SECRET + "hub"
    assert first["hubs/host2.token"].mode == "0600"
    [asked] = [
        one
        for one in yaml.safe_load(first["prometheus.yml"].content)["scrape_configs"]
        if one["job_name"] == "hub host2"
    ]
    assert asked["static_configs"] == [{"targets": ["host2:8888"], "labels": {"instance": "host2"}}]
    assert asked["tls_config"] == {"ca_file": f"{folder}/hubs/host2.pem", "server_name": "hub.example.org"}


def test_a_machine_without_a_hub_is_not_asked_for_one() -> None:
    host = new("monitoring")
    case = on(host, "monitoring")
    done = case.with_answers({**case.answers, READ: {"failed": True}}).run(
        "monitoring", {"monitoring_hub_machines": [["host2"]]}
    )
    assert not done.failed, done.refusal
    assert "hub host2" not in host.files["/etc/gpufarm/monitoring/prometheus.yml"].content
