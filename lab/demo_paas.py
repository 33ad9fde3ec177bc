"""From nothing to a service by which users deploy on machines: `python -m lab.demo_paas up`, and `down`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.inventory import inventory
from lab.spec import HostSpec
from lab.stage import Stage, commands, for_newcomers, images_missing, played
from lab.system import require_root, write_atomically
from lab.tokens import access_token, client_of
from lab.visitor import trust

SERVICE, MACHINE, USER = "paas", "gpu1", "alice"
HOSTS = [HostSpec(SERVICE), HostSpec(MACHINE, gpus=("a100-80gb:1",)), HostSpec("iam", iam=True)]
AUTHORITY = "/etc/gpufarm-serve-proxy/self-signed.crt"  # of the role paas_service
TEMPLATE, FLAVOR = "gpu_node", "7x 1g.10gb MIG GPUs"
NOTEBOOKS = "ml_infn"
GROUP = "ml-infn-users"
# Where the worker finds what the role writes for it.
FILES = "/etc/gpufarm-serve/files"


@dataclass
class Demo(Stage):
    """The demo of the deployer as a service."""

    name: str = field(default_factory=lambda: os.environ.get("LAB_BENCH", "demo-paas"))

    def up(self) -> None:
        """Bring everything up, deploy as a user, remove that again, and tell how to use the service."""
        require_root()
        cold = images_missing()
        title = "Three hosts: a service, a machine with a simulated A100, an identity provider"
        with self.phase("bench", title) as say:
            bench = self.bench(say)
            started = bench.up(HOSTS)
            status = bench.status()
        address = next(host["address"] for host in status["hosts"] if host["name"] == SERVICE)
        with self.phase(
            "service", "Server, two workers, proxy; the machine lets the workers in", moves=False
        ):
            files = self._inventory(status, f"https://{address}/ui/signed-in")
            playbook = ["ansible-playbook", "-i", str(files), "gpufarm.cluster.paas_service"]
            sys.stderr.write(self.program(playbook, {"ANSIBLE_DISPLAY_OK_HOSTS": "false"}))
        authorities = self.authorities(status, SERVICE, AUTHORITY, "paas-ca.crt")
        logins = json.loads(Path(status["iam"]["users_file"]).read_text())
        title = f"{USER} deploys seven slices of a GPU, and removes them"
        with self.phase("check", title, moves=False) as say:
            context = trust(*(file.read_text() for file in authorities))
            token = access_token(status["iam"]["url"], context, USER, logins[USER]["password"])
            write_atomically(self._token, token + "\n", 0o600)
            outputs = self._checked(f"https://{address}", say)
        timings = self.timings(cold=cold, started=bool(started))
        _tell(f"https://{address}", self, outputs, logins[USER]["password"], status["iam"]["url"], timings)

    @property
    def _token(self) -> Path:
        return self.directory / "token"

    @property
    def client(self) -> dict[str, str]:
        """Variables with which ``gpufarm`` asks as the user of the demo."""
        return {
            "GPUFARM_TOKEN_FILE": str(self._token),
            "GPUFARM_CA_FILE": str(self.directory / "paas-ca.crt"),
        }

    def _inventory(self, status: dict[str, Any], back: str) -> Path:
        found = inventory(status)
        hosts = found.pop("_meta")["hostvars"]
        iam, authority = status["iam"]["url"], Path(status["iam"]["ca_file"]).read_text()
        file = self.directory / "client.json"
        client = client_of(iam, trust(authority), file, "Deployments", back)
        machine = {"ansible_host": hosts[MACHINE]["ansible_host"], "ansible_user": "root"}
        settings = {
            "paas_service_files": {"iam-ca.crt": authority},
            "paas_service_secrets": {"pages": client["client_secret"]},
            "paas_service_pages": {
                "issuer": iam,
                "client_id": client["client_id"],
                "client_secret_file": "server/pages",
            },
            "paas_service_issuers": [
                {
                    "issuer": iam,
                    "ca_file": "files/iam-ca.crt",
                    "administrators": "ml-infn",
                    "login_claim": "preferred_username",
                }
            ],
            "paas_service_templates": {
                name: {"template": name, "groups": [GROUP]} for name in (TEMPLATE, NOTEBOOKS)
            },
            # Hubs have to know the authority of the provider of the bench.
            "paas_service_pool": {
                "all": {
                    "hosts": {MACHINE: machine},
                    "vars": {"jupyterhub_iam_ca_file": f"{FILES}/iam-ca.crt"},
                }
            },
        }
        groups = {
            "paas_services": {"hosts": {SERVICE: None}, "vars": settings},
            "paas_pool": {"hosts": {MACHINE: None}},
        }
        path = self.directory / "inventory.json"
        content = {"all": {"hosts": hosts, "children": groups}}
        write_atomically(path, json.dumps(content, indent=2) + "\n", 0o600)
        return path

    def _checked(self, url: str, say: Callable[[str], None]) -> dict[str, Any]:
        gpufarm = ["gpufarm", "--server", url]
        ask = ["deploy", TEMPLATE, "--group", GROUP, "--input", f"gpu_partition_flavor={FLAVOR}"]
        made = json.loads(self.program([*gpufarm, *ask, "--json"], self.client))["deployment"]
        say(f"{made['name']} is {made['status']}")
        self.program([*gpufarm, "delete", made["name"], "--yes"], self.client)
        return made["outputs"]


def _tell(url: str, demo: Demo, outputs: Any, password: str, iam: str, timings: dict[str, Any]) -> None:
    """Next steps for a newcomer, on standard output."""
    out, facts = for_newcomers()
    out.print(f"\n[bold green]Ready[/] in {timings['total']:.0f} s: [bold]{url}/ui[/]\n")
    settings = "\n".join(f"export {name}={value}" for name, value in demo.client.items())
    deploy = f'.venv/bin/gpufarm deploy {TEMPLATE} --input gpu_partition_flavor="{FLAVOR}"'
    curl = 'curl --cacert $GPUFARM_CA_FILE -H "Authorization: Bearer $(cat $GPUFARM_TOKEN_FILE)"'
    facts.add_row("Sign in", f"{USER}, password {password}, of the group {GROUP}")
    facts.add_row(
        "There", f"{NOTEBOOKS} sets up notebooks; say {iam}, no CVMFS, and a certificate that is self-signed"
    )
    facts.add_row(
        "Or deploy here", f"export GPUFARM_SERVER={url}\n{settings}\n{deploy}\n.venv/bin/gpufarm list"
    )
    facts.add_row("The same by REST", f'{curl} "{url}/deployments?createdBy=me"')
    facts.add_row("Proven just now", f"{USER} deployed {TEMPLATE} on {MACHINE}, and removed it")
    facts.add_row("Its outputs were", json.dumps(outputs)[:200])
    facts.add_row("Simulated", "the A100 (its NVML and device nodes, no CUDA) and the people")
    facts.add_row(
        "Real", "Debian, systemd, SSH, Ansible, nginx, the service, the MIG planner, OpenID Connect, TLS"
    )
    facts.add_row("Stop", "make clean")
    out.print(facts)


if __name__ == "__main__":
    played(
        commands(
            Demo,
            "From nothing to a service by which users deploy. LAB_BENCH names another bench.",
        )
    )
