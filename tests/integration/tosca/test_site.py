# SPDX-License-Identifier: GPL-3.0-or-later
"""A template and a pool as an inventory: the collection's playbooks do on it what the deployer does."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.patience import PATIENCE
from lab.spec import HostSpec
from lab.system import run

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "tosca" / "templates" / "gpu_node.yaml"
PROGRAMS = Path(sys.executable).parent
FLAVOR = "2x 3g.40gb MIG GPUs"
# Accounts of an INDIGO template, on the machine of the other deployment's site.
INDIGO = """\
tosca_definitions_version: tosca_simple_yaml_1_0
imports:
  - indigo_custom_types: https://raw.githubusercontent.com/indigo-dc/tosca-types/master/custom_types.yaml
topology_template:
  inputs:
    users: {type: list, entry_schema: {type: tosca.datatypes.indigo.User}}
    count: {type: integer, default: 1}
  node_templates:
    server:
      type: tosca.nodes.indigo.Compute
      properties: {os_users: {get_input: users}}
      capabilities:
        scalable: {properties: {count: {get_input: count}}}
        host: {properties: {num_cpus: 1, instance_type: m1.small}}
  outputs:
    node_ip: {value: {get_attribute: [server, public_address, 0]}}
"""

# A machine that measures itself, and of which there are as many as one for each two series that it finds.
MEASURED = f"""\
tosca_definitions_version: tosca_simple_yaml_1_3
imports:
  - {ROOT}/tosca/types/gpufarm_types.yaml
topology_template:
  inputs:
    readers: {{type: list, entry_schema: {{type: string}}}}
  node_templates:
    server:
      type: tosca.nodes.gpufarm.Compute
      capabilities:
        scalable: {{properties: {{min_instances: 1, default_instances: 1, max_instances: 9}}}}
    monitoring:
      type: tosca.nodes.gpufarm.Monitoring
      properties:
        monitoring_listen_address: 0.0.0.0
        monitoring_readers: {{get_input: readers}}
      requirements:
        - host: server
  policies:
    - follow:
        type: tosca.policies.gpufarm.Scaling
        targets: [server]
        properties:
          decision: per_instance
          metrics: {{load: 'count(prometheus_build_info) * 6'}}
          settings: {{share: 2.0}}
"""

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("site", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up([HostSpec("gpu1", gpus=("a100-80gb:1",)), HostSpec("login1")])
        yield made
    finally:
        made.down()


@pytest.fixture
def pool(bench: Bench, tmp_path: Path) -> Path:
    path = tmp_path / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": inventory(bench.status())["_meta"]["hostvars"]}}))
    return path


def command(pool: Path, *words: str | Path, **environment: str) -> str:
    """Run a program of Ansible or of ours, from the root of the collection; what it says."""
    done = subprocess.run(
        [PROGRAMS / words[0], *words[1:]],
        cwd=ROOT,
        env=os.environ
        | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "GPUFARM_STATE_DIR": str(pool.parent / "state"),
            "GPUFARM_POOL": str(pool),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        }
        | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


def on_host(bench: Bench, host: str, words: str) -> str:
    return run(["ssh", "-F", bench.ssh_config, host, words])


def slices(bench: Bench) -> list[str]:
    """The compute instances on the host's GPUs, as the driver lists them."""
    access = "find /proc/driver/nvidia/capabilities -path '*/mig/gi*/ci*' -name access"
    return on_host(bench, "gpu1", access).splitlines()


def test_settings_and_the_gpus_to_partition_are_inputs(bench: Bench, pool: Path) -> None:
    chosen = {"gpu_settings": [{"power_limit": "300"}], "gpu_partition_gpus": ["capable"]}
    given = [word for name, value in chosen.items() for word in ("--input", f"{name}={json.dumps(value)}")]
    command(pool, "gpufarm", "deploy", TEMPLATE, "--name", "tuned", "--pool", pool, *given)
    stored = on_host(bench, "gpu1", "cat /etc/gpufarm/settings.json")
    assert '"power_limit": 300' in stored
    command(pool, "gpufarm", "undeploy", "tuned", "--yes")
    on_host(bench, "gpu1", "test ! -e /etc/gpufarm/settings.json")


def test_playbooks_on_a_template(bench: Bench, pool: Path) -> None:
    from_template = {
        "ANSIBLE_INVENTORY_ENABLED": "gpufarm.cluster.tosca",
        "GPUFARM_INPUT_GPU_PARTITION_FLAVOR": FLAVOR,
    }
    graph = command(pool, "ansible-inventory", "-i", TEMPLATE, "--graph", **from_template)
    lines = [line.strip(" |-") for line in graph.splitlines()]
    assert {"@server:", "@driver:", "@partitions:", "@gpu_nodes:"} <= set(lines)
    assert "gpu1" in lines and "login1" not in lines, "the other one has no GPU"

    command(pool, "ansible-playbook", "-i", TEMPLATE, "playbooks/site.yml", **from_template)
    assert len(slices(bench)) == 2

    given = ("--pool", pool, "--input", f"gpu_partition_flavor={FLAVOR}")
    command(pool, "gpufarm", "deploy", TEMPLATE, *given)
    steps = json.loads((pool.parent / "state" / "gpu_node.json").read_text())["steps"]
    changed = {name: step["changed"] for name, step in steps.items()}
    assert changed["partitions.configure"] == 0 and changed["driver.configure"] == 0, changed

    again = command(pool, "ansible-inventory", "-i", TEMPLATE, "--list", **from_template)
    assert json.loads(again)["server"]["hosts"] == ["gpu1"], "the machine of the deployment"


