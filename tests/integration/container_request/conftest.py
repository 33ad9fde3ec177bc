"""Doubles of Marathon, Chronos and a master of Mesos, and who asks them: the deployer, or a role alone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "tosca" / "templates"
PASSWORD = "correct horse battery"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxQ0O1hN9fDqkW0cYVh1fHj0cZ8mX0m6Wq3b0n8v0aX ada@laptop"
GPUS = ("--enable_features", "gpu_resources")


def scalars(**amounts: float) -> list[dict[str, Any]]:
    return [{"name": name, "type": "SCALAR", "scalar": {"value": value}} for name, value in amounts.items()]


class Mesos(BaseHTTPRequestHandler):
    """The answers of a master to what the module mesos_info asks (docs/operator-http-api.md,
    docs/endpoints/master/roles.md): one agent with two GPUs of which one is free, and a user with a quota.
    """

    answers = {  # noqa: RUF012
        "GET_VERSION": {"version_info": {"version": "1.11.0"}},
        "GET_AGENTS": {
            "agents": [
                {
                    "agent_info": {"id": {"value": "S0"}, "hostname": "gpu1", "port": 5051},
                    "active": True,
                    "total_resources": scalars(cpus=8, mem=16384, disk=100000, gpus=2),
                    "allocated_resources": scalars(cpus=1, gpus=1),
                }
            ]
        },
        "GET_QUOTA": {
            "status": {"configs": [{"role": "ada", "limits": {"gpus": {"value": 1}, "cpus": {"value": 4}}}]}
        },
        "GET_WEIGHTS": {},
    }

    def do_POST(self) -> None:
        kind = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["type"]
        self._say({"type": kind, kind.lower(): self.answers[kind]})

    def do_GET(self) -> None:
        self._say({"roles": [{"name": "ada", "quota": {"consumed": {}}}]})

    def _say(self, document: Any) -> None:
        text = json.dumps(document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_arguments: Any) -> None:
        """Say nothing."""


class Site:
    """A folder with an inventory that says whom to ask, and the deployer."""

    def __init__(self, root: Path, marathon: str, chronos: str, mesos: str) -> None:
        self.root, self.marathon, self.chronos = root, marathon, chronos
        self.pool = root / "hosts.yml"
        variables = {
            "container_request_marathon_urls": [marathon],
            "container_request_mesos_urls": [mesos],
            "container_request_gateway": "apps.example.org",
            "marathon_app_urls": [marathon],
            "chronos_job_urls": [chronos],
        }
        self.pool.write_text(yaml.safe_dump({"all": {"hosts": {"unused": {}}, "vars": variables}}))

    def gpufarm(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "gpufarm", *words],
            env=os.environ | {"GPUFARM_STATE_DIR": str(self.root / "state")} | environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    def deploy(self, template: str, *words: str) -> subprocess.CompletedProcess[str]:
        return self.gpufarm(
            *("deploy", str(TEMPLATES / f"{template}.yaml"), "--pool", str(self.pool), *words),
            GPUFARM_INPUT_JUPYTER_PASSWORD=PASSWORD,
        )

    def play(self, role: str, *words: str, **variables: Any) -> subprocess.CompletedProcess[str]:
        """Run a role on this machine, and keep the fact with its result in the folder."""
        result = self.root / "result.json"
        result.unlink(missing_ok=True)
        tasks = [
            {"name": "Run", "include_role": {"name": f"gpufarm.cluster.{role}"}, "vars": variables},
            {
                "name": "Keep what it returns",
                "copy": {
                    "content": f"{{{{ {role}_result | to_json }}}}",
                    "dest": str(result),
                    "mode": "0600",
                },
                "changed_when": False,
                "when": f"{role}_result is defined",
            },
        ]
        book = self.root / "play.yml"
        book.write_text(json.dumps([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
        return subprocess.run(
            ["ansible-playbook", "-i", self.pool, "--diff", *words, book],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )

    def result(self) -> dict[str, Any]:
        return json.loads((self.root / "result.json").read_text())

    def jobs(self) -> dict[str, dict[str, Any]]:
        with urllib.request.urlopen(f"{self.chronos}/v1/scheduler/jobs") as answer:
            return {one["name"]: one for one in json.load(answer)}

    def app(self, path: str) -> dict[str, Any] | None:
        with urllib.request.urlopen(f"{self.marathon}/v2/apps") as answer:
            return next((one for one in json.load(answer)["apps"] if one["id"] == path), None)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def double(name: str, *options: str) -> Iterator[str]:
    """Run a double; its URL."""
    port = free_port()
    common = (
        "--master",
        "zk://localhost:2181/mesos",
        "--hostname",
        "127.0.0.1",
        "--http_address",
        "127.0.0.1",
    )
    words = [sys.executable, "-m", f"lab.{name}.server", *common, "--http_port", str(port), *options]
    process = subprocess.Popen(words, cwd=ROOT, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 60
    while True:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/ping").close()
            break
        except OSError:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    process.terminate()
    process.wait()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("site")
    mesos = ThreadingHTTPServer(("127.0.0.1", 0), Mesos)
    threading.Thread(target=mesos.serve_forever, daemon=True).start()
    with contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context(double("marathon", "--disable_ha", "--internal_store_backend", "mem", *GPUS)),
            stack.enter_context(double("chronos", "--zk_hosts", "mem")),
        ]
        yield Site(root, *urls, f"http://127.0.0.1:{mesos.server_address[1]}")
    mesos.shutdown()
    mesos.server_close()
