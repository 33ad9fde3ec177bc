# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and deploy tell all that cannot work before the first change. The machine is this one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
PROGRAMS = Path(sys.executable).parent
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
NOWHERE = {"ansible_host": "127.0.0.1", "ansible_port": 9}
TEMPLATE = f"""\
tosca_definitions_version: tosca_simple_yaml_1_3
imports:
  - {ROOT}/tosca/types/gpufarm_types.yaml
topology_template:
  inputs:
    flavor: {{type: string, default: 7x 1g}}
  node_templates:
    server:
      type: tosca.nodes.gpufarm.Compute
    driver:
      type: tosca.nodes.gpufarm.NvidiaDriver
      properties: {{nvidia_driver_source: preinstalled}}
      requirements:
        - host: server
    partitions:
      type: tosca.nodes.gpufarm.MigPartition
      properties:
        mig_partition_flavor: {{get_input: flavor}}
      requirements:
        - host: server
        - driver: driver
    health:
      type: tosca.nodes.gpufarm.GpuHealth
      properties: {{gpu_health_interval: 60}}
      requirements:
        - host: server
        - driver: driver
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="roles become root")


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "template.yaml"
    path.write_text(TEMPLATE)
    return path


def gpufarm(
    command: str, template: Path, hosts: dict[str, dict[str, object]], *arguments: str
) -> subprocess.CompletedProcess[str]:
    pool = template.with_name("hosts.yml")
    pool.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
    return subprocess.run(
        [PROGRAMS / "gpufarm", command, template, "--pool", pool, "--name", "it", *arguments],
        cwd=ROOT,
        env=os.environ
        | {
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "GPUFARM_STATE_DIR": str(template.with_name("state")),
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["plan", "deploy"])
def test_all_that_cannot_work_is_one_table(command: str, template: Path) -> None:
    """In the inventory of the pool, of several roles at once; and machines that are unreachable."""
    wrong = {"mig_partition_flavour": "x", "mig_gpus": [], "gpu_health_intervall": 5}
    hosts = {"here": HERE | wrong, "gone1": NOWHERE, "gone2": NOWHERE}
    done = gpufarm(command, template, hosts)
    assert done.returncode == 2, done.stderr
    lines = done.stderr.splitlines()
    for host in ("gone1", "gone2"):
        assert any(
            line.startswith(f"gpufarm: warning: {host} cannot be reached (") and "refused" in line
            for line in lines
        )
    table = lines[lines.index("gpufarm: 3 problems; nothing was changed:") + 1 :]
    cells = [line.split(maxsplit=2) for line in table]
    assert [line[:2] for line in cells] == [
        ["HOST", "ROLE"],
        ["here", "mig"],
        ["here", "mig"],
        ["here", "gpu_health"],
    ]
    assert cells[1][2].endswith("is no variable of the role mig; did you mean mig_partition_flavor?")
    assert cells[2][2].startswith("mig_gpus is empty")
    assert cells[3][2].endswith("of the role gpu_health; did you mean gpu_health_interval?")
    assert not template.with_name("state").joinpath("it.json").exists()
    assert ("partitions.configure" in done.stdout) == (command == "plan")


def test_a_plan_that_can_work_is_not_refused(template: Path) -> None:
    done = gpufarm("plan", template, {"here": HERE})
    assert done.returncode == 0, done.stderr
    assert "problem" not in done.stderr
