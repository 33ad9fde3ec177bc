"""How fast the deployer is: templates of a thousand nodes, thousands of machines, operations on many hosts.

`python -m lab.tosca_timing`. It needs neither root nor a bench: operations run on this machine. The same
operations are run by xOpera, for comparison.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
import yaml
from rich.console import Console
from rich.table import Table

from lab import orchestrators
from lab.spent import Figure, spent

NODES = 1000
HOSTS = (1, 8, 32)
OURS = "gpufarm deploy"

TYPES = """\
---
tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  tosca.nodes.timing.Echo:
    derived_from: tosca.nodes.SoftwareComponent
    properties:
      words: {type: string, default: hello}
      count: {type: integer, default: 1, constraints: [{in_range: [1, 10]}]}
    attributes:
      answer: {type: string}
    interfaces:
      Standard:
        type: tosca.interfaces.node.lifecycle.Standard
        inputs:
          words: {type: string, value: {get_property: [SELF, words]}}
          count: {type: integer, value: {get_property: [SELF, count]}}
        operations:
          configure:
            implementation: configure.yml
            outputs: {answer: [SELF, answer]}
"""
PLAYBOOK = """\
---
- name: Echo
  hosts: "{{ gpufarm_hosts | default('all') }}"
  gather_facts: false
  tasks:
    - name: Answer
      ansible.builtin.set_stats:
        data: {answer: "{{ words }}"}
"""
# Runs apart, so that its memory is only its own: read, check, match, plan; figures as JSON.
PLAN = """\
import json, resource, sys, time
from pathlib import Path
from gpufarm import deployment, template
from gpufarm.functions import Scope
from gpufarm.conformance import check_template
from gpufarm.match import MachineRequest, match
from gpufarm.plan import steps
from gpufarm.pool import Machine, Pool
from gpufarm import waves

