# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster from its template, as a PaaS gets it, with a notebook and jobs over HTTPS of a user new to it.

The hub and what measures it are on different machines.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
import yaml

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.patience import PATIENCE
from lab.spec import HostSpec
from lab.system import run
from lab.visitor import Visitor, trust

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "tosca" / "templates" / "slurm_cluster.yaml"
PROGRAMS = Path(sys.executable).parent
NODE = HostSpec("gpu1", suite="trixie", gpus=("a100-80gb:1",), layers=("gpu",))
HOSTS = [HostSpec("ctl", suite="trixie"), HostSpec("login", suite="trixie"), NODE, HostSpec("iam", iam=True)]
PREPARED = [
    {
        "name": "Prepare Slurm on the bench",
        "hosts": NODE.name,
        "gather_facts": False,
        "tasks": [
            {
                "name": "Prepare the node",
                "ansible.builtin.include_tasks": str(ROOT / "molecule/shared/tasks/slurm_on_bench.yml"),
            }
        ],
    }
]
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE alice"
# Asks Prometheus, as an administrator does on its machine; a target is asked every 30 seconds.
MEASURED = """
cd /etc/gpufarm/monitoring
for attempt in $(seq 90); do
    curl --silent --fail --cacert cert.pem --cert cert.pem --key key.pem \\
        'https://localhost:9090/api/v1/query?query=up' >/tmp/up
    [ "$(grep --only-matching '"1"]' /tmp/up | wc --lines)" = 5 ] && break
    sleep 1
done
cat /tmp/up
"""
UNITS = (
    *("slurmctld", "slurmdbd", "slurmd", "sackd", "slurmrestd", "gpufarm-slurm-proxy"),
    *("munge", "jupyterhub", "prometheus", "prometheus-node-exporter"),
)
FOLDERS = ("/opt/jupyterhub", "/opt/jupyterhub-node", "/etc/jupyterhub", "/etc/gpufarm", "/var/lib/gpufarm")
USES = """
import os, socket, subprocess
print(socket.gethostname(), os.environ["CUDA_VISIBLE_DEVICES"][:4], os.getcwd())
asked = ["srun", "--immediate=60", "--gres=gpu:1g.10gb:1", "hostname"]
print(subprocess.run(asked, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120).stdout)
"""

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("slurm", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up(HOSTS)
        yield made
    finally:
        made.down()


class Site:
    """A pool of the bench's hosts, prepared as those of a site are by their vendor."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.folder, self.status = folder, bench.status()
        self.ssh_config = bench.ssh_config
        self.variables = inventory(self.status)["_meta"]["hostvars"]
        self.pool = folder / "hosts.yml"
        own = {name: said for name, said in self.variables.items() if name != "iam"}
        # Control groups of the bench limit neither processors nor memory.
        common = {"slurm_controller_constrain": ["devices"]}
        self.pool.write_text(yaml.safe_dump({"all": {"hosts": own, "vars": common}}))
        self.environment = {
            **os.environ,
            "PATH": f"{PROGRAMS}:{os.environ['PATH']}",
            "GPUFARM_STATE_DIR": str(folder / "state"),
            # A host of a busy bench may say nothing for longer than a machine of a site.
            "ANSIBLE_SSH_EXTRA_ARGS": f"-o ServerAliveInterval=30 -o ServerAliveCountMax={PATIENCE // 30}",
            "MOLECULE_PROJECT_DIRECTORY": str(ROOT),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(folder),
        }
        files = folder / "state" / "files"
        files.mkdir(parents=True, mode=0o700)
        (files / "iam-ca.crt").write_text(Path(self.status["iam"]["ca_file"]).read_text())
        playbook = folder / "prepare.yml"
        playbook.write_text(yaml.safe_dump(PREPARED))
        self.program("ansible-playbook", "-i", self.pool, playbook)

    def program(self, *words: str | Path) -> str:
        done = subprocess.run(
            [PROGRAMS / words[0], *words[1:]],
            env=self.environment,
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def inputs(self) -> Path:
        path = self.folder / "inputs.yaml"
        machines = ("controller", "login", "node")
        small: dict[str, object] = {f"{kind}_num_cpus": 1 for kind in machines}
        small |= {f"{kind}_mem_size": "1 GB" for kind in machines}
        given = {
            **small,
            "node_count": 1,
            "home_kind": "local",  # the kernel of the bench has no NFS
            "gpu_partition_flavor": "7x 1g.10gb",
            "enable_notebooks": True,
            "jupyter_environments": "",
            "jupyter_memory_choices": ["500M"],
            "jupyter_cpu_limit": 1,
            "enable_slurm_rest": True,
            "enable_monitoring": True,
            "iam_url": self.status["iam"]["url"],
            "iam_ca_file": "iam-ca.crt",
            "iam_groups": "ml-infn-users",
            "users": [{"os_user_name": "alice", "os_user_guid": 3001, "os_user_ssh_public_key": KEY}],
        }
        path.write_text(yaml.safe_dump(given))
        return path

    def run(self, host: str, words: str) -> str:
        return run(["ssh", "-F", self.ssh_config, host, words])

    def ask(self, outputs: dict[str, str], path: str, token: str) -> Any:
        """Ask the REST interface, known by nothing but outputs, with a token."""
        trusted = ssl.create_default_context(cadata=outputs["slurm_rest_ca_certificate"])
        asked = Request(f"{outputs['slurm_rest_endpoint']}/{path}", headers={"X-SLURM-USER-TOKEN": token})
        with urlopen(asked, timeout=60, context=trusted) as answer:
            return json.load(answer)


@pytest.fixture(scope="module")
def site(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(bench, tmp_path_factory.mktemp("site"))


@pytest.mark.timeout(2400)
def test_from_bare_machines_to_notebooks_and_jobs_over_https_and_back(site: Site) -> None:
    site.program(
        "gpufarm", "deploy", TEMPLATE, "--pool", site.pool, "--inputs", site.inputs(), "--name", "farm"
    )
    outputs = json.loads(site.program("gpufarm", "outputs", "farm", "--json"))
    assert outputs["jupyter_endpoint"] == f"https://{outputs['login_ip']}:8888"

    users = json.loads(Path(site.status["iam"]["users_file"]).read_text())
    authority = site.run("login", "cat /etc/jupyterhub/tls/ca.crt")
    trusted = trust(authority, Path(site.status["iam"]["ca_file"]).read_text())
    with Visitor(outputs["jupyter_endpoint"], trusted) as alice:
        alice.login("alice", users["alice"]["password"])
        assert alice.form().free == {"1g.10gb": 7}
        alice.spawn(gpu="1g.10gb")
        assert alice.execute(USES).split() == ["gpu1", "MIG-", "/srv/home/alice", "gpu1"]
        alice.stop()

    assert outputs["slurm_rest_endpoint"] == f"https://{outputs['login_ip']}:6820"
    said = site.run("login", "runuser -u alice -- scontrol token lifespan=600")
    token = said.strip().removeprefix("SLURM_JWT=")
    partitions = site.ask(outputs, "slurm/v0.0.42/partitions", token)["partitions"]
    assert [one["name"] for one in partitions] == ["gpu"]
    jobs = site.ask(outputs, "slurmdb/v0.0.42/jobs", token)["jobs"]
    assert jobs and {one["user"] for one in jobs} == {"alice"}

    seen = json.loads(site.run("ctl", MEASURED))["data"]["result"]
    up = {(one["metric"]["job"], one["metric"]["instance"]): one["value"][1] for one in seen}
    assert up == dict.fromkeys(
        [("prometheus", "ctl"), *(("node", name) for name in ("ctl", "login", "gpu1")), ("hub", "login")], "1"
    )

    site.program("gpufarm", "undeploy", "farm", "--yes")
    for host in ("ctl", "login", "gpu1"):
        known = site.run(host, "systemctl list-unit-files --no-legend --type service --state enabled").split()
        assert not {f"{unit}.service" for unit in UNITS} & {*known}
        assert site.run(host, f"ls -d {' '.join(FOLDERS)} 2>/dev/null || true") == ""
