"""A bench is an inventory that verifies host keys."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from lab.errors import LabError
from lab.inventory import inventory


def status(*hosts: dict[str, Any], iam: str | None = None) -> dict[str, Any]:
    return {
        "bench": "demo",
        "hosts": list(hosts),
        "ssh_key": "/state/demo/keys/id_ed25519",
        "known_hosts": "/state/demo/known_hosts",
        "ssh_control_path": "/run/gpufarm-lab/ssh-%h",
        "iam": iam and {"url": f"https://{iam}:8443"},
    }


def host(name: str, address: str, *gpus: str) -> dict[str, Any]:
    return {"name": name, "address": address, "gpus": list(gpus)}


def test_groups_and_connection():
    found = inventory(
        status(
            host("gpu1", "10.77.0.11", "a100-80gb:1"),
            host("iam", "10.77.0.12"),
            host("plain", "10.77.0.13"),
            host("other", "10.77.0.1"),  # its address is a prefix of the provider's
            iam="10.77.0.12",
        )
    )
    assert found["gpu"]["hosts"] == ["gpu1"]
    assert found["iam"]["hosts"] == ["iam"]
    assert found["ungrouped"]["hosts"] == ["plain", "other"]
    variables = found["_meta"]["hostvars"]["gpu1"]
    assert variables["ansible_host"] == "10.77.0.11"
    assert "StrictHostKeyChecking=yes" in variables["ansible_ssh_common_args"]
    assert "UserKnownHostsFile=/state/demo/known_hosts" in variables["ansible_ssh_common_args"]


def test_no_bench_is_an_error_not_an_empty_inventory():
    with pytest.raises(LabError, match="bench demo is not up: start it with lab --bench demo up"):
        inventory(status())
