# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Mesos 1.11.0, a master and its agents in one process, from the Python package index.

The package ``mesos.scheduler`` carries all of Mesos in an extension for Python 2.7: asked for the master
"local", its driver starts master and agents itself. The extension wants OpenSSL 1.0 and an old libcurl, for
which `shims` makes libraries that are empty but for what works without TLS, and two programs that the package
lacks are in `programs`.

TLS, ZooKeeper, several masters, images and the command line cannot be had that way.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from filelock import FileLock

from lab.bench import cache_dir
from lab.errors import LabError
from lab.mesos.real import python27, shims
from lab.patience import PATIENCE

HERE = Path(__file__).resolve().parent
# protobuf 3.18 and later hold no code for Python 2.7
EGGS = ("protobuf==3.17.3", "six==1.16.0", "mesos.interface==1.11.0", "mesos.scheduler==1.11.0")
RESOURCES = "cpus:8;mem:16384;disk:20000;ports:[31000-32000]"
API = "/master/api/v1"
AGENT_API = "/slave({})/api/v1"


class Unavailable(Exception):
    """Why a real Mesos cannot be had here, in one sentence."""


def install() -> Path:
    """Make the folder with the extension, its Python and its libraries, once, in the bench's cache.

    :raises Unavailable: a compiler, the mirror of Debian or the package index is missing
    """
    for program in ("gcc", "objdump"):
        if not shutil.which(program):
            raise Unavailable(f"{program} is missing: apt-get install gcc binutils")
    folder = cache_dir() / f"mesos-1.11.0-{python27.SUITE}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if (folder / "complete").exists():
            return folder
        shutil.rmtree(folder, ignore_errors=True)
        site = folder / "site"
        site.mkdir(parents=True)
        try:
            python27.make(folder / "python")
            _install_eggs(folder / "python", site)
        except (LabError, OSError) as error:
            raise Unavailable(f"Mesos cannot be had: {error}") from error
        except subprocess.CalledProcessError as error:
            raise Unavailable(f"Mesos cannot be had: {error.stderr.strip().splitlines()[-1]}") from error
        extension = next(site.glob("mesos.scheduler-*.egg/mesos/scheduler/_scheduler.so"))
        shims.make(extension, folder / "shims")
        (folder / "complete").touch()
    return folder


def _install_eggs(python: Path, site: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(site), "LD_LIBRARY_PATH": str(python27.libraries(python))}
    words: list[str | Path] = [python27.program(python), "-m", "easy_install", "--no-deps"]
    # the extension has to be a file of its own
    words += ["--always-unzip", "--exclude-scripts", "--install-dir", site]
    if index := os.environ.get("PIP_INDEX_URL"):
        words += ["--index-url", index]
    subprocess.run([*words, *EGGS], env=environment, check=True, capture_output=True, text=True)
    for left in site.glob("site.py*"):  # easy_install's, in the way of Python's own
        left.unlink()


def free_port() -> int:
    with socket.socket() as link:
        link.bind(("127.0.0.1", 0))
        return int(link.getsockname()[1])


class Mesos:
    """A master and its agents, a context manager. Options are ``MESOS_*`` variables, the same for all."""

    def __init__(
        self,
        work: Path,
        agents: int = 1,
        resources: str = RESOURCES,
        options: Mapping[str, str] | None = None,
    ) -> None:
        self.folder = install()
        self.work = work
        self.agents = agents
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.process: subprocess.Popen[bytes] | None = None
        self.before: tuple[str | Path, ...] = ()  # words of a command that runs it
        self.environment = {
            **{k: v for k, v in os.environ.items() if not k.startswith(("MESOS_", "LIBPROCESS_"))},
            "LAB_MESOS_SITE": str(self.folder / "site"),
            "LD_LIBRARY_PATH": str(self.folder / "shims"),
            "LIBPROCESS_IP": "127.0.0.1",
            "LIBPROCESS_PORT": str(self.port),
            "MESOS_NUM_SLAVES": str(agents),
            "MESOS_WORK_DIR": str(work / "state"),
            "MESOS_RUNTIME_DIR": str(work / "run"),
            "MESOS_DOCKER_STORE_DIR": str(work / "docker"),
            "MESOS_APPC_STORE_DIR": str(work / "appc"),
            "MESOS_RESOURCES": resources,
            "MESOS_HOSTNAME": "127.0.0.1",
            # as root the default makes control groups on this machine
            "MESOS_LAUNCHER": "posix",
            "MESOS_LAUNCHER_DIR": str(HERE / "programs"),
            "MESOS_SWITCH_USER": "false",
            "MESOS_REGISTRATION_BACKOFF_FACTOR": "10ms",
            "PYTHONDONTWRITEBYTECODE": "1",
            **(options or {}),
        }

    def start(self) -> Mesos:
        """Start it and wait until all agents are there and all that was started answers.

        :raises RuntimeError: it ends, with what it said, or the agents do not come
        """
        self.work.mkdir(parents=True, exist_ok=True)
        with (self.work / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [*self.before, python27.program(self.folder / "python"), "-B", HERE / "driver.py"],
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self.work,
                start_new_session=True,
            )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
            try:
                if self._ready():
                    return self
            except (OSError, ValueError, http.client.HTTPException):
                pass
            time.sleep(0.05)
        self.stop()
        # all of it: the master goes on writing while an agent dies
        raise RuntimeError(f"Mesos ended with {self.process.returncode}: {self.log()}")

    def _ready(self) -> bool:
        # open to everybody in this mode
        _status, text = self.ask("GET", "/metrics/snapshot?timeout=10secs")
        if json.loads(text).get("master/slaves_connected") != self.agents:
            return False
        # The port is there before the paths (404), and these before it has recovered (503).
        apis = (API, *(AGENT_API.format(number) for number in range(1, self.agents + 1)))
        return not {self.ask("POST", path, {"type": "GET_VERSION"})[0] for path in apis} & {404, 503}

    def stop(self) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(PATIENCE)

    def __enter__(self) -> Mesos:
        return self.start()

    def __exit__(self, *_reason: object) -> None:
        self.stop()

    def log(self) -> str:
        return (self.work / "log").read_text(errors="replace")

    def ask(self, method: str, path: str, body: Any = None, user: str = "") -> tuple[int, str]:
        """Send one request, without help of the code under test; `user` is ``name:password``."""
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        if user:
            headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        link.request(method, path, None if body is None else json.dumps(body), headers)
        answer = link.getresponse()
        return answer.status, answer.read().decode()

    def call(self, kind: str, agent: int = 0, user: str = "", **fields: Any) -> dict[str, Any]:
        """Make a call of the operator API, to the master or to an agent by its number."""
        path = AGENT_API.format(agent) if agent else API
        status, text = self.ask("POST", path, {"type": kind, **fields}, user)
        assert status in (200, 202), (status, text)
        return json.loads(text).get(kind.lower(), {}) if text else {}

    def flags(self, agent: int = 0, user: str = "") -> dict[str, str]:
        """Return the options that the master, or an agent, runs with."""
        return {one["name"]: one.get("value", "") for one in self.call("GET_FLAGS", agent, user)["flags"]}
