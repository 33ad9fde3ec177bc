# SPDX-License-Identifier: GPL-3.0-or-later
"""JupyterHub's configuration, made from the settings that the role has written."""

from __future__ import annotations

import json
import logging
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from jupyterhub.handlers.base import BaseHandler
from prometheus_client import REGISTRY

from .people import login_ldap, login_oidc, login_pam, visitors
from .people.accounts import Persons
from .sharing import adoption, desk, keeping
from .sharing.desk import Desk
from .sharing.metrics import SliceCollector
from .spawning import collaborative, mounts
from .spawning.spawner import apply_choice, give_back
from .upkeep import alone, tokens
from .web import (
    endings,
    hardening,
    leavers,
    mine,
    monitoring,
    origins,
    pages,
    refusals,
    signing_out,
    site,
    strangers,
)


def configure(c: Any, settings_file: str) -> None:
    """Fill the configuration object.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings_file: JSON; its keys are those of the role's template ``settings.json.j2``.
    """
    settings = json.loads(Path(settings_file).read_text(encoding="utf-8"))
    alone.on_this_machine()
    strangers.never()
    ours, log = desk.from_settings(settings), logging.getLogger("gpufarm_hub")
    adoption.at_hub_start(ours, log)  # before anything reads the leases
    _hub(c, settings, ours)
    _login(c, settings)
    _notebooks(c, settings, ours)
    _keeper(c, settings, settings_file)
    leavers.configure(c)
    endings.configure(ours)
    monitoring.configure(c, settings)
    site.configure(c, settings["site"])
    refusals.configure(c)
    refusals.offer_sign_in(c, "oauth_login?anew=1" if settings["login"]["kind"] == "oidc" else "login")
    signing_out.configure(keeping.read_rules(settings), ours)
    if settings["own_gpus"]:
        mine.configure(c, ours)
    if settings["collaborative"]:
        collaborative.configure(c, settings, ours)
    hardening.configure(c, settings["public_url"])
    ports_file = Path(settings["persons_file"]).with_name("ports.json")
    origins.configure(c, settings["public_url"], settings["notebooks"], ports_file)
    REGISTRY.register(SliceCollector(ours))


def _hub(c: Any, settings: dict[str, Any], ours: Desk) -> None:
    state = Path(settings["state_folder"])
    c.JupyterHub.bind_url = settings["public_url"]
    c.JupyterHub.hub_bind_url = settings["hub_url"]
    c.JupyterHub.db_url = f"sqlite:///{state / 'jupyterhub.sqlite'}"
    c.JupyterHub.upgrade_db = True
    tokens.configure(c, settings["token_hours"], state / "jupyterhub.sqlite")
    # JupyterHub 6.1.1 reads it without having set it when the user of a server that somebody else starts has
    # no valid login (BaseHandler.refresh_auth).
    BaseHandler._token_authenticated = False
    c.JupyterHub.template_paths = [str(Path(__file__).parent / "templates")]
    # The hub calls it for each page, with the user who looks at it or None.
    c.JupyterHub.template_vars = {
        "gpufarm_notices": lambda user: ours.notices.shown(user.name, user.orm_spawners) if user else {}
    }
    # Deprecated in favour of services, but a service cannot show pages of the hub's own.
    c.JupyterHub.extra_handlers = pages.handlers(ours)
    c.JupyterHub.tornado_settings = _identity(Path(settings["nodes_folder"]))
    most_servers = max((limit.servers for limit in ours.limits), default=1)
    c.JupyterHub.allow_named_servers = most_servers > 1
    # How many run at once is for the spawner to say; this bounds how many are remembered.
    c.JupyterHub.named_server_limit_per_user = most_servers
    c.JupyterHub.cookie_secret_file = f"{settings['secrets_folder']}/cookie_secret"
    # The proxy and the notebooks are units of their own and outlive the hub.
    c.ConfigurableHTTPProxy.should_start = False
    c.ConfigurableHTTPProxy.api_url = settings["proxy_api_url"]
    c.JupyterHub.cleanup_proxy = False
    c.JupyterHub.cleanup_servers = False


def _identity(folder: Path) -> dict[str, str]:
    """Return the settings with which the hub looks whether a notebook on another machine answers.

    They are there as long as there may be such notebooks, whatever the engine of those that are started now.
    """
    files = {"key": "key.pem", "cert": "cert.pem", "ca": "ca.crt"}
    there = (folder / "cert.pem").exists()
    return {f"internal_ssl_{name}": str(folder / file) for name, file in files.items()} if there else {}


def _login(c: Any, settings: dict[str, Any]) -> None:
    login = settings["login"]
    if login["kind"] == "oidc":
        login_oidc.configure(
            c, login, settings["public_url"], settings["persons_file"], settings["own_accounts"]
        )
    elif login["kind"] == "ldap":
        login_ldap.configure(c, login, settings["persons_file"])
    else:
        login_pam.configure(c, login)
    c.LeavingLogin.shared_account = collaborative.NAME if settings["collaborative"] else ""
    c.LeavingLogin.refused_file = f"{settings['state_folder']}/refused.json"
    c.LeavingLogin.relogin_hours = settings["relogin_hours"]


def _notebooks(c: Any, settings: dict[str, Any], ours: Desk) -> None:
    entry_points(group="gpufarm_hub.spawners")[settings["spawner"]].load()(c, settings)
    spawner = c.NotebookSpawner
    spawner.desk = ours
    spawner.persons = Persons(Path(settings["persons_file"]))
    spawner.memory_choices = settings["memory_choices"]
    spawner.cpu_choices = [f"{cores:g}" for cores in settings["cpu_choices"]]
    spawner.rules = keeping.read_rules(settings)
    spawner.use_gpu = settings["use_gpu"]
    spawner.cpu_limit = settings["cpu_limit"]
    spawner.apply_user_options = apply_choice
    spawner.post_stop_hook = give_back
    spawner.folders = mounts.read(settings["mounts"])
    spawner.file_groups = settings["file_groups"]
    spawner.processes = settings["process_limit"]
    spawner.temporary = settings["tmp_size"]
    # In the notebook's private /tmp: a home's path could be too long for the sockets.
    spawner.environment["JUPYTER_RUNTIME_DIR"] = "/tmp/jupyter"  # noqa: S108
    spawner.environment["JUPYTERHUB_ACTIVITY_INTERVAL"] = "60"  # seconds between two reports to the hub
    # read:servers is what a notebook needs to ask for its notices.
    spawner.server_token_scopes = ["users:activity!user", "access:servers!server", "read:servers!user"]
    spawner.args = [
        # JupyterLab would ask project servers for news and new versions.
        "--LabApp.news_url=None",
        "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        "--LabApp.extension_manager=readonly",
        f"--HubOAuth.cache_max_age={visitors.BELIEVED}",
        # On TCP every user of the machine could read what kernels print.
        "--KernelManager.transport=ipc",
    ]
    spawner.default_url = "/lab"
    spawner.http_timeout = 60
    spawner.poll_interval = 5


def _keeper(c: Any, settings: dict[str, Any], settings_file: str) -> None:
    name = "gpufarm-keeper"
    c.JupyterHub.services = [
        {
            "name": name,
            "command": [f"{settings['venv']}/bin/python", "-m", "gpufarm_hub.sharing.keeper", settings_file],
            "display": False,
        }
    ]
    scopes = ["list:users", "read:users:groups", "servers"]
    c.JupyterHub.load_roles = [{"name": name, "services": [name], "scopes": scopes}]
