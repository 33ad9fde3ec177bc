# SPDX-License-Identifier: GPL-3.0-or-later
"""Bad input is refused, all of it at once, before anything is set up. The machine is this one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
IBISCO = ROOT / "inventories" / "ibisco"
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
CLUSTER = (
    "zookeeper_servers",
    "mesos_masters",
    "mesos_agents",
    "marathon_servers",
    "chronos_servers",
    "app_gateways",
)

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="roles become root")


def play(playbook: str, inventory: Path, *arguments: str) -> tuple[int, str]:
    done = subprocess.run(
        [
            Path(sys.executable).with_name("ansible-playbook"),
            "-i",
            inventory,
            f"playbooks/{playbook}.yml",
            *arguments,
        ],
        cwd=ROOT,
        env=os.environ
        | {"ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"},
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def site(folder: Path, groups: tuple[str, ...], **variables: Any) -> Path:
    path = folder / "hosts.yml"
    hosts = {"hosts": {"here": HERE}}
    path.write_text(yaml.safe_dump({"all": {"vars": variables, "children": dict.fromkeys(groups, hosts)}}))
    return path


def refusal(output: str) -> str:
    """Message of the last play."""
    assert "changed=0" in output and "PLAY RECAP" in output
    last = output.rpartition("PLAY [")[2]
    assert last.startswith("Refuse invalid settings and unsuitable hosts"), last
    return last


@pytest.mark.parametrize("playbook", ["site", "mesos_cluster"])
def test_a_cluster_is_refused_as_a_whole(tmp_path: Path, playbook: str) -> None:
    inventory = site(
        tmp_path,
        CLUSTER,
        zookeeper_client_port="many",
        mesos_master_flags={"no_such_flag": "1"},
        mesos_agent_gpu_devices=[0, 0],
        marathon_flags={"no_such_flag": "1"},
        app_gateway_marathon_urls=[],
    )
    status, output = play(playbook, inventory)
    assert status != 0
    told = refusal(output)
    for sentence in (
        "zookeeper_client_port",
        "mesos_master_flags",
        "mesos_agent_url is",
        "marathon_archive_checksum is",
        "chronos_mesos_master is",
        "app_gateway_marathon_urls is empty",
    ):
        assert sentence in told, sentence


def test_one_bad_machine_keeps_all_from_being_changed(tmp_path: Path) -> None:
    inventory = tmp_path / "hosts.yml"
    children = {
        "lustre_clients": {
            "hosts": {"good": HERE, "bad": HERE | {"lustre_client_file_systems": [{"source": "x"}]}}
        }
    }
    inventory.write_text(yaml.safe_dump({"all": {"children": children}}))
    status, output = play("site", inventory)
    assert status != 0 and "lustre_client_file_systems" in refusal(output)
    assert "Lustre file systems" not in re.findall(r"PLAY \[(.*?)\]", output)


def test_everything_wrong_is_one_table(tmp_path: Path) -> None:
    nowhere = {"ansible_host": "127.0.0.1", "ansible_port": 9}
    hosts = {"here": HERE, "gone1": nowhere, "gone2": nowhere}
    inventory = tmp_path / "hosts.yml"
    groups = {
        "gpu_nodes": {
            "hosts": hosts,
            "vars": {
                "nvidia_driver_source": "preinstalled",
                "mig_partition_flavour": "7x 1g",
                "mig_gpus": [],
            },
        },
        "jupyterhubs": {"hosts": dict.fromkeys(hosts)},
    }
    inventory.write_text(yaml.safe_dump({"all": {"children": groups}}))
    status, output = play("validate", inventory)
    assert status != 0
    table = refusal(output).partition("problems; nothing was changed:\n")[2].partition("\nOrigin")[0]
    lines = [line.split(maxsplit=2) for line in table.splitlines()]
    assert [line[:2] for line in lines] == [
        ["HOST", "ROLE"],
        ["gone1", "connection"],
        ["gone2", "connection"],
        ["here", "mig"],
        ["here", "mig"],
        ["here", "jupyterhub"],
    ]
    assert "mig_partition_flavour is no variable of the role mig" in lines[3][2]
    for line in lines[1:3]:
        assert re.match(r"gone\d cannot be reached \(.*Connection refused\); see to the machine", line[2])


def test_what_is_to_be_taken_away_is_not_checked(tmp_path: Path) -> None:
    inventory = site(tmp_path, ("marathon_servers",), marathon_state="absent", marathon_port=-1)
    status, output = play("validate", inventory)
    assert status == 0, output


def test_servers_and_clients_of_lustre_are_checked_side_by_side() -> None:
    """The machines of the example are not there; this one stands in, and lacks their InfiniBand."""
    status, output = play("validate", IBISCO, "--limit", "storage1,gpu01", "-e", json.dumps(HERE))
    told = refusal(output)
    assert status != 0
    assert re.search(r"storage1 has no interface \S+, of o2ib; .* correct lustre_server_networks", told)
    assert re.search(r"gpu01 has no interface \S+, of o2ib; .* correct lustre_client_networks", told)
