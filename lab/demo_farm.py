"""From nothing to one hub and one queue for GPU machines: `python -m lab.demo_farm up`, and `down`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.inventory import inventory
from lab.selfcheck import Proof, check
from lab.spec import HostSpec
from lab.stage import Stage, commands, for_newcomers, images_missing, played
from lab.system import require_root, run, write_atomically
from lab.visitor import Visitor, trust

HUB = "hub"
GPUS = {
    "gpu1": ("a100-80gb:1", "7x 1g.10gb"),
    "gpu2": ("h100-80gb:1", "1x 3g.40gb, 2x 2g.20gb"),
    "gpu3": ("a30:1", "4x 1g.6gb"),
}
HOSTS = [
    HostSpec(HUB, suite="trixie", layers=("hub",)),
    *(
        HostSpec(name, suite="trixie", gpus=(gpu,), layers=("gpu", "notebook"))
        for name, (gpu, _flavor) in GPUS.items()
    ),
]
USERS = ("alice", "bob", "carol")
JOB = "srun --immediate=60 --chdir=/ --gres=gpu:3g.40gb:1 printenv CUDA_VISIBLE_DEVICES SLURM_JOB_NODELIST"
AUTHORITY = "/etc/jupyterhub/tls/ca.crt"  # where role jupyterhub keeps the certificate that users must trust
PHASES = (
    ("gpus", "Users, GPU driver check, MIG slices", ("lab/farm/prepare.yml", "gpufarm.cluster.gpu_node")),
    ("cluster", "Slurm with accounting", ("gpufarm.cluster.slurm_cluster",)),
    ("hub", "JupyterHub over all nodes", ("gpufarm.cluster.slurm_hub",)),
)
SETTINGS = {
    # Control groups of the bench limit neither processors nor memory.
    "slurm_controller_constrain": ["devices"],
    "slurm_controller_partitions": [
        {"name": "gpu", "default": True, "default_time": "60", "max_time": "8:00:00"}
    ],
    "jupyterhub_spawner": "slurm",
    "jupyterhub_login": "pam",
    "jupyterhub_pam_groups": ["users"],
    "jupyterhub_memory_choices": ["1G", "2G"],
    "jupyterhub_cpu_limit": 1,
}


def parts(flavor: str) -> list[tuple[int, str]]:
    """Return how many slices of which profile a flavor of `GPUS` has."""
    counted = (part.split("x ") for part in flavor.split(", "))
    return [(int(count), profile) for count, profile in counted]


@dataclass
class Demo(Stage):
    """The demo of a cluster with a hub.

    Attributes:
        users: people with accounts on all hosts.
    """

    name: str = field(default_factory=lambda: os.environ.get("LAB_BENCH", "demo-farm"))
    users: tuple[str, ...] = USERS

    @property
    def inventory_file(self) -> Path:
        """The inventory of Ansible for the hosts of the bench."""
        return self.directory / "inventory.json"

    @property
    def authority(self) -> Path:
        """The certificate that users of the hub must trust."""
        return self.directory / "hub-ca.crt"

    @staticmethod
    def hub(address: str) -> str:
        """Address of the hub on a machine."""
        return f"https://{address}:8888"

    def up(self) -> None:
        """Bring everything up, prove it, and tell how to use it."""
        require_root()
        cold = images_missing()
        with self.phase(
            "bench", "Four hosts: three machines with different GPUs, one for hub and queue"
        ) as say:
            bench = self.bench(say)
            started = bench.up(HOSTS)
            status = bench.status()
        self._write_inventory(status)
        for phase, title, playbooks in PHASES:
            with self.phase(phase, title):
                command = ["ansible-playbook", "-i", str(self.inventory_file), *playbooks]
                self.program(command, self.slurm_on_bench)
        address = next(host["address"] for host in status["hosts"] if host["name"] == HUB)
        hub = self.hub(address)
        write_atomically(self.authority, run(["ssh", "-F", status["ssh_config"], HUB, "cat", AUTHORITY]))
        passwords = self.passwords()
        title = f"{USERS[0]} runs Python on a slice, beside a job of {USERS[1]}"
        with self.phase("check", title) as say:
            say(f"{USERS[1]} runs a job")
            job = run(["ssh", "-F", status["ssh_config"], HUB, f"runuser -u {USERS[1]} -- {JOB}"]).split()
            context = trust(self.authority.read_text())
            proof = check(hub, context, USERS[0], passwords[USERS[0]], say, Visitor.login_here)
        timings = self.timings(cold=cold, started=bool(started))
        _tell(self.name, hub, self.authority, passwords, job, proof, timings)

    def passwords(self) -> dict[str, str]:
        """The users' passwords, made by the first run."""
        path = self.directory / "passwords"
        if not path.exists():
            lines = "".join(f"{name}:{secrets.token_urlsafe(9)}\n" for name in self.users)
            write_atomically(path, lines, 0o600)
        return dict(line.split(":") for line in path.read_text().splitlines())

    def _write_inventory(self, status: dict[str, Any]) -> None:
        self.passwords()
        hosts = inventory(status).pop("_meta")["hostvars"]
        for name, (_gpu, flavor) in GPUS.items():
            hosts[name]["mig_partition_flavor"] = flavor
        one, nodes = {"hosts": {HUB: None}}, {"hosts": dict.fromkeys(GPUS)}
        groups = {
            **dict.fromkeys(("slurm_controllers", "slurm_accounting", "jupyterhubs"), one),
            **dict.fromkeys(("slurm_nodes", "gpu_nodes"), nodes),
        }
        accounts = [{"name": "physics", "users": self.users}]
        own = {
            "slurm_accounts_accounts": accounts,
            "farm_users": self.users,
            "farm_passwords": str(self.directory / "passwords"),
        }
        found = {"all": {"hosts": hosts, "children": groups, "vars": {**SETTINGS, **own}}}
        write_atomically(self.inventory_file, json.dumps(found, indent=2) + "\n")


def _tell(
    bench: str,
    hub: str,
    authority: Path,
    passwords: Mapping[str, str],
    job: list[str],
    proof: Proof,
    timings: dict[str, Any],
) -> None:
    """Next steps for a newcomer, on standard output."""
    out, facts = for_newcomers()
    out.print(f"\n[bold green]Ready[/] in {timings['total']:.0f} s: [bold]{hub}[/]\n")
    facts.add_row("Users", ", ".join(f"{name} / {word}" for name, word in passwords.items()))
    facts.add_row("Certificate", f"signed by {authority}")
    facts.add_row("A job", f".venv/bin/lab --bench {bench} ssh {HUB} -- runuser -u alice -- {JOB}")
    slices = f"the job saw {job[0]} on {job[1]}, the notebook {proof.slice}"
    facts.add_row("Proven just now", slices)
    facts.add_row("Simulated", "the GPUs (their NVML and device nodes, no CUDA)")
    facts.add_row("Not here", "homes that all machines share: each machine of the demo has its own")
    facts.add_row("Real", "Debian, systemd, SSH, Ansible, Slurm, MariaDB, JupyterHub, the MIG planner, TLS")
    facts.add_row("Stop", "make clean")
    out.print(facts)


if __name__ == "__main__":
    played(
        commands(
            Demo,
            "From nothing to one hub and one queue for three GPU machines. LAB_BENCH names another bench.",
        )
    )
