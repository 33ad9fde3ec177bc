"""The agents and quotas that a Mesos has, for a fake that places tasks on those which are alive.

The real Marathon gets offers by the protocol of schedulers; here the master is asked for its agents and for
the limits of roles, by which it would cut the offers. Sources:
apache/mesos 1.11.0, src/zookeeper/group.cpp (the member with the lowest number leads),
include/mesos/v1/master/master.proto (GET_AGENTS; `recovered_agents` are those that a new master knows from
its registry and that have not come back yet; GET_QUOTA).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.request
from collections.abc import Mapping
from typing import Any, NamedTuple


class View(NamedTuple):
    """Answers of a master.

    :ivar agents: that make offers, as the state of the fake takes them
    :ivar alive: hosts of all that the master has not given up
    :ivar limits: what a role may have at most, by role and resource
    """

    agents: list[dict[str, Any]]
    alive: list[str]
    limits: dict[str, dict[str, float]]


class Mesos:
    """The masters of one cluster."""

    def __init__(self, address: str, login: str, context: ssl.SSLContext | None) -> None:
        """Connect to their ZooKeeper.

        :param address: `zk://host:port,.../path`, also with a user and a password
        :param login: `principal:secret` that the masters know
        :param context: what to ask them with where they speak TLS
        :raises ValueError: the address is another one
        """
        from kazoo.client import KazooClient

        match = re.fullmatch(r"zk://(?:[^@/]+@)?([^/]+)(/.+)", address)
        if not match:
            raise ValueError(f"{address} is no address of ZooKeeper")
        self.path = match[2]
        self.client = KazooClient(hosts=match[1])
        self.client.start(timeout=30)
        pair = base64.b64encode(login.encode()).decode()
        self.headers = {"Authorization": f"Basic {pair}", "Content-Type": "application/json"}
        self.context = context

    def view(self) -> View | None:
        """Return what the leader tells; None without one, as while they elect another."""
        from kazoo.exceptions import KazooException

        try:
            members = [one for one in self.client.get_children(self.path) if one.startswith("json.info_")]
            leader = json.loads(self.client.get(f"{self.path}/{min(members)}")[0])
            url = f"http{'s' if self.context else ''}://{leader['hostname']}:{leader['port']}/api/v1"
            return read(self._ask(url, "GET_AGENTS"), self._ask(url, "GET_QUOTA"))
        except (KazooException, OSError, ValueError):
            return None

    def _ask(self, url: str, kind: str) -> Any:
        body = json.dumps({"type": kind}).encode()
        request = urllib.request.Request(url, body, self.headers)  # noqa: S310 - that of the leader
        with urllib.request.urlopen(request, timeout=5, context=self.context) as answer:  # noqa: S310
            return json.load(answer)[kind.lower()]


def read(agents: Mapping[str, Any], quota: Mapping[str, Any]) -> View:
    """Return what answers to GET_AGENTS and GET_QUOTA mean."""
    registered = agents.get("agents", [])
    infos = [one["agent_info"] for one in registered] + agents.get("recovered_agents", [])
    offering = [_agent(one) for one in registered if one["active"]]
    limits = {
        one["role"]: {name: amount["value"] for name, amount in one.get("limits", {}).items()}
        for one in quota["status"].get("configs", [])
    }
    return View(offering, [info["hostname"] for info in infos], limits)


def _agent(told: Mapping[str, Any]) -> dict[str, Any]:
    info = told["agent_info"]
    scalars = {one["name"]: one["scalar"]["value"] for one in told["total_resources"] if "scalar" in one}
    texts = {one["name"]: one["text"]["value"] for one in info.get("attributes", []) if "text" in one}
    return {**scalars, "host": info["hostname"], "attributes": texts}
