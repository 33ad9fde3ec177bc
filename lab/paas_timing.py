"""How fast the service answers: `python -m lab.paas_timing`.

The real server with its database, in a process of its own, a hundred deployments that wait in its queue, and
users with tokens of an issuer on this machine. It needs neither root nor a bench.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import click
import httpx
import yaml
from doubles.issuer import Issuer, issuer
from rich.console import Console
from rich.table import Table

from lab.errors import LabError

DEPLOYMENTS = 100
LISTS = 50  # lists whose times are compared
USERS = 8  # requests at once
REQUESTS = 400  # of all users together
PATIENCE = 60  # seconds until the server answers
TICKS = os.sysconf("SC_CLK_TCK")
TEMPLATE = """\
tosca_definitions_version: tosca_simple_yaml_1_3
metadata: {template_name: timing}
topology_template:
  inputs:
    cpus: {type: integer, default: 1}
  node_templates:
    server:
      type: tosca.nodes.Compute
      capabilities:
        host:
          properties: {num_cpus: {get_input: cpus}}
"""


@contextmanager
def serving(folder: Path, tokens: Issuer) -> Iterator[tuple[httpx.Client, subprocess.Popen[bytes]]]:
    """Run the server.

    Args:
        folder: an empty one.
        tokens: issuer that it trusts.

    Returns:
        A client with the token of a user, and the process.

    Raises:
        LabError: it does not answer.
    """
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    (folder / "timing.yaml").write_text(TEMPLATE)
    settings = {
        "url": "https://paas.example.org",
        "folder": "serve",
        "listen": {"port": port},
        "deployer": {"state": "state", "pool": "pool.yml"},
        "issuers": [{"issuer": tokens.url, "ca_file": str(tokens.ca_file)}],
        "templates": {"timing": {"template": "timing.yaml"}},
        "limits": {"requests_per_minute": 100_000},
    }
    (folder / "serve.yml").write_text(yaml.safe_dump(settings))
    program = [str(Path(sys.executable).parent / "gpufarm"), "serve", "--settings", str(folder / "serve.yml")]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(program, stdout=log, stderr=log) as process,
        httpx.Client(
            base_url=f"http://127.0.0.1:{port}",
            headers={"Authorization": f"Bearer {tokens.token()}"},
            limits=httpx.Limits(max_connections=USERS, max_keepalive_connections=USERS),
            timeout=PATIENCE,
        ) as client,
    ):
        try:
            end = time.monotonic() + PATIENCE
            while not _answers(client):
                if process.poll() is not None or time.monotonic() > end:
                    raise LabError(f"the server does not answer: {(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.1)
            yield client, process
        finally:
            process.terminate()
            process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/info").is_success
    except httpx.TransportError:
        return False


def listed(client: httpx.Client, size: int) -> float:
    """Return the median of seconds that a list takes.

    Args:
        client: of a user.
        size: deployments on a page.
    """
    found = []
    for _ in range(LISTS):
        start = time.monotonic()
        content = (
            client.get("/deployments", params={"createdBy": "me", "size": size})
            .raise_for_status()
            .json()["content"]
        )
        found.append(time.monotonic() - start)
        if len(content) != size:
            raise LabError(f"the list has {len(content)} deployments instead of {size}")
    return statistics.median(found)


def crowd(client: httpx.Client, process: subprocess.Popen[bytes], paths: list[str]) -> tuple[float, float]:
    """Have users ask at once.

    Args:
        client: of a user.
        process: the server.
        paths: what they ask for, in turn.

    Returns:
        Requests a second, and CPU seconds of the server for each request.
    """
    before, start = _cpu(process), time.monotonic()
    with ThreadPoolExecutor(USERS) as users:
        asked = (paths[number % len(paths)] for number in range(REQUESTS))
        for answer in users.map(client.get, asked):
            answer.raise_for_status()
    clock = time.monotonic() - start
    return REQUESTS / clock, (_cpu(process) - before) / REQUESTS


def _cpu(process: subprocess.Popen[bytes]) -> float:
    """CPU seconds of a process so far (proc_pid_stat(5))."""
    fields = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@click.command(help="Measure lists of deployments, and requests of a crowd.")
def main() -> None:
    """Measure, and print."""
    with tempfile.TemporaryDirectory(prefix="gpufarm-timing-") as name:
        folder = Path(name)
        with issuer(folder / "issuer") as tokens, serving(folder, tokens) as (client, process):
            made = []
            for number in range(DEPLOYMENTS):
                body = {"template": TEMPLATE, "parameters": {"cpus": 1 + number % 8}}
                made.append(client.post("/deployments", json=body).raise_for_status().json()["uuid"])
            one, all_of_them = listed(client, 1), listed(client, DEPLOYMENTS)
            version = crowd(client, process, ["/info"])
            mixed = crowd(
                client,
                process,
                ["/deployments?createdBy=me&size=10", *(f"/deployments/{uuid}" for uuid in made)],
            )
    table = Table(box=None, pad_edge=False, show_header=False)
    table.add_row(f"a list of {DEPLOYMENTS} deployments", f"{1000 * all_of_them:.0f} ms (aim 100)")
    table.add_row("times a list of one", f"{all_of_them / one:.1f}")
    table.add_row(f"requests a second of {USERS} users, lists and deployments", f"{mixed[0]:.0f} (aim 50)")
    table.add_row("CPU of the server for each, times that of its version", f"{mixed[1] / version[1]:.1f}")
    Console(highlight=False).print(table)


if __name__ == "__main__":
    main()
