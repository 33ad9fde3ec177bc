"""Configuration of a real hub for tests: its pages, API, spawner and leases, without systemd, GPU, or proxy.

The folder GPUFARM_TEST_FOLDER has `settings.json` and, when the hub runs, its state. Any password will do.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import errno
import json
import os
import pwd
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from installed import make_importable

folder = Path(os.environ["GPUFARM_TEST_FOLDER"])
make_importable(folder / "installed")

from gpufarm_hub import configuration, files  # noqa: E402
from gpufarm_hub.people import accounts, visitors  # noqa: E402
from gpufarm_hub.people.login import LeavingLogin  # noqa: E402
from gpufarm_hub.sharing import adoption, devices, recovery, sessions, strays  # noqa: E402
from gpufarm_hub.sharing.slices import GpuQueryError, Gpus, Slice  # noqa: E402
from gpufarm_hub.spawning import slice_spawner, systemd_spawner, units  # noqa: E402
from gpufarm_hub.spawning.engine import Death  # noqa: E402
from gpufarm_hub.upkeep import alone  # noqa: E402
from gpufarm_hub.web import pages  # noqa: E402
from jupyterhub.auth import DummyAuthenticator  # noqa: E402
from jupyterhub.handlers.base import BaseHandler  # noqa: E402
from jupyterhub.proxy import Proxy  # noqa: E402
from tornado import httpserver, web  # noqa: E402
from tornado.netutil import bind_sockets  # noqa: E402

running: dict[str, httpserver.HTTPServer] = {}
reach: dict[str, frozenset[str]] = {}


def replace(path: Path, *arguments: Any, **options: Any) -> None:
    """The test says whether the disk is full."""
    if (folder / "disk-full").exists():
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    really_replace(path, *arguments, **options)


def record(self: Any, thing: Any, timestamp: Any = None) -> bool:
    """The test says whether users come back after a while, which the hub writes into its database."""
    if (folder / "long-ago").exists():
        thing.last_activity = None
    recorded: bool = really_record(self, thing, timestamp)
    return recorded


async def refresh_auth(self: Any, user: Any, force: bool = False) -> Any:
    """The test says whether it is time to ask again who users are."""
    return await really_refresh(self, user, force=force or (folder / "ask-again").exists())


def slices() -> list[Slice]:
    """The test writes which there are."""
    if (folder / "no-gpus").exists():
        raise GpuQueryError("the NVIDIA driver does not answer")
    return [Slice(**entry) for entry in json.loads((folder / "slices.json").read_text())]


def gpus() -> Gpus:
    found = slices()
    mute = folder / "mute.json"  # numbers of GPUs that do not answer
    silent = json.loads(mute.read_text()) if mute.exists() else []
    found = [piece for piece in found if piece.gpu not in silent]
    file = folder / "unfit.json"
    unfit = {int(gpu): why for gpu, why in json.loads(file.read_text()).items()} if file.exists() else {}
    answered = frozenset(piece.gpu for piece in found)
    cordons = folder / "cordoned.json"
    cordoned = json.loads(cordons.read_text()) if cordons.exists() else {}
    problems = (*unfit.values(), *(f"GPU {gpu} does not answer" for gpu in silent))
    return Gpus(found, answered, frozenset(unfit), problems, cordoned)


class Notebook(web.RequestHandler):
    """Answers as a notebook server does when the hub asks whether it is up."""

    def get(self) -> None:
        self.set_header("X-JupyterHub-Version", "6.1.1")
        self.write("notebook")


async def start(self: Any) -> tuple[str, int]:
    """The test says for how long it takes."""
    while (folder / "slow-start").exists():
        await asyncio.sleep(0.05)
    sockets = bind_sockets(0, "127.0.0.1")
    server = httpserver.HTTPServer(web.Application([(r"/.*", Notebook)]))
    server.add_sockets(sockets)
    running[self.unit_name] = server
    reach[self.unit_name] = frozenset(piece.uuid for piece in (self._lease.pieces if self._lease else ()))
    (folder / f"{self.unit_name}.env").write_text(json.dumps(self.get_env()))
    return "127.0.0.1", sockets[0].getsockname()[1]


def end(unit: str) -> None:
    if unit in running:
        running.pop(unit).stop()
        reach.pop(unit)


def death(unit: str) -> Death | None:
    """The test says how notebooks die."""
    file = folder / "death.json"
    return Death(**json.loads(file.read_text())) if file.exists() else None


def is_over(unit: str) -> bool:
    if death(unit):
        end(unit)
    return unit not in running


class NoProxy(Proxy):
    """The tests talk to the hub itself."""

    should_start = False

    async def add_route(self, spec: str, *args: Any) -> None:
        with (folder / "routes").open("a") as file:
            file.write(f"{spec}\n")

    async def delete_route(self, *args: Any) -> None:
        pass

    async def get_all_routes(self) -> dict[str, Any]:
        return {}

    async def check_routes(self, *args: Any) -> None:
        pass


class Login(DummyAuthenticator):
    """Anybody comes in; bob is an administrator, and students' names start with "student"."""

    async def authenticate(self, handler: Any, data: dict[str, str]) -> dict[str, Any]:
        name = data["username"]
        return {"name": name, "groups": ["students"] if name.startswith("student") else []}

    def doubt(self, name: str) -> str:
        return ""

    async def refresh_user(self, user: Any, handler: Any = None) -> bool:
        return user.name != "collaborative"  # where nobody logs in


