"""From nothing to a cluster for MPI jobs over two networks: `python -m lab.demo_hpc up`, and `down`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
import yaml

from lab.errors import LabError
from lab.inventory import inventory
from lab.network import SECOND
from lab.spec import HostSpec
from lab.stage import ROOT, Stage, commands, for_newcomers, images_missing, played
from lab.system import require_root, run, write_atomically

LOGIN = "login1"
GPUS = "v100-32gb:4"
USER = "alice"
KINDS = ("sub1", "sub2", "sub3")
PROCESSES, REST = "eth1", "eth0"  # interfaces of a host of the bench
MIB = 2**20
SENT = 16  # MiB that each process sends to the next one
# Each process has what the one before it sent, and says where it runs.
RING = f"""
import socket
from mpi4py import MPI
world = MPI.COMM_WORLD
sent, got = bytearray([world.rank]) * {SENT * MIB}, bytearray({SENT * MIB})
before = (world.rank - 1) % world.size
world.Sendrecv(sent, dest=(world.rank + 1) % world.size, recvbuf=got, source=before)
assert got == bytearray([before]) * {SENT * MIB}
print(socket.gethostname())
"""
PHASES = (
    ("gpus", "Users, GPU driver check, health of GPUs", ("lab/farm/prepare.yml", "gpufarm.cluster.gpu_node")),
    ("cluster", "Slurm with accounting, environment modules, MPI", ("gpufarm.cluster.slurm_cluster",)),
)
# The demo has the queues of the site that the inventory describes.
SITE = yaml.safe_load((ROOT / "inventories/ibisco/group_vars/all/slurm.yml").read_text())
SETTINGS = {
    # Control groups of the bench limit neither processors nor memory.
    "slurm_controller_constrain": ["devices"],
    "slurm_controller_partitions": SITE["slurm_controller_partitions"],
    "slurm_accounts_accounts": [{"name": "physics", "users": [USER]}],
    "mpi_process_networks": [str(SECOND)],
    "farm_users": [USER],
}


@dataclass
class Demo(Stage):
    """The demo of a cluster for MPI jobs.

    Attributes:
        machines: number of machines with GPUs.
    """

    name: str = field(default_factory=lambda: os.environ.get("LAB_BENCH", "demo-hpc"))
    machines: int = 4

    @property
    def nodes(self) -> list[str]:
        """Names of the machines with GPUs."""
        return [f"gpu{number:02}" for number in range(1, self.machines + 1)]

    def up(self) -> None:
        """Bring everything up, prove it, and tell how to use it."""
        require_root()
        cold = images_missing()
        with self.phase("bench", f"{self.machines} machines with four GPUs each, one to log in to") as say:
            hosts = [
                HostSpec(LOGIN, suite="trixie", nics=2),
                *(
                    HostSpec(name, suite="trixie", gpus=(GPUS,), layers=("gpu",), nics=2)
                    for name in self.nodes
                ),
            ]
            bench = self.bench(say)
            started = bench.up(hosts)
            status = bench.status()
        files = self._inventory(status)
        for phase, title, playbooks in PHASES:
            with self.phase(phase, title):
                self.program(["ansible-playbook", "-i", str(files), *playbooks], self.slurm_on_bench)
        with self.phase("check", f"A job of {USER} with a process on each machine") as say:
            ssh = ["ssh", "-F", status["ssh_config"]]
            before = self._carried(ssh)
            say("the processes send to each other in a ring")
            ran = run([*ssh, LOGIN, _job(self.machines, RING)]).split()
            if sorted(ran) != self.nodes:
                raise LabError(f"the job ran on {', '.join(sorted(ran))} instead of {', '.join(self.nodes)}")
            carried = {name: number - before[name] for name, number in self._carried(ssh).items()}
            if carried[PROCESSES] < self.machines * SENT * MIB or carried[REST] > carried[PROCESSES] / 8:
                raise LabError(f"the processes did not talk over {PROCESSES} alone, in bytes: {carried}")
        with self.phase("uniform", "The machines compared with each other", moves=False):
            alike = self.program(["gpufarm", "uniform", "--pool", str(files), "--group", "slurm_nodes"])
        _tell(self.name, carried, alike, files, self.timings(cold=cold, started=bool(started)))

    def _carried(self, ssh: list[str]) -> dict[str, int]:
        """Bytes that all machines have sent so far, by interface."""
        interfaces = (PROCESSES, REST)
        read = "cat " + " ".join(f"/sys/class/net/{name}/statistics/tx_bytes" for name in interfaces)
        numbers = [[int(word) for word in run([*ssh, node, read]).split()] for node in self.nodes]
        return dict(zip(interfaces, map(sum, zip(*numbers, strict=True)), strict=True))

    def _kinds(self) -> dict[str, list[str]]:
        """Machines of each kind, as a site has bought them one after the other."""
        found: dict[str, list[str]] = {kind: [] for kind in KINDS}
        for number, name in enumerate(self.nodes):
            found[KINDS[number * len(KINDS) // self.machines]].append(name)
        return found

    def _inventory(self, status: dict[str, Any]) -> Path:
        login, nodes = {"hosts": {LOGIN: None}}, {"hosts": dict.fromkeys(self.nodes)}
        every = {"hosts": dict.fromkeys([LOGIN, *self.nodes])}
        groups = {
            **{kind: {"hosts": dict.fromkeys(names)} for kind, names in self._kinds().items()},
            **dict.fromkeys(("slurm_controllers", "slurm_accounting"), login),
            **dict.fromkeys(("slurm_nodes", "gpu_nodes"), nodes),
            **dict.fromkeys(("mpi", "environment_modules"), every),
        }
        hosts = inventory(status).pop("_meta")["hostvars"]
        path = self.directory / "inventory.json"
        found = {"all": {"hosts": hosts, "children": groups, "vars": SETTINGS}}
        write_atomically(path, json.dumps(found, indent=2) + "\n")
        return path


def _job(machines: int, program: str) -> str:
    words = ["runuser", "-u", USER, "--", "srun", "--immediate=120", f"--nodes={machines}"]
    words += [f"--ntasks={machines}", "--mpi=pmix", "--chdir=/", "python3", "-m", "mpi4py", "-c", program]
    return shlex.join(words)


def _tell(bench: str, carried: Mapping[str, int], alike: str, files: Path, timings: dict[str, Any]) -> None:
    """Next steps for a newcomer, on standard output."""
    out, facts = for_newcomers()
    out.print(
        f"\n[bold green]Ready[/] in {timings['total']:.0f} s: a cluster for jobs, with [bold]{LOGIN}[/]\n"
    )
    facts.add_row("Log in", f".venv/bin/lab --bench {bench} ssh {LOGIN}")
    job = "srun --chdir=/ --nodes=2 --gres=gpu:4 printenv SLURMD_NODENAME CUDA_VISIBLE_DEVICES"
    facts.add_row("A job there", f"runuser -u {USER} -- {job}")
    proven = " and ".join(f"{number / MIB:.0f} MiB over {name}" for name, number in carried.items())
    facts.add_row("Proven just now", f"processes on all machines sent {proven}")
    facts.add_row("Compared", alike.strip())
    facts.add_row("Inventory", str(files))
    facts.add_row("Simulated", "the GPUs (their NVML and device nodes, no CUDA)")
    facts.add_row("Not here", "InfiniBand, Lustre, and homes that all machines share")
    facts.add_row("Real", "Debian, systemd, SSH, Ansible, Slurm, MariaDB, Open MPI, PMIx, two networks")
    facts.add_row("Stop", "make clean")
    out.print(facts)


if __name__ == "__main__":
    played(
        commands(
            Demo,
            "From nothing to a cluster for MPI jobs over two networks. LAB_BENCH names another bench.",
            [
                click.Option(
                    ["--machines"],
                    type=click.IntRange(2, 99),
                    default=4,
                    show_default=True,
                    help="Machines with GPUs.",
                )
            ],
        )
    )
