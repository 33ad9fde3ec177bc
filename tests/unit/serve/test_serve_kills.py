# SPDX-License-Identifier: GPL-3.0-or-later
"""Server and workers are killed at random moments: what was accepted is done or said to have failed."""

from __future__ import annotations

import contextlib
import random
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import serve_fake
from doubles.issuer import Issuer
from gpufarm.serve.tables import Deployment, Run
from serve_site import Site, site
from sqlalchemy import select

RUN = """
import sys
from dataclasses import replace
from pathlib import Path
from gpufarm.serve import settings, worker
from gpufarm.serve.service import Service
worker.PAUSE = 0.05
service = Service(replace(settings.read(Path(sys.argv[1])), lease=1))
worker.Worker(service, (sys.executable, sys.argv[2])).run()
"""


class Processes:
    """A server and workers, started anew when they were killed."""

    def __init__(self, paas: Site, port: int) -> None:
        self.paas, self.port = paas, port
        self.server: subprocess.Popen[bytes] | None = None
        self.workers: list[subprocess.Popen[bytes]] = []

    def start_server(self) -> None:
        command = [sys.executable, "-m", "gpufarm", "serve", "--settings", self.paas.folder / "serve.yml"]
        self.server = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        while self.server.poll() is None:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
                return
            time.sleep(0.05)
        raise AssertionError("the server has ended")

    def start_worker(self) -> None:
        command = [sys.executable, "-c", RUN, self.paas.folder / "serve.yml", serve_fake.__file__]
        self.workers.append(subprocess.Popen(command, stderr=subprocess.DEVNULL))

    def kill_server(self) -> None:
        if self.server:
            self.server.kill()
            self.server.wait()

    def kill_worker(self) -> None:
        worker = self.workers.pop(0)
        worker.kill()
        worker.wait()

    def end(self) -> None:
        self.kill_server()
        while self.workers:
            self.kill_worker()


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@pytest.mark.parametrize("seed", [1])
def test_what_was_accepted_is_done_or_said_to_have_failed(tmp_path: Path, iam: Issuer, seed: int) -> None:
    chance, port = random.Random(seed), free_port()
    with site(tmp_path, iam, listen={"port": port}) as paas:
        processes = Processes(paas, port)
        try:
            processes.start_server()
            for _ in range(2):
                processes.start_worker()
            accepted = requests(paas, processes, chance)
            processes.start_worker()
            settle(paas)
        finally:
            processes.end()
        agree(paas, accepted)


def requests(paas: Site, processes: Processes, chance: random.Random) -> set[str]:
    """Send requests while processes are killed; return the deployments that were accepted."""
    token = paas.iam.token(groups=[], sub="ann", preferred_username="ann")
    client = httpx.Client(
        base_url=f"http://localhost:{processes.port}",
        headers={"Authorization": f"Bearer {token}"},
        timeout=30,
    )
    accepted: set[str] = set()
    for number in range(30):
        with contextlib.suppress(httpx.HTTPError):  # the server was killed before its answer
            if number % 3 or not accepted:
                text = chance.choice(["", "", "fail"])
                body = {"template": paas.template, "parameters": {"text": text}}
                answer = client.post("/deployments", json=body)
                assert answer.status_code == 201, answer.text
                accepted.add(answer.json()["uuid"])
            else:
                answer = client.delete(f"/deployments/{chance.choice(sorted(accepted))}")
                assert answer.status_code in (204, 409), answer.text
        if chance.random() < 0.25:
            if chance.random() < 0.3:
                processes.kill_server()
                processes.start_server()
            else:
                processes.kill_worker()
                processes.start_worker()
        time.sleep(chance.uniform(0, 0.2))
    return accepted


def settle(paas: Site) -> None:
    """Wait until nothing is in progress any more."""
    end = time.monotonic() + 240
    while any(status.endswith("IN_PROGRESS") for status in paas.service.deployments.counts()):
        assert time.monotonic() < end, paas.runs.counts()
        time.sleep(0.2)


def agree(paas: Site, accepted: set[str]) -> None:
    """The database and the deployer say the same."""
    deployer = serve_fake.FakeDeployer(paas.folder / "state", None, print)
    with paas.service.database.reading() as session:
        found = {one.uuid: one for one in session.scalars(select(Deployment))}
        runs = [*session.scalars(select(Run))]
    assert accepted <= found.keys()
    assert not [run for run in runs if run.state in ("queued", "running") and not run.cancel]
    for uuid, one in found.items():
        state = deployer.read(uuid)
        if one.status == "CREATE_COMPLETE":
            assert state["status"] == "deployed", uuid
        elif one.status == "DELETE_COMPLETE":
            assert uuid not in deployer.names()
        else:
            assert one.status == "CREATE_FAILED" and one.reason, one.status
    assert set(deployer.names()) <= found.keys()
