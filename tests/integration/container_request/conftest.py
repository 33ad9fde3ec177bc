"""Fakes of Marathon, Chronos and a master of Mesos, and a deployer that asks them."""

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
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab.mesos import one_agent
from lab.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
TEMPLATES = ROOT / "tosca" / "templates"
PASSWORD = "correct horse battery"
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJxQ0O1hN9fDqkW0cYVh1fHj0cZ8mX0m6Wq3b0n8v0aX ada@laptop"
GPUS = ("--enable_features", "gpu_resources")


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
            "chronos_job_mesos_urls": [mesos],
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

    def runs(self, *tasks: tuple[str, str, str], **printed: str) -> None:
        """Have Mesos tell tasks, each with its framework, id and state, and what they have printed."""
        now = time.time()
        entries, files = [], {}
        for number, (framework, task, state) in enumerate(tasks):
            statuses = [{"state": name, "timestamp": now + number} for name in ("TASK_RUNNING", state)]
            ids = {
                "task_id": {"value": task},
                "framework_id": {"value": framework},
                "agent_id": {"value": "S1"},
            }
            entries.append({**ids, "state": state, "statuses": statuses})
            folder = f"/frameworks/{framework}/executors/{task}/runs/latest"
            files |= {f"{folder}/{stream}": printed.get(stream, "") for stream in ("stdout", "stderr")}
        told = {"tasks": entries, "frameworks": sorted({one[0] for one in tasks}), "files": files}
        (self.root / "told.json").write_text(json.dumps(told))

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
def fake(name: str, *options: str) -> Iterator[str]:
    """Run a fake; its URL."""
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
    end = time.monotonic() + PATIENCE
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
    told = root / "told.json"
    told.write_text('{"tasks": [], "frameworks": [], "files": {}}')
    mesos = one_agent.server(0, told)
    threading.Thread(target=mesos.serve_forever, daemon=True).start()
    with contextlib.ExitStack() as stack:
        urls = [
            stack.enter_context(fake("marathon", "--disable_ha", "--internal_store_backend", "mem", *GPUS)),
            stack.enter_context(fake("chronos", "--zk_hosts", "mem")),
        ]
        yield Site(root, *urls, f"http://127.0.0.1:{mesos.server_address[1]}")
    mesos.shutdown()
    mesos.server_close()
