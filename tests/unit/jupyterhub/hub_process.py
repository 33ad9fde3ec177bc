"""A real hub in a process of its own, and its users as browsers see it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import httpx
from gpufarm_hub.sharing.slices import Slice

from lab.pages import Page, parse
from lab.patience import PATIENCE

CONFIG = Path(__file__).with_name("hub_config.py")


def slices(count: int, profile: str = "1g.10gb") -> list[Slice]:
    return [Slice(f"MIG-{profile}-{n}", profile, 0, 7 + n, 0, 10 << 30) for n in range(count)]


def eventually(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


class HubProcess:
    """The hub of a folder; `start` and `kill` as often as you like.

    Args:
        folder: an empty one.
        limits: value of `jupyterhub_limits`.
        collaborative: settings of the collaborative JupyterLab; None when there is none.
        login: settings of the login; None to let anybody in.
        site: name, help and contact of the site; None for none.
        cpu_choices: value of `jupyterhub_cpu_choices`.
        shared_slices: value of `jupyterhub_shared_slices`.
        known: accounts that users have already, by name: user id and group id; None where the hub makes them.
    """

    def __init__(
        self,
        folder: Path,
        limits: list[dict[str, Any]],
        collaborative: dict[str, Any] | None = None,
        login: dict[str, Any] | None = None,
        site: dict[str, str] | None = None,
        cpu_choices: Iterable[float] = (),
        shared_slices: Iterable[dict[str, Any]] = (),
        known: dict[str, tuple[int, int]] | None = None,
    ) -> None:
        self.folder = folder
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        (folder / "monitoring_token").write_text(secrets.token_hex(32))
        self.keeper_token = secrets.token_hex(32)
        (folder / "keeper_token").write_text(self.keeper_token)
        settings = {
            "public_url": self.url,
            "site": {"name": "", "help_url": "", "contact": "", **(site or {})},
            "notebooks": "21000-21199",
            "hub_url": self.url,
            "proxy_api_url": "http://127.0.0.1:9",
            "venv": sys.prefix,
            "secrets_folder": str(folder),
            "nodes_folder": str(folder / "nodes"),
            "state_folder": str(folder),
            "log_folder": str(folder),
            "holders_file": str(folder / "run" / "holders.d" / "jupyterhub.json"),
            "persons_file": str(folder / "persons.json"),
            "login": login or {"kind": "fake"},
            "use_gpu": True,
            "own_gpus": True,
            "own_accounts": known is None,
            "memory_choices": ["1G", "2G"],
            "cpu_limit": 1.0,
            "cpu_choices": [*cpu_choices],
            "collaborative": collaborative or {},
            "spawner": "systemd",
            "engines": {"systemd": {"containers": False}},
            "walls": {"subnet": "172.30.252.0/22"},
            "mounts": [],
            "file_groups": {},
            "process_limit": 4096,
            "tmp_size": "1G",
            "limits": limits,
            "shared_slices": [*shared_slices],
            "token_hours": 720,
            "relogin_hours": 24,
            "queue_patience_minutes": 10,
            "queue_claim_minutes": 10,
            "idle_minutes": 0,
            "idle_gpu_minutes": 0,
            "warning_minutes": 0,
        }
        (folder / "settings.json").write_text(json.dumps(settings))
        if known is not None:
            self.know(known)
        self._process: subprocess.Popen[bytes] | None = None

    def know(self, accounts: dict[str, tuple[int, int]]) -> None:
        (self.folder / "accounts.json").write_text(json.dumps(accounts))

    def partition(self, pieces: Iterable[Slice]) -> None:
        (self.folder / "slices.json").write_text(json.dumps([asdict(piece) for piece in pieces]))

    def start(self) -> None:
        with (self.folder / "hub.log").open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "jupyterhub", "--config", str(CONFIG)],
                cwd=self.folder,
                stdout=log,
                stderr=log,
                env={
                    **os.environ,
                    "GPUFARM_TEST_FOLDER": str(self.folder),
                    "JUPYTERHUB_CRYPT_KEY": secrets.token_hex(32),
                },
            )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self._process.poll() is None:
            try:
                httpx.get(f"{self.url}/hub/api/", trust_env=False).raise_for_status()
                return
            except httpx.HTTPError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "hub.log").read_text())

    def kill(self) -> None:
        if self._process:
            self._process.kill()
            self._process.wait()

    def audit(self) -> list[tuple[str, str]]:
        """Return events and users of the audit log."""
        lines = (self.folder / "audit.jsonl").read_text().splitlines()
        return [(line["event"], line["user"]) for line in map(json.loads, lines)]


class Browser:
    """One user, logged in."""

    def __init__(self, hub: HubProcess, name: str) -> None:
        self.hub, self.name = hub, name
        self.http = httpx.Client(base_url=hub.url, follow_redirects=True, trust_env=False, timeout=PATIENCE)
        self.http.get("/hub/login")
        self.http.post("/hub/login", data={"username": name, "password": "x", "_xsrf": self.xsrf})

    @property
    def xsrf(self) -> str:
        return next(cookie.value or "" for cookie in self.http.cookies.jar if cookie.name == "_xsrf")

    def page(self, path: str) -> httpx.Response:
        return self.http.get(path)

    def api(self, method: str, path: str, **options: Any) -> httpx.Response:
        return self.http.request(method, f"/hub/api{path}", headers={"X-XSRFToken": self.xsrf}, **options)

    def spawn(self, **fields: str) -> Page:
        """Send the spawn form, and wait for the answer (a page with messages when it is refused)."""
        # Where it leads to afterwards is the notebook's own address, which only a proxy serves.
        answer = self.http.post(f"/hub/spawn?_xsrf={self.xsrf}", data=fields, follow_redirects=False)
        page = parse(answer.text)
        end = time.monotonic() + PATIENCE
        while not page.messages and not self.running() and time.monotonic() < end:
            time.sleep(0.05)
        return page

    def running(self) -> bool:
        servers = self.api("GET", f"/users/{self.name}").json()["servers"]
        return any(server["ready"] for server in servers.values())

    def stop(self) -> None:
        self.api("DELETE", f"/users/{self.name}/server").raise_for_status()
        end = time.monotonic() + PATIENCE
        while self.api("GET", f"/users/{self.name}").json()["servers"] and time.monotonic() < end:
            time.sleep(0.05)

    def queue(self, user: str = "") -> httpx.Response:
        return self.api("GET", f"/gpufarm/users/{user or self.name}/queue/")


@contextlib.contextmanager
def users_of(process: HubProcess) -> Iterator[Callable[[str], Browser]]:
    """Log users in; at the end nobody holds anything or waits."""
    browsers: list[Browser] = []

    def log_in(name: str) -> Browser:
        browsers.append(Browser(process, name))
        return browsers[-1]

    yield log_in
    for browser in browsers:
        browser.api("DELETE", f"/gpufarm/users/{browser.name}/queue/")
        if browser.running():
            browser.stop()
        browser.http.close()
