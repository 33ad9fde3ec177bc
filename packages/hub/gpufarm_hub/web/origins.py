# SPDX-License-Identifier: GPL-3.0-or-later
"""Where in browsers the notebooks of a user are: at an origin that nobody else has, not even the hub.

Scripts in a notebook's pages are its users' own, so they must reach neither the hub's pages and API nor other
users' notebooks with the rights of visitors. The proxy keeps the origins apart
(``proxy/origins.mjs``).
"""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.spawner import Spawner
from jupyterhub.utils import subdomain_hook_idna

from gpufarm_hub.spawning.spawner import RefusedSpawnError
from gpufarm_hub.store import JsonStore, StoreError

from .activity import QuietProxy

PORTS = re.compile(r"(\d+)-(\d+)")
NO_PLACE = (
    "There is no port left for notebooks of another user; tell the administrator of this service "
    "(jupyterhub_notebooks_ports)."
)
BY_LINK = "A link cannot start a notebook, as it may come from somebody else. Start it with this form."


class Ports:
    """The port of each user. It is theirs for good: browsers keep what pages left there.

    Args:
        path: the file they are kept in.
        ports: those that there are.
        host: the hub's, as it is in URLs.
    """

    def __init__(self, path: Path, ports: range, host: str) -> None:
        self._store, self._ports, self._host = JsonStore(path), ports, host
        self._known: dict[str, int] = {}

    def domain_of(self, name: str, _domain: str, kind: str) -> str:
        """Return where a user's notebooks are, without a port when there is none: ``subdomain_hook``."""
        if kind != "user":
            return self._host
        if name not in self._known:
            try:
                self._known |= self._give(name)
            except StoreError:  # pages are there all the same, and `require` refuses what needs the port
                return self._host
        return f"{self._host}:{self._known[name]}" if name in self._known else self._host

    def _give(self, name: str) -> dict[str, int]:
        with self._store.change() as users:
            ours = [port for port in self._ports if users.get(str(port), name) == name]
            held = [port for port in ours if str(port) in users]
            if not ours:
                return {}
            port = (held or ours)[0]
            users[str(port)] = name
        return {name: port}

    def require(self, spawner: Spawner) -> None:
        """Refuse to start a notebook that has no port: ``pre_spawn_hook``."""
        if self.domain_of(spawner.user.name, "", "user") == self._host:
            raise RefusedSpawnError(NO_PLACE, "port", 503)


class OriginsProxy(QuietProxy):
    """Tells the proxy whose notebooks are at which origin."""

    def _routespec_from_chp_path(self, chp_path: str) -> str:
        """Return a route as the hub names it; JupyterHub 6.1 escapes what is between host and port."""
        routespec: str = super()._routespec_from_chp_path(chp_path)
        place, slash, path = routespec.partition("/")
        return f"{place.replace('%3A', ':').replace('%5B', '[').replace('%5D', ']')}{slash}{path}"


def configure(c: Any, public_url: str, notebooks: str, ports_file: Path) -> None:
    """Give notebooks their origins.

    Args:
        c: the hub's configuration object.
        public_url: the hub's address, as users know it.
        notebooks: ``FIRST-LAST``, ports of which each user has one, or a domain in which each has a name.
        ports_file: whose the ports are.
    """
    public = urlsplit(public_url)
    port = f":{public.port}" if public.port else ""
    found = PORTS.fullmatch(notebooks)
    if found:
        host = public.netloc.removesuffix(port)
        ports = Ports(ports_file, range(int(found[1]), int(found[2]) + 1), host)
        c.JupyterHub.subdomain_host = f"{public.scheme}://{host}"
        c.JupyterHub.subdomain_hook = ports.domain_of
        c.Spawner.pre_spawn_hook = ports.require
    else:
        c.JupyterHub.subdomain_host = f"{public.scheme}://{notebooks}{port}"
        c.JupyterHub.subdomain_hook = partial(_name_of, notebooks)
    c.JupyterHub.proxy_class = OriginsProxy
    Spawner.options_from_query = _refuse_link


def _name_of(notebooks: str, name: str, _domain: str, kind: str) -> str:
    domain: str = subdomain_hook_idna(name, notebooks, kind)
    return domain.lower()


def _refuse_link(_spawner: Spawner, _query: dict[str, Any]) -> None:
    raise RefusedSpawnError(BY_LINK, "link", 400)
