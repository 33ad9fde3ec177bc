"""From nothing to a notebook on a GPU slice: `python -m lab.demo up`, and `down` to remove all of it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.table import Table

from lab.selfcheck import Proof, check
from lab.spec import HostSpec
from lab.stage import Stage, commands, for_newcomers, images_missing, played
from lab.system import require_root, write_atomically
from lab.visitor import trust

TEMPLATE = Path("tosca/templates/ml_infn.yaml")
POOL = Path("inventories/lab")
GPU_HOST = "gpu1"
HOSTS = [HostSpec(GPU_HOST, gpus=("a100-80gb:1",)), HostSpec("iam", iam=True)]
FLAVOR = "7x 1g.10gb MIG GPUs"
GROUPS = {"iam_groups": "ml-infn-users", "iam_admin_groups": "ml-infn"}
USER = "alice"
HUB_AUTHORITY = (
    "/etc/jupyterhub/tls/ca.crt"  # where role jupyterhub keeps the certificate that users must trust
)


@dataclass
class Demo(Stage):
    """The demo of notebooks; its deployment has its name, too.

    Attributes:
        inputs: further inputs of the template, each as KEY=VALUE.
    """

    name: str = field(default_factory=lambda: os.environ.get("LAB_BENCH", "demo"))
    inputs: tuple[str, ...] = ()

    @property
    def deployments(self) -> Path:
        """The deployer's state: apart from that of real deployments, whose machines outlive a bench."""
        return self.directory / "deployments"

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the deployer."""
        return {**super().environment, "GPUFARM_STATE_DIR": str(self.deployments)}

    def up(self) -> None:
        """Bring everything up, prove it, and tell how to use it."""
        require_root()
        cold = images_missing()
        with self.phase("bench", "Two hosts: a simulated A100, an identity provider") as say:
            bench = self.bench(say)
            if not any(host["name"] == GPU_HOST for host in bench.status()["hosts"]):
                shutil.rmtree(self.deployments, ignore_errors=True)  # of a bench that is gone
            started = bench.up(HOSTS)
            status = bench.status()
        with self.phase("service", "GPU driver check, seven MIG slices, JupyterHub", moves=False):
            self._deploy(status["iam"])
        outputs = self.outputs()
        logins = json.loads(Path(status["iam"]["users_file"]).read_text())
        authorities = self.authorities(status, GPU_HOST, HUB_AUTHORITY, "hub-ca.crt")
        with self.phase("check", f"{USER} signs in and runs Python on a slice") as say:
            context = trust(*(file.read_text() for file in authorities))
            proof = check(outputs["jupyter_endpoint"], context, USER, logins[USER]["password"], say)
        timings = self.timings(cold=cold, started=bool(started))
        _tell(outputs, logins, authorities, proof, status["iam"]["url"], timings)

    def outputs(self) -> dict[str, Any]:
        """The outputs of the deployment: `jupyter_endpoint`, `gpu_slices` and others of the template."""
        return json.loads(self.program(["gpufarm", "outputs", self.name, "--json"]))

    def _deploy(self, iam: dict[str, str]) -> None:
        files = self.deployments / "files"  # where the deployer looks for files that inputs name
        files.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(files / "iam-ca.crt", Path(iam["ca_file"]).read_text())
        inputs = {
            "iam_url": iam["url"],
            "iam_ca_file": "iam-ca.crt",
            "gpu_partition_flavor": FLAVOR,
            "num_gpus": "1",
            **GROUPS,
        }
        every = [f"{key}={value}" for key, value in inputs.items()] + list(self.inputs)
        options = [word for value in every for word in ("--input", value)]
        self.program(["gpufarm", "deploy", str(TEMPLATE), "--pool", str(POOL), "--name", self.name, *options])


def _tell(
    outputs: dict[str, Any],
    logins: dict[str, Any],
    authorities: list[Path],
    proof: Proof,
    iam: str,
    timings: dict[str, Any],
) -> None:
    """Next steps for a newcomer, on standard output."""
    hub = outputs["jupyter_endpoint"]
    out, facts = for_newcomers()
    out.print(f"\n[bold green]Ready[/] in {timings['total']:.0f} s: [bold]{hub}[/]\n")
    people = Table(box=None, pad_edge=False)
    for title in ("user", "password", "groups", "may"):
        people.add_column(title)
    allowed, admins = GROUPS["iam_groups"], GROUPS["iam_admin_groups"]
    for name, login in logins.items():
        groups = login["groups"]
        rights = "use and administer the hub" if admins in groups else "use the hub"
        people.add_row(
            name, login["password"], ", ".join(groups), rights if allowed in groups else "nothing: is refused"
        )
    out.print(people)
    free = ", ".join(f"{count} x {profile}" for profile, count in (proof.free or {}).items())
    facts.add_row("Free GPU slices", free or f"the form shows them; {USER} has a notebook running")
    facts.add_row("Proven just now", f"{USER} signed in; Python in a notebook saw one slice, {proof.slice}")
    facts.add_row("Certificates", "accept two warnings, or trust " + "\nand ".join(map(str, authorities)))
    facts.add_row("Another user", f"sign out at {hub}/hub/logout and at {iam}/logout")
    if os.environ.get("SSH_CONNECTION"):
        machine = os.environ["SSH_CONNECTION"].split()[2]
        browser = f"chromium --proxy-server=socks5://localhost:1080 --user-data-dir=demo {hub}"
        facts.add_row("From your desk", f"ssh -D 1080 {machine}\n{browser}")
    facts.add_row("Simulated", "the A100 (its NVML and device nodes, no CUDA) and the three people")
    facts.add_row("Real", "Debian, systemd, SSH, Ansible, the MIG planner, JupyterHub, OpenID Connect, TLS")
    facts.add_row("Stop", "make clean")
    out.print()
    out.print(facts)


if __name__ == "__main__":
    inputs = click.Option(
        ["--input", "inputs"],
        multiple=True,
        metavar="KEY=VALUE",
        help="Input of the template; may be repeated.",
    )
    played(
        commands(
            Demo,
            "From nothing to a notebook on a GPU slice. LAB_BENCH names another bench.",
            [inputs],
        )
    )
