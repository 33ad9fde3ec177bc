# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A framework of Mesos that sees offers and runs shell commands (docs/scheduler-http-api.md)."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import queue
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

from lab.patience import PATIENCE

PATH = "/master/api/v1/scheduler"


class Framework:
    """One framework, subscribed when it is made.

    :param port: of the master on this machine
    :param gpus: whether it may get machines with GPUs (capability GPU_RESOURCES)
    :param user: ``name:password``
    """

    def __init__(self, port: int, role: str = "*", gpus: bool = True, user: str = "") -> None:
        self.port, self.role = port, role
        self.events: queue.Queue[dict[str, Any]] = queue.Queue()
        self.headers = {"Content-Type": "application/json", "Accept": "application/json"}
        info: dict[str, Any] = {"user": "root", "name": "test", "roles": [role], "failover_timeout": 0}
        info["capabilities"] = [{"type": "MULTI_ROLE"}, *([{"type": "GPU_RESOURCES"}] if gpus else [])]
        if user:
            self.headers["Authorization"] = f"Basic {base64.b64encode(user.encode()).decode()}"
            info["principal"] = user.partition(":")[0]
        link = http.client.HTTPConnection("127.0.0.1", port)
        body = {"type": "SUBSCRIBE", "subscribe": {"framework_info": info}}
        link.request("POST", PATH, json.dumps(body), self.headers)
        self.stream = link.getresponse()
        self.status = self.stream.status
        self.error = ""
        if self.status != 200:
            self.error = self.stream.read().decode()
            return
        self.headers["Mesos-Stream-Id"] = self.stream.headers["Mesos-Stream-Id"]
        threading.Thread(target=self._read, daemon=True).start()
        first = self.events.get(timeout=PATIENCE)
        self.error = first.get("error", {}).get("message", "")
        self.id = first.get("subscribed", {}).get("framework_id")

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError, http.client.HTTPException):  # when the stream ends
            while True:
                length = b""
                while not length.endswith(b"\n"):
                    byte = self.stream.read(1)
                    if not byte:
                        return
                    length += byte
                event = json.loads(self.stream.read(int(length)))
                # at once: an agent is drained only when its last updates are acknowledged
                status = event.get("update", {}).get("status", {})
                if "uuid" in status:
                    names = ("agent_id", "task_id", "uuid")
                    self.call("ACKNOWLEDGE", acknowledge={name: status[name] for name in names})
                self.events.put(event)

    def call(self, kind: str, **fields: Any) -> None:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        link.request(
            "POST", PATH, json.dumps({"type": kind, "framework_id": self.id, **fields}), self.headers
        )
        answer = link.getresponse()
        assert answer.status in (200, 202), answer.read()

    def offers(self, seconds: float = PATIENCE, settle: float = 3) -> list[dict[str, Any]]:
        """Offers, as soon as no more come for `settle` seconds, three rounds."""
        found: list[dict[str, Any]] = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                event = self.events.get(timeout=settle if found else end - time.monotonic())
            except queue.Empty:
                break
            if event["type"] == "OFFERS":
                found += event["offers"]["offers"]
        return found

    def launch(self, offer: dict[str, Any], command: str, name: str = "", **amounts: float) -> str:
        task = name or uuid.uuid4().hex
        resources = [
            {
                "name": name,
                "type": "SCALAR",
                "scalar": {"value": value},
                "allocation_info": {"role": self.role},
            }
            for name, value in {"cpus": 0.1, "mem": 32, **amounts}.items()
        ]
        info = {
            "name": task,
            "task_id": {"value": task},
            "agent_id": offer["agent_id"],
            "resources": resources,
        }
        info["command"] = {"value": command}
        operation = {"type": "LAUNCH", "launch": {"task_infos": [info]}}
        self.call("ACCEPT", accept={"offer_ids": [offer["id"]], "operations": [operation]})
        return task

    def wait(self, state: str, seconds: float = PATIENCE) -> dict[str, Any]:
        """Wait until a task is in a state, and return the update that says so."""
        end = time.monotonic() + seconds
        while True:
            event = self.events.get(timeout=max(0.01, end - time.monotonic()))
            if event["type"] != "UPDATE":
                continue
            status: dict[str, Any] = event["update"]["status"]
            if status["state"] == state:
                return status

    def stop(self) -> None:
        self.call("TEARDOWN")


def amounts(offers: list[dict[str, Any]], name: str) -> float:
    """How much of a resource there is in offers."""
    found = (one for offer in offers for one in offer["resources"] if one["name"] == name)
    return sum(float(one["scalar"]["value"]) for one in found)


def until(happened: Callable[[], bool], seconds: float = PATIENCE, pause: float = 0.1) -> None:
    """Wait until something has happened, and fail when it does not."""
    end = time.monotonic() + seconds
    while not happened():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(pause)
