# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The operator API of Mesos masters (docs/operator-http-api.md, include/mesos/v1/master/master.proto)."""

from __future__ import annotations

from typing import Any, Callable

from ..._cluster.io.http import AGAIN, ClusterClient, Connection

# Below the name of the process, where it is on a master of its own and on one that shares its process.
API = "/master/api/v1"
ROLES = "/master/roles"
# A master that starts has its port before its paths, as 1.11.0 was seen to; while it recovers it says 503.
STARTING = (404, *AGAIN)


class MesosClient:
    """The masters of a cluster, asked as one."""

    def __init__(self, connection: Connection, **means: Callable[..., Any]) -> None:
        """Make a client; `means` are the last arguments of `ClusterClient`."""
        self.http = ClusterClient(connection, "Mesos", STARTING, **means)

    def call(self, kind: str, fields: Any = None) -> dict[str, Any]:
        """Make a call and return its answer without the envelope, empty when there is none.

        All calls that this collection makes may be repeated without harm.

        Args:
            kind: type of the call, such as ``GET_AGENTS``.
            fields: its arguments.

        Raises:
            ClusterError: it came to nothing.
        """
        body = {"type": kind}
        if fields is not None:
            body[kind.lower()] = fields
        answer = self.http.request("POST", API, body, expect=(200, 202)).json()
        return (answer or {}).get(kind.lower(), {})

    def roles(self) -> Any:
        """Return the roles with what they have (docs/endpoints/master/roles.md), which no call tells."""
        return self.http.request("GET", ROLES).json().get("roles", [])
