"""Measure the savings of the warm interpreter: `python -m lab.warm.timing`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from lab import cgroups
from lab.bench import Bench, cache_dir, state_dir
from lab.errors import LabError
from lab.inventory import inventory
from lab.spec import HostSpec
from lab.system import require_root, write_atomically
from lab.warm import PYTHON

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
HOSTS = ("zk1", "zk2", "zk3")
# Title, playbook, hosts. Each runs once before it is measured, so that it changes nothing then.
PLAYS = (
    ("20 module calls, 1 host", HERE / "calls.yml", HOSTS[:1]),
    ("role zookeeper without changes, 3 hosts", HERE / "zookeeper.yml", HOSTS),
)


class Measured:
    """Playbooks on hosts of a bench, with the CPU seconds that they take.

    Args:
        bench: a bench that is up.
        folder: for files of these runs.
    """

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.groups = cgroups.bench_groups(bench.id, cgroups.layout())

    def play(self, playbook: Path, hosts: tuple[str, ...], python: str | None) -> tuple[float, float]:
        """Run a playbook.

        Args:
            playbook: what to run.
            hosts: where.
            python: interpreter of modules; the inventory's own if None.

        Returns:
            CPU seconds of Ansible with its SSH clients, and of the hosts.

        Raises:
            LabError: it failed.
        """
        data = inventory(self.bench.status())
        for variables in data["_meta"]["hostvars"].values():
            variables["ansible_python_interpreter"] = python or variables["ansible_python_interpreter"]
        write_atomically(self.folder / "hosts.json", json.dumps(data))
        script = self.folder / "hosts"
        write_atomically(script, f"#!/bin/sh\ncat {self.folder}/hosts.json\n", mode=0o755)
        environment = {
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "ansible"),
            # As in scenarios.
            "ANSIBLE_CALLBACK_PLUGINS": str(ROOT / "molecule/shared/callback_plugins"),
            "ANSIBLE_CALLBACKS_ENABLED": "packed_modules",
        }
        command = ["ansible-playbook", "-i", str(script), "--limit", ",".join(hosts), str(playbook)]
        here, there = _own_seconds(), cgroups.cpu_seconds(self.groups)
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
        if done.returncode:
            raise LabError(f"{playbook.name} failed: {done.stdout[-800:]}{done.stderr[-200:]}")
        return _own_seconds() - here, cgroups.cpu_seconds(self.groups) - there


def _own_seconds() -> float:
    """CPU seconds of all ended children and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def measure(bench: Bench) -> Table:
    """Run every play with both interpreters; return a table of CPU seconds and their ratio."""
    table = Table(box=None, pad_edge=False)
    table.add_column("CPU seconds: Ansible + hosts")
    for column in ("plain", "warm", "ratio", "ratio on hosts"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory(prefix="warm-timing-") as temporary:
        measured = Measured(bench, Path(temporary))
        for title, playbook, hosts in PLAYS:
            taken = []
            for python in (None, PYTHON):
                measured.play(playbook, hosts, python)
                taken.append(measured.play(playbook, hosts, python))
            plain, warm = taken
            table.add_row(
                title,
                *(f"{here:.2f} + {there:.2f}" for here, there in taken),
                f"{sum(plain) / sum(warm):.1f}",
                f"{plain[1] / warm[1]:.1f}",
            )
    return table


def main() -> None:
    require_root()
    bench = Bench("warm-timing", state_dir(), cache_dir())
    bench.down()
    try:
        bench.up([HostSpec(name) for name in HOSTS])
        Console(highlight=False, width=120).print(measure(bench))
    finally:
        bench.down()


if __name__ == "__main__":
    try:
        main()
    except LabError as error:
        sys.exit(f"Error: {error}")
