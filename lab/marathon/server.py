#!/usr/bin/env python3
"""A fake of Marathon 1.11: its options, its API at its ports, its election in ZooKeeper.

usage: as Marathon, `--master zk://... --zk zk://... --http_port 8080`; without ZooKeeper
`--internal_store_backend mem --disable_ha`.

The agents are in the file that FAKE_AGENTS names: a list of {host, cpus, mem, disk, gpus, role,
attributes}. With FAKE_AGENTS=mesos they are those that the masters have.
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
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from . import cluster, options, web
from .mesos import Mesos
from .state import Marathon, Refusal, resolve, stamp
from .store import Memory, Store, ZooKeeper

VERSION = os.environ.get("FAKE_VERSION", "1.11.24")
TICK = 0.1  # seconds between looks at what is due
LOOK = 0.5  # seconds between looks at the agents of a Mesos
PREFIX = "MARATHON_"
MESOS = "mesos"  # FAKE_AGENTS where the masters are asked


def flags() -> dict[str, Any]:
    """Return the list of options."""
    return json.loads(pkgutil.get_data(__package__ or "", "flags.json") or b"")["flags"]


class Api:
    """The resources below /v2."""

    def __init__(
        self, store: Store, name: str, values: Mapping[str, Any], agents: Any = cluster.AGENTS
    ) -> None:
        """Make the API of one instance.

        :param store: knows the leader and the state
        :param name: `host:port` of this instance
        :param values: of the options
        :param agents: the cluster's
        """
        self.store, self.name, self.values, self.agents = store, name, values, agents
        self.lock = threading.RLock()
        self.marathon: Marathon | None = None
        self.faults: list[int] = []

    def lead(self) -> Marathon:
        """Return the state, which a new leader takes over, after all that is due has happened."""
        if self.marathon is None:
            features = (self.values["enable_features"] or "").split(",")
            self.marathon = Marathon(
                time.time,
                self.agents,
                gpu_feature="gpu_resources" in features,
                unrestricted=self.values["gpu_scheduling_behavior"] == "unrestricted",
                role=self.values["mesos_role"],
                enforce_new=self.values["new_group_enforce_role"] == "top",
                data=self.store.load() or None,
            )
        self.marathon.advance()
        return self.marathon

    def tick(self) -> None:
        """Let time go by, if this instance leads; if not, forget what it knew, as another one changes it."""
        with self.lock:
            if self.store.leader() != self.name:
                self.marathon = None
                return
            before = json.dumps(self.marathon.data) if self.marathon else ""
            marathon = self.lead()
            if json.dumps(marathon.data) != before:
                self.store.save(marathon.data)

    def follow(self, mesos: Mesos) -> None:
        """Take over which agents a Mesos has, for as long as this instance leads. Without a master all stays
        as it is."""
        while True:
            if self.marathon and (view := mesos.view()):
                with self.lock:
                    self.marathon.meet(*view)
            time.sleep(LOOK)

    def answer(self, request: web.Request) -> web.Response:
        """Answer a request as the leader."""
        if request.path in ("/ping", "/metrics"):
            return web.Response(
                200, "pong" if request.path == "/ping" else {"version": "4.0.0", "gauges": {}}
            )
        if request.path == "/fake/faults":  # a test's: statuses that the next requests get
            self.faults = request.json()
            return web.Response(204)
        if request.path == "/fake/agents":  # a test's: those that there are from now on
            with self.lock:
                self.lead().meet(request.json(), [one["host"] for one in request.json()])
            return web.Response(204)
        if self.faults:
            return web.Response(self.faults.pop(0), {"message": "Service Unavailable"})
        try:
            with self.lock:
                marathon = self.lead()
                response = self._route(marathon, request)
                if request.method != "GET":
                    self.store.save(marathon.data)
                return response
        except Refusal as refusal:
            return web.Response(refusal.status, refusal.answer)
        except ValueError as error:
            return web.Response(
                400, {"message": "Invalid JSON", "details": [{"path": "/", "errors": [str(error)]}]}
            )

    def _route(self, marathon: Marathon, request: web.Request) -> web.Response:
        for pattern, name in ROUTES:
            match = re.fullmatch(pattern, request.path.rstrip("/"))
            if match:
                method = getattr(self, f"{request.method.lower()}_{name}", None)
                if method is None:
                    return web.Response(405, {"message": "Method Not Allowed"})
                return method(marathon, request, *match.groups())
        return web.Response(404, {"message": "Not Found"})

    # --- apps

    def get_apps(self, marathon: Marathon, request: web.Request) -> web.Response:
        wanted = {name: request.query.get(name, [""])[-1] for name in ("id", "cmd", "label")}
        shown = []
        for path in sorted(marathon.data["apps"]):
            app = marathon.show_app(
                path, "app.tasks" in request.query.get("embed", ()) or "apps.tasks" in str(request.query)
            )
            key, _equals, value = wanted["label"].partition("==")
            if (
                wanted["id"] in path
                and wanted["cmd"] in app.get("cmd", "")
                and (not key or (key in app["labels"] and value in ("", app["labels"][key])))
            ):
                shown.append(app)
        return web.Response(200, {"apps": shown})

    def post_apps(self, marathon: Marathon, request: web.Request) -> web.Response:
        app = request.json()
        path = resolve("/", app.get("id", ""))
        if path in marathon.data["apps"]:
            raise Refusal(409, f"An app with id [{path}] already exists.")
        answer = marathon.put_apps([app], request.flag("force"))
        headers = {"Marathon-Deployment-Id": answer["deploymentId"], "Location": f"/v2/apps{path}"}
        shown = marathon.show_app(path, with_tasks=True) | {"deployments": [{"id": answer["deploymentId"]}]}
        return web.Response(201, shown, headers)

    def put_apps(self, marathon: Marathon, request: web.Request) -> web.Response:
        wanted = [self._merged(marathon, app, request) for app in request.json()]
        return web.Response(200, marathon.put_apps(wanted, request.flag("force")))

    patch_apps = put_apps

    def _merged(self, marathon: Marathon, app: Mapping[str, Any], request: web.Request) -> dict[str, Any]:
        """A PUT is a patch unless it says otherwise."""
        path = resolve("/", app.get("id", ""))
        old = (
            marathon.data["apps"].get(path, {}).get("definition", {})
            if request.flag("partialUpdate", True)
            else {}
        )
        return {**old, **app, "id": path}

    def get_app(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        if path.endswith("/*"):
            inside = path.removesuffix("*")
            return web.Response(
                200,
                {"*": [marathon.show_app(one) for one in marathon.data["apps"] if one.startswith(inside)]},
            )
        return web.Response(200, {"app": marathon.show_app(self._known(marathon, path), with_tasks=True)})

    def put_app(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        app = request.json()
        if "version" in app and len(app) == 1:
            found = [one for one in self._history(marathon, path) if one["version"] == app["version"]]
            if not found:
                raise Refusal(404, f"App '{path}' does not exist in version {app['version']}")
            app = found[0]["definition"]
        new = path not in marathon.data["apps"]
        answer = marathon.put_apps(
            [self._merged(marathon, {**app, "id": path}, request)], request.flag("force")
        )
        return web.Response(201 if new else 200, answer, {"Marathon-Deployment-Id": answer["deploymentId"]})

    patch_app = put_app

    def delete_app(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        answer = marathon.delete_apps([self._known(marathon, path)], request.flag("force"))
        return web.Response(200, answer, {"Marathon-Deployment-Id": answer["deploymentId"]})

    def post_restart(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        return web.Response(200, marathon.restart_app(self._known(marathon, path), request.flag("force")))

    def get_app_tasks(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        return web.Response(
            200, {"tasks": [marathon.show_task(one) for one in marathon.tasks(self._known(marathon, path))]}
        )

    def delete_app_tasks(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        tasks = marathon.tasks(self._known(marathon, path))
        if request.flag("scale"):
            definition = marathon.data["apps"][path]["definition"] | {"instances": 0}
            return web.Response(200, marathon.put_apps([definition], request.flag("force")))
        return web.Response(200, {"tasks": marathon.kill([task["id"] for task in tasks])})

    def delete_app_task(self, marathon: Marathon, request: web.Request, path: str, task: str) -> web.Response:
        killed = marathon.kill([task])
        if not killed:
            raise Refusal(404, f"Task '{task}' does not exist")
        return web.Response(200, {"task": killed[0]})

    def get_versions(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        return web.Response(
            200, {"versions": [one["version"] for one in reversed(self._history(marathon, path))]}
        )

    def get_version(self, marathon: Marathon, request: web.Request, path: str, version: str) -> web.Response:
        for one in self._history(marathon, path):
            if one["version"] == version:
                return web.Response(200, {**one["definition"], "version": version})
        raise Refusal(404, f"App '{path}' does not exist in version {version}")

    def _known(self, marathon: Marathon, path: str) -> str:
        if path not in marathon.data["apps"]:
            raise Refusal(404, f"App '{path}' does not exist")
        return path

    def _history(self, marathon: Marathon, path: str) -> list[dict[str, Any]]:
        return marathon.data["apps"][self._known(marathon, path)]["history"]

    # --- groups

    def get_groups(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(200, marathon.show_group("/"))

    def get_group(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        return web.Response(200, marathon.show_group(path))

    def post_groups(self, marathon: Marathon, request: web.Request) -> web.Response:
        update = request.json()
        path = resolve("/", update.get("id", ""))
        if path in marathon.group_ids():
            raise Refusal(409, f"Group {path} is already created. Use PUT to change this group.")
        return web.Response(201, marathon.put_group(path, update, request.flag("force")))

    def put_group(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        update = request.json()
        if request.flag("dryRun"):
            return web.Response(200, {"steps": []})
        if "scaleBy" in update:
            inside = path.rstrip("/") + "/"
            scaled = [
                entry["definition"]
                | {"instances": round(entry["definition"]["instances"] * update["scaleBy"])}
                for one, entry in marathon.data["apps"].items()
                if one.startswith(inside)
            ]
            return web.Response(200, marathon.put_apps(scaled, request.flag("force")))
        new = path not in marathon.group_ids()
        return web.Response(201 if new else 200, marathon.put_group(path, update, request.flag("force")))

    def patch_group(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        marathon.enforce(path, bool(request.json()["enforceRole"]))
        return web.Response(200, {"version": stamp(marathon.clock())})

    def delete_group(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        return web.Response(200, marathon.delete_group(path, request.flag("force")))

    # --- the rest

    def get_deployments(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(200, marathon.show_deployments())

    def delete_deployment(self, marathon: Marathon, request: web.Request, number: str) -> web.Response:
        answer = marathon.cancel(number, request.flag("force"))
        return web.Response(202) if answer is None else web.Response(200, answer)

    def get_tasks(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(
            200, {"tasks": [marathon.show_task(one) for one in marathon.data["tasks"].values()]}
        )

    def post_tasks_delete(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(200, {"tasks": marathon.kill(request.json()["ids"])})

    def get_queue(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(
            200, {"queue": marathon.queue("lastUnusedOffers" in request.query.get("embed", ()))}
        )

    def delete_delay(self, marathon: Marathon, request: web.Request, path: str) -> web.Response:
        marathon.data["apps"][self._known(marathon, path)].update(not_before=0, failures=0)
        return web.Response(204)

    def get_leader(self, marathon: Marathon, request: web.Request) -> web.Response:
        return web.Response(200, {"leader": self.name})

    def delete_leader(self, marathon: Marathon, request: web.Request) -> web.Response:
        threading.Timer(0.3, os._exit, [0]).start()  # the process ends, and systemd starts it anew
        return web.Response(200, {"message": "Leadership abdicated"})

    def get_info(self, marathon: Marathon, request: web.Request) -> web.Response:
        shown = (
            "checkpoint",
            "framework_name",
            "ha",
            "hostname",
            "master",
            "mesos_role",
            "new_group_enforce_role",
        )
        return web.Response(
            200,
            {
                "name": "marathon",
                "version": VERSION,
                "buildref": "unknown",
                "elected": True,
                "leader": self.name,
                "frameworkId": marathon.data["framework"],
                "marathon_config": {name: self.values[name] for name in shown}
                | {"features": [one for one in (self.values["enable_features"] or "").split(",") if one]},
                "zookeeper_config": {"zk": re.sub("//[^@/]*@", "//", self.values["zk"])},
                "http_config": {
                    "http_port": self.values["http_port"],
                    "https_port": self.values["https_port"],
                },
            },
        )

    def get_events(self, marathon: Marathon, request: web.Request) -> web.Response:
        if "text/event-stream" not in request.headers.get("accept", ""):
            return web.Response(405, "")
        kinds = set(request.query.get("event_type", ()))
        return web.Response(200, headers={"Content-Type": "text/event-stream"}, stream=self._stream(kinds))

    def _stream(self, kinds: set[str]) -> Iterator[str]:
        """Events as they happen, and an empty line now and then by which a client that has gone is
        noticed."""
        seen = self.marathon.event_number if self.marathon else 0
        yield self._event(
            {"eventType": "event_stream_attached", "remoteAddress": "", "timestamp": stamp(time.time())}
        )
        quiet = 0
        while True:
            with self.lock:
                new = [one for one in self.lead().events if one["number"] > seen]
            for event in new:
                seen = event["number"]
                if not kinds or event["eventType"] in kinds:
                    yield self._event({key: value for key, value in event.items() if key != "number"})
            quiet = 0 if new else quiet + 1
            if quiet % 50 == 49:
                yield "\r\n"
            time.sleep(TICK)

    def _event(self, event: Mapping[str, Any]) -> str:
        return f"event: {event['eventType']}\r\ndata: {json.dumps(event)}\r\n\r\n"


APP = r"/v2/apps/?(/.+?)"
ROUTES = (
    (r"/v2/apps", "apps"),
    (APP + "/restart", "restart"),
    (APP + r"/tasks/([^/]+)", "app_task"),
    (APP + "/tasks", "app_tasks"),
    (APP + r"/versions/([^/]+)", "version"),
    (APP + "/versions", "versions"),
    (APP, "app"),
    (r"/v2/groups", "groups"),
    (r"/v2/groups/?(/.+?)", "group"),
    (r"/v2/deployments", "deployments"),
    (r"/v2/deployments/([^/]+)", "deployment"),
    (r"/v2/tasks", "tasks"),
    (r"/v2/tasks/delete", "tasks_delete"),
    (r"/v2/queue", "queue"),
    (r"/v2/queue/?(/.+?)/delay", "delay"),
    (r"/v2/leader", "leader"),
    (r"/v2/info", "info"),
    (r"/v2/events", "events"),
)


def serve(values: Mapping[str, Any], api: Api, credentials: str, keystore: tuple[str, str]) -> None:
    """Open the ports that the options ask for."""
    local = ("/ping", "/metrics", "/fake/faults")
    service = web.Service(
        api.store, api.name, api.answer, local, ("/v2/events",), credentials, bool(values["disable_http"])
    )
    if keystore[0]:
        context = web.keystore_context(*keystore)
        web.listen(service, values["https_address"] or "0.0.0.0", values["https_port"], context)  # noqa: S104
    if not values["disable_http"]:
        web.listen(service, values["http_address"] or "0.0.0.0", values["http_port"])  # noqa: S104


def own_name(values: Mapping[str, Any]) -> str:
    """Return `host:port` by which other instances reach this one."""
    port = values["https_port" if values["disable_http"] else "http_port"]
    return f"{values['hostname'] or os.uname().nodename}:{port}"


def agents() -> Any:
    """Return the agents of the file that FAKE_AGENTS names; none yet where a Mesos has them."""
    path = os.environ.get("FAKE_AGENTS", "")
    if path == MESOS:
        return ()
    return json.loads(Path(path).read_text()) if path else cluster.AGENTS


def main() -> int:
    """Run the fake."""
    try:
        words = options.from_environment(os.environ, PREFIX) + sys.argv[1:]
        values = options.parse(words, flags())
        if not values["master"]:
            raise options.Stop("Required option 'master' not found")
        if values["mesos_authentication"] and not values["mesos_authentication_principal"]:
            raise options.Stop("mesos_authentication_principal must be set when mesos_authentication is")
        keystore = (
            values["ssl_keystore_path"] or os.environ.get("MESOSPHERE_KEYSTORE_PATH", ""),
            values["ssl_keystore_password"] or os.environ.get("MESOSPHERE_KEYSTORE_PASS", ""),
        )
        if keystore[0] and not keystore[1]:
            raise options.Stop("ssl_keystore_password must be set when ssl_keystore_path is")
        context = options.libprocess(os.environ)
    except options.Stop as error:
        print(f"[scallop] Error: {error}", file=sys.stderr)
        return 1
    name = own_name(values)
    store: Store
    if values["internal_store_backend"] == "mem":
        store = Memory(name)
    else:
        match = re.fullmatch(r"zk://(?:([^@/]+)@)?([^/]+)(/.*)", values["zk"])
        if not match:
            print("[scallop] Error: zk must be zk://host:port/path", file=sys.stderr)
            return 1
        store = ZooKeeper(name, match[2], match[3], match[1] or "", values["zk_session_timeout"] / 1000)
    secret_file = values["mesos_authentication_secret_file"]
    secret = Path(secret_file).read_text() if secret_file else ""  # what cannot be read stops libmesos
    api = Api(store, name, values, agents())
    credentials = values["http_credentials"] or os.environ.get("MESOSPHERE_HTTP_CREDENTIALS", "")
    serve(values, api, credentials, keystore)
    if os.environ.get("FAKE_AGENTS") == MESOS:
        login = f"{values['mesos_authentication_principal']}:{secret}"
        mesos = Mesos(values["master"], login, context)
        threading.Thread(target=api.follow, args=[mesos], daemon=True).start()
    while True:
        api.tick()
        time.sleep(TICK)


if __name__ == "__main__":
    raise SystemExit(main())
