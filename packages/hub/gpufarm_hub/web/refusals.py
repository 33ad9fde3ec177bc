# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of the error page where JupyterHub's own words do not name the next step. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import partial
from typing import Any

# Messages of JupyterHub 6.1 to a user who opens the server of another user: while it runs
# (apihandlers/auth.py, OAuthAuthorizeHandler), and while it does not (handlers/base.py, UserUrlHandler).
RUNNING = re.compile(r"You do not have permission to access Server at /user/(?P<user>[^/]+)/")
HIDDEN = "No access to resources or resources not found"
# Of a page or request that the user's scopes do not allow (scopes.py, needs_scope).
SCOPES = re.compile(r"Action is not authorized with current scopes")
# Of a form without its token, or with that of another session (tornado.web, check_xsrf_cookie).
FORGED = re.compile(r"_xsrf|XSRF")

# Of the address of a form, /hub/spawn/USER/NAME (handlers/base.py, _check_named_server_request).
MOST_NAMED = re.compile(r"User \S+ already has the maximum of (?P<most>\d+) named servers")
UNNAMED = "Named servers are not enabled."
BAD_NAME = re.compile(r"Invalid (server_name|display_name): ")


def not_a_member(groups: Iterable[str]) -> str:
    """Return what somebody outside the groups of the collaborative JupyterLab is told."""
    return (
        "The collaborative JupyterLab is for members of groups that your account is not in "
        f"({', '.join(groups)}). Ask for membership, then sign in again."
    )


def explain(status: int, message: str, shared: str = "", groups: Iterable[str] = ()) -> str:
    """Return what the error page says instead of a message of JupyterHub.

    Args:
        status: the status of HTTP.
        message: what JupyterHub says; any other one is returned as it is.
        shared: the account of the collaborative JupyterLab; empty when there is none.
        groups: those that it is for.
    """
    found = RUNNING.search(message)
    if found and found["user"] == shared:
        return not_a_member(groups)
    if found:
        return "This notebook belongs to somebody else, and only they can open it. Yours is on the home page."
    if SCOPES.match(message):
        return (
            "Your account may not see this page or do this: it is for administrators of this service. "
            "Your own notebooks are on the home page."
        )
    if status == 403 and FORGED.search(message):
        return (
            "The page that sent this was open for too long, or is not of this service. "
            "Go back, reload it, and try again."
        )
    if status == 404 and message in ("", HIDDEN):
        return (
            "There is nothing at this address that your account may open: it is gone, or somebody else's. "
            "Ask who gave it to you whether you are in the right group; what is yours is on the home page."
        )
    if found := MOST_NAMED.match(message):
        return (
            f"You may have {found['most']} notebooks with names, and have them already. "
            "Remove one on the home page to add another."
        )
    if message == UNNAMED:
        return "This service has one notebook for each user. Yours is on the home page."
    if BAD_NAME.match(message):
        return (
            "This name cannot be given to a notebook: take up to 30 letters from a to z, digits and hyphens, "
            "with a letter first."
        )
    return message


def offer_sign_in(c: Any, anew: str) -> None:
    """Have a refusal offer to sign in as somebody else.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        anew: path below the hub's own, where users who are not signed in say who they are.
    """
    c.JupyterHub.template_vars |= {"gpufarm_sign_in": anew}


def configure(c: Any, shared: str = "", groups: Iterable[str] = ()) -> None:
    """Have the error page use it.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        shared: as in `explain`.
        groups: as in `explain`.
    """
    ours = partial(explain, shared=shared, groups=tuple(groups))
    # The hub calls it for each page, with the user who looks at it or None; the page calls what it returns.
    c.JupyterHub.template_vars |= {"gpufarm_explain": lambda _user: ours}
