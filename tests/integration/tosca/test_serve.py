# SPDX-License-Identifier: GPL-3.0-or-later
"""A user deploys a template on a host of the bench, with nothing but HTTP, and removes it."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519
from doubles.issuer import Issuer, issuer

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.patience import PATIENCE
from lab.spec import HostSpec

TEMPLATE = Path(__file__).parent / "served" / "accounts.yaml"

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("served", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up([HostSpec("m1")])
        yield made
    finally:
        made.down()


@pytest.fixture
def iam(tmp_path: Path) -> Iterator[Issuer]:
    with issuer(tmp_path / "iam") as made:
        yield made


@pytest.fixture
def client(bench: Bench, iam: Issuer, tmp_path: Path) -> Iterator[httpx.Client]:
    """A user in front of a server and a worker."""
    pool = {"all": {"hosts": inventory(bench.status())["_meta"]["hostvars"]}}
    (tmp_path / "pool.yml").write_text(yaml.safe_dump(pool))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    settings = {
        "url": f"https://localhost:{port}",
        "folder": "serve",
        "database": f"sqlite:///{tmp_path}/serve.db",
        "listen": {"port": port},
        "deployer": {"state": "state", "pool": "pool.yml"},
        "issuers": [{"issuer": iam.url, "ca_file": str(iam.ca_file)}],
        "templates": {"accounts": {"template": str(TEMPLATE), "groups": ["physics"]}},
    }
    (tmp_path / "serve.yml").write_text(yaml.safe_dump(settings))
    command = [sys.executable, "-m", "gpufarm", "serve", "--settings", tmp_path / "serve.yml"]
    processes = [subprocess.Popen(command), subprocess.Popen([*command, "worker"])]
    try:
        wait(lambda: listens(port))
        yield httpx.Client(
            base_url=f"http://localhost:{port}",
            headers={"Authorization": f"Bearer {iam.token()}"},
            timeout=60,
        )
    finally:
        for process in processes:
            process.terminate()
        for process in processes:
            process.wait()


def listens(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def wait(true: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.5)


def ended(client: httpx.Client, own: str) -> dict[str, Any]:
    """Wait as the dashboard does, and return the deployment."""
    wait(lambda: not client.get(f"/deployments/{own}").json()["status"].endswith("IN_PROGRESS"))
    return client.get(f"/deployments/{own}").json()


def test_a_template_on_a_host(bench: Bench, client: httpx.Client) -> None:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    form = (serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    users = [{"os_user_name": "ann", "os_user_ssh_public_key": key.public_bytes(*form).decode()}]
    body = {"template": TEMPLATE.read_text(), "parameters": {"users": users}, "userGroup": "physics"}
    answer = client.post("/deployments/", json=body)
    assert answer.status_code == 201, answer.text
    own = answer.json()["uuid"]
    machine = bench.host("m1")

    found = ended(client, own)
    log = client.get(f"/deployments/{own}/log").text
    assert found["status"] == "CREATE_COMPLETE", (found, log)
    assert found["outputs"]["node_ip"] == found["outputs"]["address"] == machine.address
    assert "accounts.configure on m1: ok" in log
    assert "\nann:" in (machine.root / "etc/passwd").read_text()
    (server, accounts) = client.get(f"/deployments/{own}/resources").json()["content"]
    assert server["requiredBy"] == [accounts["uuid"]]
    told = json.loads(server["metadata"]["VirtualMachineInfo"])["vmProperties"]
    assert told[0]["net_interface.0.ip"] == machine.address
    assert told[0]["memory.size"] > 2**20 and told[0]["cpu.count"] >= 1

    assert client.delete(f"/deployments/{own}").status_code == 204
    found = ended(client, own)
    assert found["status"] == "DELETE_COMPLETE", (found, client.get(f"/deployments/{own}/log").text)
    shadow = (machine.root / "etc/shadow").read_text().splitlines()
    assert not [line for line in shadow if line.startswith("ann:") and not line.startswith("ann:!")]
