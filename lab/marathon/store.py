"""Leader and its state: in memory, or in ZooKeeper as the real ones do.

Sources: Marathon, --internal_store_backend, --leader_election_backend, --zk; Chronos, --zk_hosts, --zk_path,
--zk_auth. How nodes below that path look is the fakes' own.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import zlib
from typing import Any, Protocol


class Store(Protocol):
    """Where the state is."""

    def leader(self) -> str:
        """Return `host:port` of the leader, empty when there is none."""

    def load(self) -> dict[str, Any]:
        """Return the state, empty at first."""

    def save(self, state: dict[str, Any]) -> None:
        """Keep the state."""


class Memory:
    """One instance that leads and forgets when it ends."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.text = "{}"

    def leader(self) -> str:
        return self.name

    def load(self) -> dict[str, Any]:
        return json.loads(self.text)

    def save(self, state: dict[str, Any]) -> None:
        self.text = json.dumps(state)


class ZooKeeper:
    """Instances that elect the one whose ephemeral node is the oldest."""

    def __init__(self, name: str, hosts: str, path: str, auth: str = "", session_timeout: float = 10) -> None:
        """Connect, and stand for election.

        :param name: `host:port` of this instance
        :param hosts: `host:port` of the servers, with commas between them
        :param path: node below which all is kept
        :param auth: `user:password`; nodes then belong to that user alone
        :param session_timeout: seconds after which an instance that is gone leads no longer
        """
        from kazoo.client import KazooClient, KazooState
        from kazoo.security import make_digest_acl

        user, _colon, password = auth.partition(":")
        self.client = KazooClient(
            hosts=hosts,
            timeout=session_timeout,
            auth_data=[("digest", auth)] if auth else None,
            default_acl=[make_digest_acl(user, password, all=True)] if auth else None,
        )
        self.path = path.rstrip("/")
        # A leader that lost its session must not go on; systemd starts it anew.
        self.client.add_listener(lambda state: os._exit(1) if state == KazooState.LOST else None)
        self.client.start(timeout=30)
        for folder in ("leader", "state"):
            self.client.ensure_path(f"{self.path}/{folder}")
        made = self.client.create(f"{self.path}/leader/member_", name.encode(), ephemeral=True, sequence=True)
        self.name, self.member = name, made.rpartition("/")[2]

    def leader(self) -> str:
        from kazoo.exceptions import NoNodeError

        for member in sorted(self.client.get_children(f"{self.path}/leader")):
            try:
                name = self.client.get(f"{self.path}/leader/{member}")[0].decode()
                # A killed instance leads until its session ends; its successor of the same name does not.
                return "" if name == self.name and member != self.member else name
            except NoNodeError:
                continue
        return ""

    def load(self) -> dict[str, Any]:
        data, _stat = self.client.get(f"{self.path}/state")
        return json.loads(zlib.decompress(data)) if data else {}

    def save(self, state: dict[str, Any]) -> None:
        self.client.set(f"{self.path}/state", zlib.compress(json.dumps(state).encode()))
