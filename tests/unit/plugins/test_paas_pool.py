"""The host keys of the pool that the playbook paas_service gives to the role."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from ansible.parsing.dataloader import DataLoader
from ansible.template import Templar

VARS = Path(__file__).parents[3] / "playbooks/vars/paas_service.yml"


def key(text: str) -> dict[str, str]:
    return {"content": base64.b64encode(text.encode()).decode()}


def found(pool: dict[str, dict[str, Any]], known: str = "", **own: Any) -> tuple[list[str], list[str]]:
    """The lines of known_hosts, and the machines without a key."""
    loader = DataLoader()
    variables = loader.load_from_file(str(VARS), cache="none", trusted_as_template=True) | {
        "groups": {"paas_pool": [*pool]},
        "hostvars": {**pool, "paas": own},
        "inventory_hostname": "paas",
        "paas_pool_before": key(known) if known else {"failed": True},
    }
    templar = Templar(loader, variables)
    return (
        templar.template(variables["paas_service_known_hosts"]),
        templar.template(variables["paas_pool_unknown"]),
    )


def test_machines_show_their_keys() -> None:
    pool = {
        "gpu1": {"paas_pool_host_key": key("ssh-ed25519 AAAA root@gpu1")},
        "gpu2": {
            "ansible_host": "192.0.2.2",
            "ansible_port": 2222,
            "paas_pool_host_key": key("ssh-ed25519 BBBB"),
        },
    }
    assert found(pool) == (["gpu1 ssh-ed25519 AAAA", "[192.0.2.2]:2222 ssh-ed25519 BBBB"], [])


def test_a_machine_that_is_down_keeps_its_key() -> None:
    pool = {"gpu1": {"paas_pool_host_key": key("ssh-ed25519 NEW")}, "gpu.2": {}, "gpu3": {}}
    known = "gpu1 ssh-ed25519 OLD\ngpu.2 ssh-ed25519 BBBB\ngpu-2 ssh-ed25519 CCCC\ngpu.22 ssh-ed25519 DDDD\n"
    lines, unknown = found(pool, known)
    assert lines[:2] == ["gpu1 ssh-ed25519 NEW", "gpu.2 ssh-ed25519 BBBB"]
    assert unknown == ["gpu3"]


def test_the_inventory_may_name_the_keys() -> None:
    lines = ["gpu1 ssh-ed25519 AAAA"]
    assert found({"gpu1": {}}, paas_service_known_hosts=lines) == (lines, [])
