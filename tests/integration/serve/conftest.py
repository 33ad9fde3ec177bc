# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages of the service behind TLS, an issuer, a worker, and a real browser, in a network of their own."""

from __future__ import annotations

import ctypes
import os
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import uvicorn
import yaml
from doubles.issuer import ANN, CLIENT, SECRET, Issuer, certificate, issuer
from gpufarm.serve import settings
from gpufarm.serve.application import application
from gpufarm.serve.service import Service
from gpufarm.serve.worker import Worker
from playwright.sync_api import Page, expect

from lab.chromium import chromium
from lab.patience import PATIENCE

DEPLOYER = Path(__file__).with_name("pages_deployer.py")
PHYSICS = {"groups": ["physics"]}
ACCOUNTS = {
    "ann": ANN | PHYSICS,
    "bob": ANN | PHYSICS | {"sub": "bob", "preferred_username": "bob"},
    "eve": ANN | {"sub": "eve", "preferred_username": "eve", "groups": ["admins"]},
}
_NEW_NETWORK = 0x40000000  # CLONE_NEWNET
expect.set_options(timeout=1000 * PATIENCE)


@dataclass
class Pages:
    """The service.

    Attributes:
        url: of the service.
        state: folder of the deployer.
        visit: opens a new browser in which nobody has signed in.
    """

    url: str
    state: Path
    visit: Callable[[], Page]


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread, and what it starts, where no other bench changes addresses.

    Chromium fails what it loads when an address of its machine comes or goes.
    """
    name = f"gpufarm-pages-{os.getpid()}"
    libc = ctypes.CDLL(None, use_errno=True)
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(["ip", "-n", name, "link", "set", "lo", "up"], check=True)
        with Path("/proc/self/ns/net").open() as before, Path(f"/run/netns/{name}").open() as fresh:
            assert libc.setns(fresh.fileno(), _NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())
            try:
                yield
            finally:
                libc.setns(before.fileno(), _NEW_NETWORK)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=True)


def content(folder: Path, iam: Issuer, port: int) -> dict[str, Any]:
    """Settings with a catalogue for physicists and everybody."""
    (folder / "client.secret").write_text(SECRET)
    (folder / "client.secret").chmod(0o600)
    return {
        "url": f"https://localhost:{port}",
        "folder": "serve",
        "database": f"sqlite:///{folder}/serve.db",
        "deployer": {"state": "state", "pool": "pool.yml"},
        "issuers": [
            {
                "issuer": iam.url,
                "ca_file": str(iam.ca_file),
                "administrators": "admins",
                "login_claim": "preferred_username",
            }
        ],
        "pages": {"issuer": iam.url, "client_id": CLIENT, "client_secret_file": "client.secret"},
        "templates": {
            "notebooks": {"template": "ml_infn", "groups": ["physics"], "people": {"iam_subject": "sub"}},
            "containers": {"template": "jupyter_container", "people": {"owner": "preferred_username"}},
            "training": {"template": "chronos_job", "people": {"owner": "preferred_username"}},
        },
        "quotas": {"user": {"deployments": 3, "machines": 4}, "groups": {"physics": {"machines": 10}}},
    }


@contextmanager
def served(folder: Path, iam: Issuer, **changes: Any) -> Iterator[str]:
    """Serve, with a worker, and return the address."""
    listening = socket.create_server(("127.0.0.1", 0))
    port = listening.getsockname()[1]
    (folder / "serve.yml").write_text(yaml.safe_dump(content(folder, iam, port) | changes))
    (folder / "state").mkdir()
    service = Service(settings.read(folder / "serve.yml"))
    public, private = certificate(folder / "tls")
    options = uvicorn.Config(
        application(service), ssl_certfile=public, ssl_keyfile=private, log_level="warning"
    )
    server = uvicorn.Server(options)
    worker = Worker(service, [sys.executable, str(DEPLOYER)])
    threads = [
        threading.Thread(target=server.run, kwargs={"sockets": [listening]}),
        threading.Thread(target=worker.run),
    ]
    for thread in threads:
        thread.start()
    try:
        wait_for(port)
        yield f"https://localhost:{port}"
    finally:
        server.should_exit = True
        worker.stop()
        for thread in threads:
            thread.join()
        service.database.engine.dispose()


def wait_for(port: int) -> None:
    trusting = ssl._create_unverified_context()
    end = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port)) as plain, trusting.wrap_socket(plain):
                return
        except OSError:
            assert time.monotonic() < end, "the service does not listen"
            time.sleep(0.1)


@pytest.fixture
def pages(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Pages]:
    """The service; parametrized indirectly with other settings."""
    with (
        own_network(),
        issuer(tmp_path / "iam") as iam,
        served(tmp_path, iam, **getattr(request, "param", {})) as url,
        chromium(tmp_path / "home", "localhost") as browser,
    ):
        iam.accounts = ACCOUNTS

        def visit() -> Page:
            context = browser.new_context(
                ignore_https_errors=True, viewport={"width": 1000, "height": 800}, reduced_motion="reduce"
            )
            context.set_default_timeout(1000 * PATIENCE)
            return context.new_page()

        yield Pages(url, tmp_path / "state", visit)
