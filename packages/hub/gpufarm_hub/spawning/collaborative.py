# SPDX-License-Identifier: GPL-3.0-or-later
"""The collaborative JupyterLab: the notebook server of an account that several users may start, use and stop.

As it is a server like any other, it needs no rules of its own for slices, memory, idle time and isolation.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from jupyterhub import orm
from jupyterhub.handlers.base import BaseHandler
from jupyterhub.scopes import Scope
from jupyterhub.spawner import Spawner
from tornado import web

from gpufarm_hub.people.accounts import Persons
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.store import StoreError
from gpufarm_hub.web import refusals

# The account; no person can log in under its name.
NAME = "collaborative"
OWNER = f"{NAME}/"

# Rights of its users on its server (JupyterHub, "Available scopes").
SCOPES = [f"access:servers!user={NAME}", f"servers!user={NAME}"]


def configure(c: Any, settings: Mapping[str, Any], desk: Desk) -> None:
    """Add it to the hub's configuration, after everything else is there.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings: those of the role.
        desk: where slices are handed out.

    Raises:
        AccountError: a person has the account's name already.
    """
    shared = settings["collaborative"]
    Persons(Path(settings["persons_file"])).bind(NAME, "gpufarm", NAME)
    c.NotebookSpawner.collaborative = shared
    # A role with this user makes the hub know the user before the first start.
    c.JupyterHub.load_roles.append({"name": "gpufarm-collaborative", "users": [NAME], "scopes": ["self"]})
    if shared["groups"]:
        c.JupyterHub.load_roles.append(
            {"name": "gpufarm-collaborators", "groups": shared["groups"], "scopes": SCOPES}
        )
    else:
        c.JupyterHub.extra_user_scopes = SCOPES
    # JupyterHub asks before it tells a user's name to the server of another one; here it is the site's own.
    # This setting replaces the hub's own list, which is made of the services.
    services = [entry["name"] for entry in c.JupyterHub.services if entry.get("oauth_no_confirm")]
    trusted = {f"jupyterhub-user-{NAME}", *(f"service-{name}" for name in services)}
    c.JupyterHub.tornado_settings["oauth_no_confirm_list"] = trusted
    c.JupyterHub.template_vars |= {
        # The hub calls it for each page, with the user who looks at it or None; the home page calls what it
        # returns.
        "gpufarm_collaborative": lambda user: partial(describe, user, desk),
        "gpufarm_collaborative_account": NAME,
    }
    refusals.configure(c, NAME, shared["groups"])
    c.JupyterHub.extra_handlers.append((r"/collaborative", CollaborativePage, {"groups": shared["groups"]}))


def adapt(spawner: Spawner, shared: Mapping[str, Any]) -> None:
    """Make a spawner start the collaborative JupyterLab when it is that account's.

    Args:
        spawner: of any user.
        shared: the settings' entry ``collaborative``; empty when there is none.
    """
    if not shared or spawner.user.name != NAME:
        return
    spawner.take_programs(shared)
    spawner.use_gpu = shared["use_gpu"]
    spawner.profile = shared["profile"]


def may_use(scopes: Mapping[str, Any]) -> bool:
    """Tell whether somebody with these parsed scopes of JupyterHub may use it."""
    reach = scopes.get("access:servers", {})
    return reach == Scope.ALL or NAME in reach.get("user", ())


def describe(user: Any, desk: Desk, scopes: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what the home page of a user shows.

    Args:
        user: JupyterHub's user.
        desk: where slices are handed out.
        scopes: the user's scopes as JupyterHub has parsed them.

    Returns:
        ``running``; in ``slices`` the slices that it holds and in ``notice`` what its users must know, each
        empty for none. None when it is not for them.
    """
    if not may_use(scopes):
        return None
    account = orm.User.find(user.db, NAME)
    server = account.orm_spawners.get("") if account else None
    try:
        leases = desk.leases.all()
    except StoreError:  # the home page is there all the same
        leases = []
    held = [piece.profile for lease in leases if lease.owner == OWNER for piece in lease.pieces]
    return {
        "running": bool(server and server.server),
        "slices": ", ".join(held),
        "notice": desk.notices.shown(NAME).get("", ""),
    }


class CollaborativePage(BaseHandler):  # type: ignore[misc]
    """Leads to it: an address that users can give to each other, whether it runs or not."""

    def initialize(self, groups: list[str]) -> None:
        """Take the names of the groups it is for; none when it is for everybody."""
        self.groups = groups

    @web.authenticated
    def get(self) -> None:
        """Go to the form, which goes on to the server when it runs.

        Raises:
            tornado.web.HTTPError: the user is in none of the groups; the page says so.
        """
        if not may_use(self.parsed_scopes):
            raise web.HTTPError(403, "%s", refusals.not_a_member(self.groups))
        self.redirect(f"{self.hub.base_url}spawn/{NAME}")