# Interface of the hub to the machine.
really_replace, files.replace = files.replace, replace
really_record, BaseHandler._record_activity = BaseHandler._record_activity, record
really_refresh, BaseHandler.refresh_auth = BaseHandler.refresh_auth, refresh_auth
LeavingLogin.is_due = lambda self, name: (folder / "ask-again").exists()
visitors.BELIEVED = 0
accounts.ensure = lambda name, uid=None, person="": None
devices.nodes_of = lambda piece: []
sessions.is_needed = lambda name: False
strays.end = lambda pieces, ours=frozenset: []
slice_spawner.boot = lambda: (folder / "boot").read_text() if (folder / "boot").exists() else "first"
for module in (adoption, pages, recovery, slice_spawner):
    module.read_gpus = gpus
units.running = lambda: [*running]
units.reach = lambda: reach
units.is_over = is_over
units.death = death
units.stop = end
units.revoke_devices = lambda unit: reach.update({unit: frozenset()})
accounts_here = pwd.getpwnam


def account(name: str) -> pwd.struct_passwd | None:
    """Return the account of this machine, as a login asks for it, or the one of which the test tells."""
    file = folder / "accounts.json"
    told = json.loads(file.read_text()) if file.exists() else {}
    if name in told:
        return pwd.struct_passwd((name, "x", *told[name], "", "/home", "/bin/bash"))
    try:
        return accounts_here(name)
    except KeyError:
        return None


accounts._entry = account
pwd.getpwnam = lambda name: type("Account", (), {"pw_dir": "/home", "pw_uid": 1001})  # type: ignore[assignment]
systemd_spawner.SystemdSliceSpawner.launch = start
alone_here = alone.on_this_machine
alone.on_this_machine = lambda: alone_here(folder / "hub.lock")

c: Any = get_config()  # type: ignore[name-defined]  # noqa: F821
settings = json.loads((folder / "settings.json").read_text())
if settings["login"]["kind"] == "fake":
    configuration._login = lambda c, settings: None
configuration.configure(c, str(folder / "settings.json"))
if settings["login"]["kind"] == "fake":
    c.JupyterHub.authenticator_class = Login
c.Login.allow_all = True
c.Login.manage_groups = True
c.Login.refresh_pre_spawn = True
c.Login.admin_users = {"bob"}
c.JupyterHub.proxy_class = NoProxy
# The test does what the keeper would.
keeper = {"name": "gpufarm-keeper", "api_token": (folder / "keeper_token").read_text(), "display": False}
others = [service for service in c.JupyterHub.services if service["name"] != keeper["name"]]
c.JupyterHub.services = [keeper, *others]
c.JupyterHub.bind_url = settings["hub_url"]
c.JupyterHub.data_files_path = str(Path(sys.prefix) / "share" / "jupyterhub")
