#!/usr/bin/env python3
"""A fake of Chronos 3.0.2: its options, its API at its ports, its election in ZooKeeper.

usage: as Chronos, `--master zk://... --zk_hosts HOST:2181 --zk_path /chronos/state --http_port 8080`. With
FAKE_GPU_PATCH=1 it is the build that knows GPUs. With zk_hosts `mem` it keeps its state in memory.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import json
import os
import pkgutil
import re
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.marathon import options, web
from lab.marathon.store import Memory, Store, ZooKeeper

from .jobs import Chronos, Refusal

TICK = 0.1  # seconds between looks at what is due


def flags(gpu_patch: bool) -> dict[str, Any]:
    """Return the list of options of a build."""
    known = json.loads(pkgutil.get_data(__package__ or "", "flags.json") or b"")
    return known["flags"] | (known["flags_gpu_patch"]["flags"] if gpu_patch else {})


class Api:
    """The resources below /v1/scheduler."""

    def __init__(self, store: Store, name: str, values: Mapping[str, Any], gpu_patch: bool) -> None:
        """Make the API of one instance.

        :param store: knows the leader and the state
        :param name: `host:port` of this instance
        :param values: of the options
        :param gpu_patch: whether this build knows GPUs
        """
        self.store, self.name, self.values, self.gpu_patch = store, name, values, gpu_patch
        self.lock = threading.RLock()
        self.chronos: Chronos | None = None

    def lead(self) -> Chronos:
        """Return the state, which a new leader takes over, after all that is due has happened."""
        if self.chronos is None:
            self.chronos = Chronos(time.time, self.values, self.gpu_patch, self.store.load() or None)
        self.chronos.advance()
        return self.chronos

    def tick(self) -> None:
        """Let time go by, if this instance leads; if not, forget what it knew, as another one changes it."""
        with self.lock:
            if self.store.leader() != self.name:
                self.chronos = None
                return
            before = json.dumps(self.chronos.data) if self.chronos else ""
            chronos = self.lead()
            if json.dumps(chronos.data) != before:
                self.store.save(chronos.data)

    def answer(self, request: web.Request) -> web.Response:
        """Answer a request as the leader."""
        if request.path in ("/ping", "/metrics"):
            return web.Response(200, "pong" if request.path == "/ping" else {"gauges": {}})
        try:
            with self.lock:
                chronos = self.lead()
                response = self._route(chronos, request)
                if request.method != "GET":
                    self.store.save(chronos.data)
                return response
        except (Refusal, ValueError, TypeError, AttributeError) as error:
            # what is wrong shows with a stack trace of Java
            trace = f"{error}\n\tat org.apache.mesos.chronos.scheduler.api.Iso8601JobResource.handleRequest"
            return web.Response(getattr(error, "status", 400), {"message": trace})

    def _route(self, chronos: Chronos, request: web.Request) -> web.Response:
        match = re.fullmatch(r"/v1/scheduler/(.*)", request.path)
        words = match[1].split("/") if match else [""]
        method = request.method
        if words in (["iso8601"], ["dependency"]) and method == "POST":
            chronos.put(request.json())
            return web.Response(204)
        if words[0] == "jobs" and method == "GET":
            return self._jobs(chronos, request, words[1:])
        if words[0] in ("job", "task") and len(words) > 1:
            return self._job(chronos, method, words)
        if words == ["leader"]:
            return web.Response(200, {"leader": self.name})
        if words == ["graph", "csv"] or words == ["graph", "dot"]:
            jobs = chronos.data["jobs"].values()
            rows = [f"node,{job['name']},{chronos.status(job)},{chronos.state(job['name'])}" for job in jobs]
            return web.Response(200, "\n".join(rows) + "\n")
        return web.Response(404, "Not Found")

    def _jobs(self, chronos: Chronos, request: web.Request, words: list[str]) -> web.Response:
        jobs = [job for _name, job in sorted(chronos.data["jobs"].items())]
        if words == ["search"]:
            query = {name: values[-1].lower() for name, values in request.query.items()}
            jobs = [
                job
                for job in jobs
                if query.get("name", "") in job["name"].lower()
                and query.get("command", "") in job["command"].lower()
                and query.get("any", "") in f"{job['name']} {job['command']}".lower()
            ]
            start = int(query.get("offset", 0))
            jobs = jobs[start : start + int(query.get("limit", 10))]
        if words == ["summary"]:
            rows = [
                {
                    "name": job["name"],
                    "status": chronos.status(job),
                    "state": chronos.state(job["name"]),
                    "schedule": job.get("schedule", ""),
                    "parents": job.get("parents", []),
                    "disabled": job["disabled"],
                }
                for job in jobs
            ]
            return web.Response(200, {"jobs": rows})
        return web.Response(200, jobs)

    def _job(self, chronos: Chronos, method: str, words: list[str]) -> web.Response:
        kind, name = words[0], words[-1]
        if kind == "task" and words[1] == "kill" and method == "DELETE":
            chronos.job(name)
            chronos.kill(name)
        elif words[1:2] == ["success"] and method == "PUT":
            chronos.succeed(name)
        elif words[1:2] == ["stat"] and method == "GET":
            job = chronos.job(name)
            return web.Response(200, {"taskStatHistory": [], "histogram": {"count": job["successCount"]}})
        elif len(words) == 2 and method == "GET":
            return web.Response(200, chronos.job(name))
        elif len(words) == 2 and method == "PUT":
            chronos.run(name)
        elif len(words) == 2 and method == "DELETE":
            chronos.delete(name)
        else:
            return web.Response(405, "Method Not Allowed")
        return web.Response(204)


def main() -> int:
    """Run the fake."""
    gpu_patch = os.environ.get("FAKE_GPU_PATCH") == "1"
    try:
        values = options.parse(sys.argv[1:], flags(gpu_patch))
        keystore = (
            values["ssl_keystore_path"] or os.environ.get("MESOSPHERE_KEYSTORE_PATH", ""),
            values["ssl_keystore_password"] or os.environ.get("MESOSPHERE_KEYSTORE_PASS", ""),
        )
        options.libprocess(os.environ)
    except (options.Stop, OSError) as error:
        print(f"[scallop] Error: {error}", file=sys.stderr)
        return 1
    port = values["https_port" if values["disable_http"] else "http_port"]
    name = f"{values['hostname'] or os.uname().nodename}:{port}"
    store: Store
    if values["zk_hosts"] == "mem":
        store = Memory(name)
    else:
        hosts = re.sub("^zk://|/.*$", "", values["zk_hosts"])
        store = ZooKeeper(
            name, hosts, values["zk_path"], values["zk_auth"] or "", values["zk_timeout"] / 1000
        )
    if values["mesos_authentication_secret_file"]:
        Path(values["mesos_authentication_secret_file"]).read_bytes()  # what cannot be read stops libmesos
    api = Api(store, name, values, gpu_patch)
    credentials = values["http_credentials"] or os.environ.get("MESOSPHERE_HTTP_CREDENTIALS", "")
    service = web.Service(store, name, api.answer, credentials=credentials, https=values["disable_http"])
    if keystore[0]:
        context = web.keystore_context(*keystore)
        web.listen(service, values["https_address"] or "0.0.0.0", values["https_port"], context)  # noqa: S104
    if not values["disable_http"]:
        web.listen(service, values["http_address"] or "0.0.0.0", values["http_port"])  # noqa: S104
    while True:
        api.tick()
        time.sleep(TICK)


if __name__ == "__main__":
    raise SystemExit(main())