def taken(): return resource.getrusage(resource.RUSAGE_SELF).ru_utime
marks = [taken()]
library, topology = template.read(Path(sys.argv[1])); marks.append(taken())
check_template(library, {}); marks.append(taken())
scope = Scope(topology, {})
requests = {node.name: MachineRequest.of(node, scope) for node in topology.nodes.values() if node.is_machine}
hosts = [Machine(f"m{i}", f"m{i}", 4, 10**11, 10**12, "debian", "12", ()) for i in range(2 * len(requests))]
machines = match(requests, Pool(Path("."), {entry.host: entry for entry in hosts}, {}), {}, {})
scope = scope.on({node: entry.address for node, entry in machines.items()})
plays = waves.plays(steps(scope, {node: entry.host for node, entry in machines.items()}, frozenset()))
marks.append(taken())
memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(json.dumps([b - a for a, b in zip(marks, marks[1:])] + [memory]))
"""


def write_template(folder: Path, machines: int) -> Path:
    """Write a template in which every machine carries one node.

    Args:
        folder: where to; types and playbook go there too.
        machines: how many.

    Returns:
        The template.
    """
    (folder / "types.yaml").write_text(TYPES)
    (folder / "configure.yml").write_text(PLAYBOOK)
    nodes: dict[str, object] = {}
    for number in range(machines):
        nodes[f"machine{number}"] = {
            "type": "tosca.nodes.Compute",
            "capabilities": {"host": {"properties": {"num_cpus": 1, "mem_size": f"{1 + number % 4} GB"}}},
        }
        nodes[f"echo{number}"] = {
            "type": "tosca.nodes.timing.Echo",
            "properties": {"words": f"node {number}", "count": 1 + number % 10},
            "requirements": [{"host": f"machine{number}"}],
        }
    template = folder / "timing.yaml"
    template.write_text(
        yaml.safe_dump(
            {
                "tosca_definitions_version": "tosca_simple_yaml_1_3",
                "imports": ["types.yaml"],
                "topology_template": {"node_templates": nodes},
            },
            sort_keys=False,
        )
    )
    return template


def planned(folder: Path) -> dict[str, str]:
    """Read, check and plan a template of a thousand nodes.

    Args:
        folder: an empty one.

    Returns:
        CPU seconds of each part, and the memory of the process.
    """
    template = write_template(folder, NODES // 2)
    done = subprocess.run(
        [sys.executable, "-c", PLAN, template], check=True, capture_output=True, text=True
    ).stdout
    read, checked, plan, memory = json.loads(done)
    return {
        f"read and examine {NODES} nodes": f"{read:.2f} s",
        "checked by tosca-parser": f"{checked:.2f} s",
        f"match {NODES // 2} machines of {NODES}, plan": f"{plan:.2f} s",
        "together": f"{read + checked + plan:.2f} s, {memory / 1024:.0f} MiB",
    }


def matched() -> dict[str, str]:
    """Match a thousand different requests with two thousand machines.

    Returns:
        CPU seconds.
    """
    from gpufarm.match import MachineRequest, match
    from gpufarm.pool import Gpu, Machine, Pool

    numbers = random.Random(1)  # noqa: S311  (the same ones every time)
    gpu = Gpu("NVIDIA A100-SXM4-80GB", 85 * 10**9, True)
    requests = {
        f"n{index}": MachineRequest(
            cpus=numbers.randint(1, 64), memory=numbers.randint(1, 512) * 10**9, gpus=index % 5
        )
        for index in range(1000)
    }
    machines = [
        Machine(
            f"m{index}",
            f"m{index}",
            request.cpus,
            request.memory,
            10**12,
            "debian",
            "12",
            (gpu,) * request.gpus,
        )
        for index, request in enumerate([*requests.values(), *requests.values()])
    ]
    numbers.shuffle(machines)
    pool = Pool(Path(), {entry.host: entry for entry in machines}, {})
    start = time.process_time()
    match(requests, pool, {}, {})
    return {"match 1000 nodes with 2000 machines": f"{time.process_time() - start:.2f} s"}


def deployed(folder: Path, hosts: int) -> dict[str, Figure]:
    """Plan and deploy one operation on each of many hosts, deploy again, and update with nothing changed.

    The plan looks at the hosts, and what it has seen is known for the rest.

    Args:
        folder: an empty one.
        hosts: how many.

    Returns:
        The figures of each, those of Ansible included.
    """
    template = write_template(folder, hosts)
    here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    pool = folder / "hosts.yml"
    pool.write_text(yaml.safe_dump({"all": {"hosts": {f"h{number}": here for number in range(hosts)}}}))
    environment = os.environ | {"GPUFARM_STATE_DIR": str(folder / "state")}
    gpufarm: list[str | Path] = [sys.executable, "-m", "gpufarm"]
    return {
        "gpufarm plan, which looks at the hosts": spent(
            [*gpufarm, "plan", template, "--pool", pool], environment
        ),
        OURS: spent([*gpufarm, "deploy", template, "--pool", pool], environment),
        "gpufarm deploy, again": spent([*gpufarm, "deploy", template], environment),
        "gpufarm update, nothing changed": spent([*gpufarm, "update", "timing"], environment),
    }


def by_opera(folder: Path, hosts: int, programs: Path) -> dict[str, Figure]:
    """Have xOpera run the same operations.

    Args:
        folder: an empty one.
        hosts: how many.
        programs: folder with the command `opera`.

    Returns:
        The figures with one worker and with eight.
    """
    template = write_template(folder, hosts)
    content = yaml.safe_load(template.read_text())
    for node in content["topology_template"]["node_templates"].values():
        if node["type"] == "tosca.nodes.Compute":
            node["attributes"] = {"public_address": "localhost", "private_address": "localhost"}
    template.write_text(yaml.safe_dump(content, sort_keys=False))
    environment = os.environ | {"PATH": f"{programs}:{os.environ['PATH']}"}
    deploy: list[str | Path] = [programs / "opera", "deploy", "--clean-state", "--force", template]
    return {
        f"xOpera, {count} worker{'s' * (count > 1)}": spent(
            [*deploy, "--workers", str(count)], environment, folder
        )
        for count in (1, 8)
    }


@click.command()
def main() -> None:
    """Measure and print."""
    opera = orchestrators.environment("opera")
    console = Console(stderr=True, highlight=False)
    table = Table(box=None, pad_edge=False)
    table.add_column("what")
    table.add_column("CPU time")
    with tempfile.TemporaryDirectory(prefix="gpufarm-timing-") as temporary:
        console.print("reading, matching, planning ...")
        figures = planned(Path(temporary)) | matched()
    for what, figure in figures.items():
        table.add_row(what, figure)
    runs: dict[str, list[Figure]] = {}
    for hosts in HOSTS:
        console.print(f"an operation on {hosts} hosts ...")
        with tempfile.TemporaryDirectory(prefix="gpufarm-timing-") as temporary:
            found = deployed(Path(temporary), hosts)
        with tempfile.TemporaryDirectory(prefix="gpufarm-timing-") as temporary:
            found |= by_opera(Path(temporary), hosts, opera)
        for what, spending in found.items():
            runs.setdefault(what, []).append(spending)
    console = Console(highlight=False)
    console.print(table)
    console.print()
    console.print(_comparison(runs))
    ours, one = runs[OURS][-1][0], runs[OURS][0][0]
    theirs = min(runs[name][-1][0] for name in runs if name.startswith("xOpera"))
    console.print(
        f"{HOSTS[-1]} hosts cost {ours / one:.1f} times the CPU of one; "
        f"xOpera takes {theirs / ours:.1f} times as much"
    )


def _comparison(runs: dict[str, list[Figure]]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("seconds of CPU / by the clock, one operation on each host")
    for hosts in HOSTS:
        table.add_column(f"{hosts} host{'s' * (hosts > 1)}", justify="right")
    for what, spending in runs.items():
        table.add_row(what, *(f"{cpu:.1f} / {clock:.1f}" for cpu, clock in spending))
    return table


if __name__ == "__main__":
    main()
