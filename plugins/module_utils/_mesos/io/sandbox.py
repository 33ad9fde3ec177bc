# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what tasks have printed from their agents (docs/operator-http-api.md, READ_FILE)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from ..._cluster.io.http import ClusterClient, ClusterError, Connection, Refused, Unreachable
from ..console import STREAMS, Task, folder, readable

# Seconds for a request to an agent, and for all attempts: the next reading may go better.
TIMEOUT, PATIENCE = 10.0, 5.0
# The call is one POST, so each answer has its status here.
GONE = 404


class Sandboxes:
    """The agents of a cluster, asked for files of tasks. An agent that does not answer is asked once."""

    def __init__(
        self,
        connection: Connection,
        agents: Mapping[str, Mapping[str, Any]],
        most: int,
        **means: Any,
    ) -> None:
        """Make one.

        Args:
            connection: to the masters, whose scheme and credentials agents share.
            agents: what GET_AGENTS tells of each, by id.
            most: bytes at the end of each stream that are read.
            means: the last arguments of `ClusterClient`.
        """
        self._connection = connection
        self._agents = agents
        self._most = most
        self._means = means
        self._clients: dict[str, ClusterClient] = {}
        self._silent: dict[str, str] = {}

    def printed(self, task: Task) -> dict[str, Any]:
        """Return what a task has printed.

        Args:
            task: the task.

        Returns:
            ``stdout`` and ``stderr``, texts; ``cut``, the streams of which only the end was read;
            ``unread``, a sentence that says why nothing was read; ``machine``.
        """
        agent = self._agents.get(task.agent)
        found: dict[str, Any] = {"stdout": "", "stderr": "", "cut": [], "unread": "", "machine": ""}
        if agent is None:
            why = "Its agent is not registered with Mesos." if task.agent else "No agent has it yet."
            return {**found, "unread": why}
        host = str(agent["agent_info"]["hostname"])
        found["machine"] = host
        try:
            for stream in STREAMS:
                text, cut = self._end(task, host, stream)
                found[stream] = text
                found["cut"] += [stream] if cut else []
        except Refused as error:
            gone = f"The agent on {host} has no files of this task any more."
            return {**found, "stdout": "", "unread": gone if error.status == GONE else str(error)}
        except ClusterError as error:
            self._silent[task.agent] = str(error)
            return {**found, "stdout": "", "unread": str(error)}
        return found

    def _end(self, task: Task, host: str, stream: str) -> tuple[str, bool]:
        """The end of a stream as text, and whether there is more before it."""
        if task.agent in self._silent:
            raise ClusterError(self._silent[task.agent])
        path = f"{folder(task)}/{stream}"
        size = int(self._read(task.agent, host, path, 0, 0).get("size", 0))
        start = max(0, size - self._most)
        data = self._read(task.agent, host, path, start, self._most).get("data", "") if size else ""
        return readable(base64.b64decode(data)[: self._most], not start), start > 0

    def _read(self, agent: str, host: str, path: str, offset: int, length: int) -> Mapping[str, Any]:
        client, prefix = self._client(agent, host)
        body = {"type": "READ_FILE", "read_file": {"path": path, "offset": offset, "length": length}}
        try:
            answer = client.request("POST", f"{prefix}/api/v1", body).json()
        except Unreachable as error:
            raise ClusterError(f"The agent on {host} does not answer.") from error
        found: Mapping[str, Any] = (answer or {}).get("read_file", {})
        return found

    def _client(self, agent: str, host: str) -> tuple[ClusterClient, str]:
        entry = self._agents[agent]
        prefix = str(entry.get("pid", "")).partition("@")[0]
        if agent not in self._clients:
            scheme = urlsplit(self._connection.urls[0]).scheme
            url = f"{scheme}://{host}:{int(entry['agent_info'].get('port', 5051))}"
            own = self._connection._replace(urls=[url], timeout=TIMEOUT, patience=PATIENCE)
            self._clients[agent] = ClusterClient(own, f"the agent on {host}", **self._means)
        return self._clients[agent], f"/{prefix}" if prefix else ""