def test_undeploy_leaves_what_a_playbook_made(bench: Bench, pool: Path) -> None:
    """Two deployments on a machine that a playbook partitioned: one changes nothing there, one fails."""
    play = pool.parent / "play.yml"
    play.write_text(
        yaml.safe_dump(
            [
                {
                    "hosts": "gpu1",
                    "gather_facts": False,
                    "vars": {"mig_partition_flavor": FLAVOR},
                    "roles": ["gpufarm.cluster.nvidia_driver", "gpufarm.cluster.mig"],
                }
            ]
        )
    )
    command(pool, "ansible-playbook", "-i", pool, play)
    stored = on_host(bench, "gpu1", "cat /etc/gpufarm/mig.json")
    assert json.loads(stored)["layout"][0]["owner"] == "a playbook"
    made = slices(bench)

    given = ("--pool", pool, "--input")
    command(pool, "gpufarm", "deploy", TEMPLATE, "--name", "same", *given, f"gpu_partition_flavor={FLAVOR}")
    told = " ".join(command(pool, "gpufarm", "diff", "same").split())
    assert re.search(r"gpu1 mig deployment same of \S+ [-\d]+ [:\d]+ as recorded", told), told
    command(pool, "gpufarm", "undeploy", "same", "--yes")
    assert slices(bench) == made and on_host(bench, "gpu1", "cat /etc/gpufarm/mig.json") == stored
    assert on_host(bench, "gpu1", "systemctl is-enabled gpufarm-mig").strip() == "enabled"
    assert on_host(bench, "gpu1", "/opt/gpufarm/gpu/bin/python --version"), "other roles need it"
    told = command(pool, "ansible-playbook", "-i", pool, "playbooks/report.yml")
    assert re.search(r"gpu1 mig a playbook [-\d]+ [:\d]+ as recorded", " ".join(told.split())), told
    assert "deployment same" not in told, "the machine has forgotten the deployment"


@pytest.mark.parametrize("order", ["plan", "deploy"])
def test_partitions_that_do_not_fit_are_refused_before_any_change(
    bench: Bench, pool: Path, order: str
) -> None:
    made = slices(bench)
    given = ("--name", "greedy", "--pool", pool, "--input", "gpu_partition_flavor=8x 1g.10gb MIG GPUs")
    with pytest.raises(AssertionError, match=r"gpu1  mig   GPU 0 .* fits on it at most 7x"):
        command(pool, "gpufarm", order, TEMPLATE, *given)
    assert slices(bench) == made
    assert not (pool.parent / "state" / "greedy.json").exists()


def test_the_accounts_of_an_indigo_template(bench: Bench, pool: Path) -> None:
    template, users = pool.parent / "accounts.yaml", pool.parent / "users.yaml"
    template.write_text(INDIGO)
    key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE ada"
    users.write_text(yaml.safe_dump({"users": [{"os_user_name": "ada", "os_user_ssh_public_key": key}]}))
    output = command(pool, "gpufarm", "deploy", template, "--pool", pool, "--inputs", users)
    address = next(host["address"] for host in bench.status()["hosts"] if host["name"] == "login1")
    assert output == f"node_ip: {address}\n", "the machine with the least to waste"
    named = json.loads(command(pool, "gpufarm", "outputs", "accounts", "--indigo"))
    assert named == {"node_ip": address, "server_ip": address}
    assert on_host(bench, "login1", "id -un ada").strip() == "ada"
    command(pool, "gpufarm", "undeploy", "accounts", "--yes")
    assert "!" in on_host(bench, "login1", "getent shadow ada || echo '!'")


def test_scaling_asks_the_prometheus_of_the_role(bench: Bench, pool: Path) -> None:
    folder = pool.parent
    key, own, authority = folder / "key.pem", folder / "own.pem", folder / "server.pem"
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -noenc -subj /CN=autoscaler -days 1"
    run(["openssl", *words.split(), "-keyout", key, "-out", own])
    template, readers = folder / "measured.yaml", folder / "readers.yaml"
    template.write_text(MEASURED)
    readers.write_text(yaml.safe_dump({"readers": [own.read_text()]}))
    command(pool, "gpufarm", "deploy", template, "--pool", pool, "--inputs", readers)
    machine = json.loads((folder / "state" / "measured.json").read_text())["machines"]["server"]
    authority.write_text(on_host(bench, machine["host"], "cat /etc/gpufarm/monitoring/cert.pem"))
    question = (
        "gpufarm",
        "autoscale",
        "measured",
        "--prometheus",
        f"https://{machine['address']}:9090",
        "--json",
    )
    trust = ("--ca-file", authority, "--server-name", "gpufarm-monitoring", "--certificate", own, key)
    deadline = time.monotonic() + PATIENCE
    while True:  # until the server has measured itself for the first time
        try:
            (proposal,) = json.loads(command(pool, *question, *trust))
            break
        except AssertionError as error:
            assert "gives 0 numbers" in str(error) and time.monotonic() < deadline
            time.sleep(2)
    assert (proposal["instances"], proposal["decision"]["instances"]) == (1, 3)
