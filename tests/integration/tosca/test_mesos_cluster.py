# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole cluster on bare machines: set up, scaled, left alone, and taken away without a trace."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.marathon import packages as frameworks
from lab.mesos.fake import package as mesos
from lab.patience import PATIENCE
from lab.spec import HostSpec
from lab.system import run

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = ROOT / "tosca" / "templates" / "mesos_cluster.yaml"
INDIGO = Path(__file__).with_name("indigo_mesos.yaml")
PROGRAMS = Path(sys.executable).parent
HOSTS = ("h1", "h2", "h3")
MASTER_UNITS = ("zookeeper", "mesos-master", "marathon", "chronos", "app-gateway", "app-gateway-routes")
# Files of the roles beside the unit of the same name; data that outlive them are elsewhere.
MASTER_FOLDERS = (
    "/etc/zookeeper",
    "/etc/mesos-master",
    "/etc/marathon",
    "/etc/chronos",
    "/etc/app-gateway",
    "/opt/marathon",
    "/opt/chronos",
)
AGENT_UNITS, AGENT_FOLDERS = ("mesos-agent",), ("/etc/mesos-agent",)
# Of nobody's role: a service that runs, its files, an account.
FOREIGN = {
    "/etc/systemd/system/backup.service": "[Service]\nExecStart=/bin/sleep infinity\n",
    "/etc/marathon.conf": "not ours\n",
    "/opt/backup/data": "not ours either\n",
}
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE ada"

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("mesos", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up([HostSpec(name) for name in HOSTS])
        yield made
    finally:
        made.down()


@pytest.fixture(scope="module")
def site(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Site:
    return Site(bench, tmp_path_factory.mktemp("site"))


class Site:
    """A pool of the bench's hosts, with what a site lays out on them before anybody deploys."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench, self.folder = bench, folder
        self.variables = inventory(bench.status())["_meta"]["hostvars"]
        self.pool, self.inputs = folder / "hosts.yml", folder / "inputs.yaml"
        self.indigo_pool = folder / "indigo_hosts.yml"
        java = {"chronos_java_home": "/srv/java", "zookeeper_heap_mb": 128}
        hosts = {name: variables | java for name, variables in self.variables.items()}
        self.pool.write_text(yaml.safe_dump({"all": {"hosts": hosts}}))
        self.lay_out()

    def address(self, name: str) -> str:
        return str(self.variables[name]["ansible_host"])

    def lay_out(self) -> None:
        """Certificates, and packages of the fakes, as a mirror or a site's own tools would bring them."""
        mirror = self.folder / "mirror"
        mirror.mkdir()
        frameworks.marathon(mirror, "1.11.24")
        frameworks.chronos(mirror)
        mesos.make_package(ROOT / "lab" / "mesos" / "fake", mirror / "mesos.deb", "1.11.0")
        words = [
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-noenc",
            "-days",
            "2",
        ]
        ca, ca_key = self.folder / "ca.pem", self.folder / "ca.key"
        run(["openssl", *words, "-subj", "/CN=bench", "-keyout", ca_key, "-out", ca])
        for host in self.bench.hosts():
            run(["cp", "-r", mirror, host.root / "srv/mirror"])
            run(["cp", "-r", mirror / "java", host.root / "srv/java"])
            tls = host.root / "srv/tls"
            tls.mkdir(mode=0o700)
            names = f"subjectAltName=DNS:{host.name},DNS:localhost,IP:127.0.0.1,IP:{self.address(host.name)}"
            signed = ["-subj", f"/CN={host.name}", "-CA", ca, "-CAkey", ca_key, "-addext", names]
            leaf = ["-addext", "basicConstraints=critical,CA:false"]
            files = ["-keyout", tls / "key.pem", "-out", tls / "own.pem"]
            run(["openssl", *words, *signed, *leaf, *files])
            run(["cp", ca, tls / "ca.pem"])
        given = self.given(mirror)
        self.inputs.write_text(yaml.safe_dump(given))
        # Templates of INDIGO have no words for these.
        said = {
            name.replace("mesos_", f"mesos_{role}_"): value
            for role in ("master", "agent")
            for name, value in given.items()
            if name.startswith(("mesos_url", "mesos_checksum", "mesos_tls"))
        }
        said |= {name: value for name, value in given.items() if "archive" in name}
        pool = yaml.safe_load(self.pool.read_text())
        said["mesos_agent_resources"] = {"cpus": 2, "mem": 512, "disk": 1000}
        said["chronos_environment"] = {"FAKE_GPU_PATCH": "1"}  # INDIGO's knows GPUs
        pool["all"]["vars"] = said
        self.indigo_pool.write_text(yaml.safe_dump(pool))

    def given(self, mirror: Path) -> dict[str, Any]:
        def checksum(name: str) -> str:
            return "sha256:" + hashlib.sha256((mirror / name).read_bytes()).hexdigest()

        return {
            "master_mem_size": "1 GB",
            "master_num_cpus": 1,
            "agent_mem_size": "1 GB",
            "agent_num_cpus": 1,
            "agent_disk_size": "1 GB",
            "mesos_url": "/srv/mirror/mesos.deb",
            "mesos_checksum": checksum("mesos.deb"),
            "mesos_tls_certificate": "/srv/tls/own.pem",
            "mesos_tls_key": "/srv/tls/key.pem",
            "mesos_tls_ca": "/srv/tls/ca.pem",
            "mesos_quotas": [{"role": "ada", "limits": {"cpus": 2}}],
            "marathon_archive_url": "file:///srv/mirror/marathon-1.11.24.tgz",
            "marathon_archive_checksum": checksum("marathon-1.11.24.tgz"),
            "marathon_password": "password-of-marathon",
            "chronos_archive_url": f"file:///srv/mirror/chronos-{frameworks.CHRONOS_VERSION}.jar",
            "chronos_archive_checksum": checksum(f"chronos-{frameworks.CHRONOS_VERSION}.jar"),
            "chronos_password": "password-of-chronos",
            "users": [{"os_user_name": "ada", "os_user_ssh_public_key": KEY}],
        }

    def gpufarm(self, *words: str | Path) -> str:
        done = subprocess.run(
            [PROGRAMS / "gpufarm", *words],
            env=os.environ
            | {"PATH": f"{PROGRAMS}:{os.environ['PATH']}", "GPUFARM_STATE_DIR": str(self.folder / "state")},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
        return done.stdout

    def deploy(self) -> None:
        self.gpufarm("deploy", TEMPLATE, "--pool", self.pool, "--inputs", self.inputs, "--name", "cluster")

    def run(self, host: str, words: str) -> str:
        return run(["ssh", "-F", self.bench.ssh_config, host, words])

    def named(self, address: str) -> str:
        return next(name for name in HOSTS if self.address(name) == address)

    def ask(self, master: str, url: str, authority: str, login: str) -> Any:
        """Response of an API on a master to a client with its authority and name."""
        curl = f"curl --silent --show-error --fail --max-time {PATIENCE}"
        return json.loads(self.run(master, f"{curl} --cacert {authority} --user {login} {url}"))

    def agents_of(self, master: str) -> list[str]:
        """The addresses of the agents that a master counts on."""
        secret = self.run(master, "cat /etc/mesos-master/secrets/principals/operator").strip()
        call = f"""--json '{{"type": "GET_AGENTS"}}' https://{self.address(master)}:5050/api/v1"""
        known = self.ask(master, call, "/srv/tls/ca.pem", f"operator:{secret}")["get_agents"]["agents"]
        return sorted(agent["agent_info"]["hostname"] for agent in known if agent["active"])

    def state(self, host: str, unit: str) -> str:
        return self.run(host, f"systemctl is-active {unit} || true").strip()


@pytest.mark.timeout(2400)
def test_from_bare_machines_and_back(bench: Bench, site: Site) -> None:
    for host in bench.hosts():
        for path, content in FOREIGN.items():
            file = host.root / path.removeprefix("/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(content)
        site.run(host.name, "useradd grace; systemctl daemon-reload; systemctl start backup")

    site.deploy()
    outputs = json.loads(site.gpufarm("outputs", "cluster", "--json"))
    (address,), agents = outputs.pop("node_ips"), outputs.pop("agent_ips")
    master, kept, gone = (site.named(one) for one in (address, *agents))
    full_name = site.run(master, "hostname --fqdn").strip()
    assert outputs == {
        "apps_endpoint": f"https://{address}",
        "mesos_endpoint": f"https://{address}:5050",
        "marathon_endpoint": f"https://{full_name}:8443",
        "chronos_endpoint": f"https://{full_name}:8444",
    }
    assert {unit: site.state(master, unit) for unit in MASTER_UNITS} == dict.fromkeys(MASTER_UNITS, "active")
    assert site.agents_of(master) == sorted(agents)
    for name, path in (("marathon", "/v2/info"), ("chronos", "/v1/scheduler/jobs")):
        url = outputs[f"{name}_endpoint"] + path
        assert site.ask(master, url, f"/etc/{name}/ca.pem", f"{name}:password-of-{name}") is not None
    gateway = "curl --silent --cacert /etc/app-gateway/tls/self-signed.crt"
    site.run(master, f"{gateway} {outputs['apps_endpoint']}")
    assert site.run(gone, "id -un ada").strip() == "ada"

    invocation = "systemctl show --property InvocationID mesos-agent"
    before = site.run(kept, invocation)
    site.gpufarm("scale", "cluster", "agents=1")
    assert site.agents_of(master) == [site.address(kept)]
    assert site.state(gone, "mesos-agent") == "inactive"
    site.gpufarm("scale", "cluster", "agents=2")
    assert site.agents_of(master) == sorted(agents)
    assert site.run(kept, invocation) == before, "nobody needed to touch it"

    site.deploy()
    steps = json.loads((site.folder / "state" / "cluster.json").read_text())["steps"]
    assert {name: step["changed"] for name, step in steps.items() if step["changed"]} == {}
    site.gpufarm("update", "cluster", "--inputs", site.inputs)
    runs = json.loads(site.gpufarm("history", "cluster", "--json"))
    assert [entry["done"] for entry in runs if entry["what"].startswith("update")] == [0]

    site.gpufarm("undeploy", "cluster", "--yes")
    assert "cluster" not in site.gpufarm("status")
    for name in HOSTS:
        units, folders = (MASTER_UNITS, MASTER_FOLDERS) if name == master else (AGENT_UNITS, AGENT_FOLDERS)
        known = site.run(name, "systemctl list-unit-files --no-legend --type service").split()
        assert not {f"{unit}.service" for unit in units} & set(known)
        assert site.run(name, f"ls -d {' '.join(folders)} 2>/dev/null || true") == ""
        for path, content in FOREIGN.items():
            assert site.run(name, f"cat {path}") == content
        assert site.state(name, "backup") == "active"
        assert site.run(name, "id -un grace").strip() == "grace"
    assert "!" in site.run(kept, "getent shadow ada")


@pytest.mark.timeout(2400)
def test_a_cluster_in_the_words_of_indigo(site: Site) -> None:
    inputs = site.folder / "indigo_inputs.yaml"
    inputs.write_text(
        yaml.safe_dump(
            {f"{name}_password": f"password-of-{name}" for name in ("marathon", "chronos", "tensorflow")}
        )
    )
    deploy = ("deploy", INDIGO, "--pool", site.indigo_pool, "--inputs", inputs, "--name", "indigo")
    site.gpufarm(*deploy)
    outputs = json.loads(site.gpufarm("outputs", "indigo", "--json"))
    places = {name: site.named(address) for name, address in outputs.items()}
    assert sorted(places.values()) == list(HOSTS)
    units = {
        "master": ("zookeeper", "mesos-master", "marathon", "chronos"),
        "slave": AGENT_UNITS,
        "load_balancer": ("app-gateway", "app-gateway-routes"),
    }
    for name, host in places.items():
        assert {unit: site.state(host, unit) for unit in units[name]} == dict.fromkeys(units[name], "active")
    assert site.agents_of(places["master"]) == [outputs["slave"]]
    full_name = site.run(places["master"], "hostname --fqdn").strip()
    for name, port, path in (("marathon", 8443, "/v2/info"), ("chronos", 8444, "/v1/scheduler/jobs")):
        url = f"https://{full_name}:{port}{path}"
        login = f"admin:password-of-{name}"
        assert site.ask(places["master"], url, f"/etc/{name}/ca.pem", login) is not None
    apps = f"https://{full_name}:8443/v2/apps"
    login = "admin:password-of-marathon"
    (app,) = site.ask(places["master"], apps, "/etc/marathon/ca.pem", login)["apps"]
    assert app["id"].startswith("/tensorflow-")
    assert (app["mem"], app["tasksRunning"]) == (64, 1)
    assert app["env"] == {"PASSWORD": "password-of-tensorflow"}

    site.gpufarm(*deploy)
    steps = json.loads((site.folder / "state" / "indigo.json").read_text())["steps"]
    assert {name: step["changed"] for name, step in steps.items() if step["changed"]} == {}

    site.gpufarm("undeploy", "indigo", "--yes")
    for name, host in places.items():
        known = site.run(host, "systemctl list-unit-files --no-legend --type service").split()
        assert not {f"{unit}.service" for unit in units[name]} & set(known)
