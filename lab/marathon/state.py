"""State of a Marathon, and its changes over time: apps, groups, tasks, deployments, events. No
I/O.

Sources: mesosphere/marathon, docs/deployments.md (a deployment locks its apps and lasts until all instances
run and are healthy; minimumHealthCapacity, maximumOverCapacity; rollback), docs/rest-api (answers),
docs/event-bus.md (events), core/event/Events.scala, docs/recovery-and-backoff.md (backoff),
docs/unreachable-strategy.md (tasks of an agent that is gone),
GroupsResource.scala (enforceRole and services are changed in separate requests), and
api/v2/AppsResource.scala (statuses). How long things take is set by the test.

In the environment of an app, tests tell what becomes of its tasks: FAKE_LAUNCH_SECONDS (0.2) until they
run, FAKE_EXIT to end at once, FAKE_UNHEALTHY to fail their health checks.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import copy
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count as count_from
from itertools import islice
from typing import Any

from . import apps as definitions
from . import cluster

LAUNCH_SECONDS, KILL_SECONDS = 0.2, 0.1
LOCKED = (
    "App is locked by one or more deployments. Override with the option '?force=true'. "
    "View details at '/v2/deployments/<DEPLOYMENT_ID>'."
)
EVENTS_KEPT = 1000


class Refusal(Exception):
    """A request that is not done.

    :ivar status: of HTTP
    :ivar answer: for the client
    """

    def __init__(self, status: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.answer = {"message": message, **more}


def segments(path: str) -> list[str]:
    """Return the parts of a path."""
    return [part for part in path.split("/") if part]


class Marathon:
    """The state of one cluster, which is `data`, and the rules by which it changes."""

    def __init__(
        self,
        clock: Callable[[], float],
        agents: Sequence[cluster.Agent] = cluster.AGENTS,
        gpu_feature: bool = False,
        unrestricted: bool = False,
        role: str = "*",
        enforce_new: bool = False,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Make a Marathon.

        :param clock: tells the time in seconds since 1970
        :param gpu_feature: feature gpu_resources; without it Mesos offers no agents that have GPUs
        :param unrestricted: --gpu_scheduling_behavior
        :param role: --mesos_role
        :param enforce_new: --new_group_enforce_role top
        :param data: state of an earlier leader
        """
        self.clock = clock
        self.gpu_feature, self.unrestricted = gpu_feature, unrestricted
        self.meet(agents)
        self.role, self.enforce_new = role, enforce_new
        self.events: list[dict[str, Any]] = []
        self.event_number = 0
        self.data: dict[str, Any] = data or {
            "framework": f"{uuid.uuid4()}-0000",
            "versions": 0,
            "apps": {},
            "groups": {},
            "tasks": {},
            "deployments": [],
        }

    def meet(
        self,
        agents: Sequence[cluster.Agent],
        alive: Iterable[str] | None = None,
        limits: Mapping[str, Mapping[str, float]] | None = None,
    ) -> None:
        """Take over which agents there are.

        :param agents: that make offers
        :param alive: hosts whose tasks go on; those of all others are unreachable. None for all hosts.
        :param limits: what a role may have at most, by role and resource
        """
        self.limits = limits or {}
        self.agents = [one for one in agents if self.gpu_feature or not one.get("gpus")]
        self.alive = None if alive is None else set(alive)

    # --- reading

    def group_ids(self) -> list[str]:
        """Return the paths of all groups: those that were made, and those that apps lie in."""
        found = {"/"}
        for path in [*self.data["groups"], *(app.rpartition("/")[0] for app in self.data["apps"])]:
            parts = segments(path)
            found |= {"/" + "/".join(parts[:depth]) for depth in range(1, len(parts) + 1)}
        return sorted(found)

    def tasks(self, app: str) -> list[dict[str, Any]]:
        """Return the tasks of an app, the oldest first."""
        found = [task for task in self.data["tasks"].values() if task["appId"] == app]
        return sorted(found, key=lambda task: (task["staged"], task["id"]))

    def deployments_of(self, path: str) -> list[dict[str, Any]]:
        """Return the deployments that touch an app, or an app of a group."""
        inside = path.rstrip("/") + "/"
        return [
            one
            for one in self.data["deployments"]
            if any(app == path or app.startswith(inside) for app in one["affectedApps"])
        ]

    def show_app(self, path: str, with_tasks: bool = False) -> dict[str, Any]:
        """Return an app as the API tells of it."""
        entry = self.data["apps"][path]
        tasks = self.tasks(path)
        health = [self._healthy(entry["definition"], task) for task in tasks]
        checked = bool(entry["definition"].get("healthChecks"))
        shown = {
            **entry["definition"],
            "version": entry["version"],
            "versionInfo": {"lastScalingAt": entry["version"], "lastConfigChangeAt": entry["config"]},
            "tasksStaged": sum(task["state"] == "TASK_STAGING" for task in tasks),
            "tasksRunning": sum(task["state"] == "TASK_RUNNING" for task in tasks),
            "tasksHealthy": sum(checked and one is True for one in health),
            "tasksUnhealthy": sum(checked and one is False for one in health),
            "deployments": [{"id": one["id"]} for one in self.deployments_of(path)],
        }
        if entry.get("failure"):
            shown["lastTaskFailure"] = entry["failure"]
        if with_tasks:
            shown["tasks"] = [self.show_task(task) for task in tasks]
        return shown

    def show_task(self, task: Mapping[str, Any]) -> dict[str, Any]:
        """Return a task as the API tells of it."""
        shown = {
            "appId": task["appId"],
            "host": task["host"],
            "id": task["id"],
            "ipAddresses": [],
            "ports": task["ports"],
            "servicePorts": task["service_ports"],
            "slaveId": f"{task['host']}-S0",
            "stagedAt": stamp(task["staged"]),
            "state": task["state"],
            "version": task["version"],
            "role": task["role"],
        }
        if task["started"]:
            shown["startedAt"] = stamp(task["started"])
        entry = self.data["apps"].get(task["appId"])
        if entry and entry["definition"].get("healthChecks") and task["started"]:
            alive = self._healthy(entry["definition"], task)
            shown["healthCheckResults"] = [
                {
                    "alive": alive,
                    "consecutiveFailures": 0 if alive else 1,
                    "taskId": task["id"],
                    "instanceId": task["id"],
                    **({} if alive else {"lastFailureCause": "ConnectionException: connection refused"}),
                }
            ]
        return shown

    def show_group(self, path: str) -> dict[str, Any]:
        """Return a group with all in it.

        :raises Refusal: there is none
        """
        if path not in self.group_ids():
            raise Refusal(404, f"Group '{path}' does not exist")
        own = self.data["groups"].get(path, {})
        inside = path.rstrip("/")
        shown = {
            "id": path,
            "apps": [
                self.show_app(app) for app in sorted(self.data["apps"]) if app.rpartition("/")[0] == inside
            ],
            "groups": [
                self.show_group(one)
                for one in self.group_ids()
                if one != "/" and one.rpartition("/")[0] == inside
            ],
            "pods": [],
            "dependencies": own.get("dependencies", []),
            "version": own.get("version", stamp(0)),
        }
        if len(segments(path)) == 1:
            shown["enforceRole"] = own.get("enforceRole", False)
        return shown

    def show_deployments(self) -> list[dict[str, Any]]:
        """Return the deployments that go on."""
        return [
            {key: value for key, value in one.items() if key != "before"} for one in self.data["deployments"]
        ]

    def queue(self, with_offers: bool = False) -> list[dict[str, Any]]:
        """Return what waits for a place, with the reasons of the last offers."""
        now, items = self.clock(), []
        for path, entry in self.data["apps"].items():
            missing = entry["definition"]["instances"] - len(self._current(path))
            if missing <= 0 or entry.get("removed"):
                continue
            reasons = [self._reason(entry["definition"], agent) for agent in self.agents]
            wait = max(0.0, entry.get("not_before", 0) - now)
            item: dict[str, Any] = {
                "count": missing,
                "delay": {"timeLeftSeconds": math.ceil(wait), "overdue": wait <= 0},
                "since": stamp(entry["since"]),
                "processedOffersSummary": {
                    "processedOffersCount": len(reasons),
                    "unusedOffersCount": len([one for one in reasons if one]),
                    "lastUnusedOfferAt": stamp(now),
                    "rejectSummaryLastOffers": cluster.summary(reasons),
                    "rejectSummaryLaunchAttempt": cluster.summary(reasons),
                },
                "role": entry["definition"]["role"],
                "app": {**entry["definition"], "version": entry["version"]},
            }
            if with_offers:
                item["lastUnusedOffers"] = [
                    {"offer": {"hostname": agent["host"]}, "reason": [why], "timestamp": stamp(now)}
                    for agent, why in zip(self.agents, reasons, strict=True)
                    if why
                ]
            items.append(item)
        return items

    # --- changing

    def put_apps(self, wanted: Sequence[Mapping[str, Any]], force: bool) -> dict[str, str]:
        """Make apps be as they are defined, in one deployment.

        :raises Refusal: a definition is wrong, or an app is locked
        """
        complete = {}
        for app in wanted:
            path = "/" + "/".join(segments(str(app.get("id", ""))))
            top = self.data["groups"].get("/" + segments(path)[0], {}) if segments(path) else {}
            enforced = segments(path)[0] if top.get("enforceRole") and len(segments(path)) > 1 else ""
            named = {**app, "id": path}
            wrong = list(definitions.problems(named, self.gpu_feature, enforced))
            if wrong:
                details = [{"path": place, "errors": [words]} for place, words in wrong]
                raise Refusal(422, "Object is not valid", details=details)
            complete[path] = definitions.complete(named, enforced or self.role)
        self._unlock(complete, force)
        before = {path: copy.deepcopy(self.data["apps"].get(path)) for path in complete}
        version = self._version()
        for path, definition in complete.items():
            self._set(path, definition, version)
        return self._deploy(before, version)

    def delete_apps(self, paths: Sequence[str], force: bool) -> dict[str, str]:
        """Stop apps and forget them, in one deployment."""
        self._unlock(paths, force)
        before = {path: copy.deepcopy(self.data["apps"][path]) for path in paths}
        version = self._version()
        for path in paths:
            self.data["apps"][path].update(removed=True, version=version)
            self.data["apps"][path]["definition"]["instances"] = 0
        return self._deploy(before, version)

    def restart_app(self, path: str, force: bool) -> dict[str, str]:
        """Replace all tasks of an app."""
        self._unlock([path], force)
        before = {path: copy.deepcopy(self.data["apps"][path])}
        version = self._version()
        self.data["apps"][path].update(version=version, config=version)
        return self._deploy(before, version)

    def put_group(self, path: str, update: Mapping[str, Any], force: bool) -> dict[str, str]:
        """Make a group hold what an update says; what it does not name stays."""
        services = "apps" in update or any("apps" in one for one in update.get("groups", ()))
        known = path in self.data["groups"]
        if (
            known
            and "enforceRole" in update
            and update["enforceRole"] != self.show_group(path)["enforceRole"]
            and services
        ):
            raise Refusal(
                422,
                "Object is not valid",
                details=[
                    {
                        "path": "/enforceRole",
                        "errors": [
                            "enforceRole cannot be modified in a request that adds, removes or modifies"
                            " services; please make these changes in separate requests."
                        ],
                    }
                ],
            )
        made: list[dict[str, Any]] = []
        gone: list[str] = []
        self._group(path, update, made, gone)
        if gone:
            self.delete_apps(gone, force)
        return self.put_apps(made, force) if made else self._deploy({}, self._version())

    def enforce(self, path: str, enforce: bool) -> None:
        """Change whether the services of a top-level group must have its role."""
        if len(segments(path)) != 1:
            raise Refusal(
                422, "Object is not valid", details=[{"path": "/", "errors": ["not a top-level group"]}]
            )
        self.show_group(path)
        self.data["groups"].setdefault(path, {"version": self._version()})["enforceRole"] = enforce

    def delete_group(self, path: str, force: bool) -> dict[str, str]:
        """Remove a group with all in it."""
        self.show_group(path)
        inside = path.rstrip("/") + "/"
        answer = self.delete_apps([app for app in self.data["apps"] if app.startswith(inside)], force)
        for one in [one for one in self.data["groups"] if one == path or one.startswith(inside)]:
            del self.data["groups"][one]
        return answer

    def cancel(self, number: str, force: bool) -> dict[str, str] | None:
        """End a deployment: as it is with force, else by another one back to what was before; None with
        force."""
        found = [one for one in self.data["deployments"] if one["id"] == number]
        if not found:
            raise Refusal(404, f"DeploymentPlan {number} does not exist")
        self.data["deployments"].remove(found[0])
        self._event("deployment_failed", id=number)
        if force:
            return None
        before, version = {}, self._version()
        for path, entry in found[0]["before"].items():
            before[path] = copy.deepcopy(self.data["apps"].get(path))
            if entry is None:
                self.data["apps"][path]["removed"] = True
                self.data["apps"][path]["definition"]["instances"] = 0
            else:
                self._set(path, entry["definition"], version)
        return self._deploy(before, version)

    def kill(self, numbers: Sequence[str]) -> list[dict[str, Any]]:
        """End tasks, which are replaced."""
        found = [self.data["tasks"][one] for one in numbers if one in self.data["tasks"]]
        shown = [self.show_task(task) for task in found]
        for task in found:
            self._kill(task)
        return shown

    # --- time

    def advance(self) -> None:
        """Let happen what is due."""
        now = self.clock()
        for task in list(self.data["tasks"].values()):
            self._progress(task, now)
        for path in list(self.data["apps"]):
            self._reconcile(path, now)
        for one in list(self.data["deployments"]):
            if all(self._settled(path) for path in one["affectedApps"]):
                self.data["deployments"].remove(one)
                self._event("deployment_step_success", plan=self._plan(one))
                self._event("deployment_success", id=one["id"], plan=self._plan(one))

    def _progress(self, task: dict[str, Any], now: float) -> None:
        entry = self.data["apps"].get(task["appId"])
        environment = entry["definition"].get("env", {}) if entry else {}
        if task["dead"] and now >= task["dead"]:
            self._end(task, "TASK_KILLED")
        elif self.alive is not None and task["host"] not in self.alive:
            self._unreachable(task, now)
        elif task["state"] == "TASK_UNREACHABLE":
            task.update(state="TASK_RUNNING" if task["started"] else "TASK_STAGING")
            self._status(task)
        elif task["state"] == "TASK_STAGING" and now >= task["runs"]:
            task.update(state="TASK_RUNNING", started=now)
            self._status(task)
            if entry and "FAKE_EXIT" in environment:
                self._end(task, "TASK_FAILED")
                entry["failures"] = entry.get("failures", 0) + 1
                pause = (
                    entry["definition"]["backoffSeconds"]
                    * entry["definition"]["backoffFactor"] ** entry["failures"]
                )
                entry["not_before"] = now + min(pause, entry["definition"]["maxLaunchDelaySeconds"])
                entry["failure"] = {
                    "appId": task["appId"],
                    "host": task["host"],
                    "message": f"Command exited with status {environment['FAKE_EXIT']}",
                    "state": "TASK_FAILED",
                    "taskId": task["id"],
                    "timestamp": stamp(now),
                    "version": task["version"],
                }

    def _unreachable(self, task: dict[str, Any], now: float) -> None:
        """Have a task be lost with its agent, and be replaced when its app says so, by default at once."""
        if task["state"] != "TASK_UNREACHABLE":
            task.update(state="TASK_UNREACHABLE", lost=now)
            self._status(task)
        strategy = self.data["apps"][task["appId"]]["definition"]["unreachableStrategy"]
        if strategy != "disabled" and now >= task["lost"] + strategy.get("inactiveAfterSeconds", 0):
            del self.data["tasks"][task["id"]]

    def _reconcile(self, path: str, now: float) -> None:
        entry = self.data["apps"][path]
        definition = entry["definition"]
        wanted = definition["instances"]
        alive = [task for task in self.tasks(path) if not task["dead"]]
        current = [task for task in alive if task["version"] == entry["config"]]
        old = [task for task in alive if task["version"] != entry["config"]]
        for task in list(reversed(current))[: max(0, len(current) - wanted)]:
            self._kill(task)
        current = [task for task in current if not task["dead"]]
        ready = sum(self._ready(definition, task) for task in current)
        floor = math.ceil(wanted * definition["upgradeStrategy"]["minimumHealthCapacity"])
        for task in old:
            running = sum(not one["dead"] for one in old)
            if ready + running - 1 >= floor or wanted == 0:
                self._kill(task)
        room = wanted
        if old:
            room += math.ceil(wanted * definition["upgradeStrategy"]["maximumOverCapacity"])
        left = len([task for task in self.tasks(path) if task not in current])
        if now < entry.get("not_before", 0):
            return
        for _number in range(min(wanted - len(current), room - len(current) - left)):
            if not self._launch(definition, entry["config"], now):
                break
        if entry.get("removed") and not self.tasks(path):
            del self.data["apps"][path]
            self._event("app_terminated_event", appId=path)

    def _launch(self, definition: Mapping[str, Any], version: str, now: float) -> bool:
        for agent in self.agents:
            if self._reason(definition, agent):
                continue
            seconds = float(definition.get("env", {}).get("FAKE_LAUNCH_SECONDS", LAUNCH_SECONDS))
            number = f"{'_'.join(segments(definition['id']))}.instance-{uuid.uuid4()}._app.1"
            mappings = (definition.get("container") or {}).get("portMappings", ())
            service = [one["port"] for one in definition.get("portDefinitions", ())]
            service = service or [one["servicePort"] for one in mappings]
            ports = service if definition["requirePorts"] else self._ports(agent["host"], len(service))
            task = {
                "id": number,
                "appId": definition["id"],
                "host": agent["host"],
                "attributes": agent.get("attributes", {}),
                "ports": ports,
                "service_ports": service,
                "resources": {name: definition.get(name, 0) for name in cluster.RESOURCES},
                "role": definition["role"],
                "state": "TASK_STAGING",
                "staged": now,
                "runs": now + seconds,
                "started": 0,
                "dead": 0,
                "version": version,
            }
            self.data["tasks"][number] = task
            self._status(task)
            return True
        return False

    def _ports(self, host: str, count: int) -> list[int]:
        """Ports that no task of this host has; other ones each time, as a task that ends may linger."""
        taken = {
            port for task in self.data["tasks"].values() if task["host"] == host for port in task["ports"]
        }
        self.data["port"] = (self.data.get("port", 0) + count) % 900
        free = (port for port in count_from(31000 + self.data["port"]) if port not in taken)
        return list(islice(free, count))

    def _reason(self, definition: Mapping[str, Any], agent: cluster.Agent) -> str:
        role, tasks = definition["role"], list(self.data["tasks"].values())
        limits = self.limits.get(role, {})
        held = [task["resources"] for task in tasks if task["role"] == role]
        room = {name: limit - sum(one[name] for one in held) for name, limit in limits.items()}
        return cluster.reason(definition, agent, tasks, self.unrestricted, room)

    def _ready(self, definition: Mapping[str, Any], task: Mapping[str, Any]) -> bool:
        return task["state"] == "TASK_RUNNING" and self._healthy(definition, task) is not False

    def _healthy(self, definition: Mapping[str, Any], task: Mapping[str, Any]) -> bool | None:
        """Whether a task passes its checks; None when there are none, or it does not run yet."""
        if not definition.get("healthChecks") or task["state"] != "TASK_RUNNING":
            return None
        return "FAKE_UNHEALTHY" not in definition.get("env", {})

    def _current(self, path: str) -> list[dict[str, Any]]:
        config = self.data["apps"][path]["config"]
        return [task for task in self.tasks(path) if task["version"] == config and not task["dead"]]

    def _settled(self, path: str) -> bool:
        entry = self.data["apps"].get(path)
        if entry is None:
            return True
        tasks = self.tasks(path)
        right = [
            task
            for task in tasks
            if task["version"] == entry["config"] and self._ready(entry["definition"], task)
        ]
        return len(tasks) == len(right) == entry["definition"]["instances"] and not entry.get("removed")

    # --- parts of changes

    def _set(self, path: str, definition: Mapping[str, Any], version: str) -> None:
        """Set an app's definition; tasks stay when only their number changes."""
        old = self.data["apps"].get(path)
        scaled = old and {**old["definition"], "instances": 0} == {**definition, "instances": 0}
        self.data["apps"][path] = {
            "definition": copy.deepcopy(dict(definition)),
            "version": version,
            "config": old["config"] if old and scaled else version,
            "since": self.clock(),
            "history": [
                *(old["history"] if old else []),
                {"version": version, "definition": dict(definition)},
            ],
        }
        self._event(
            "api_post_event", uri=f"/v2/apps/{path}", clientIp="127.0.0.1", appDefinition={"id": path}
        )

    def _group(
        self, path: str, update: Mapping[str, Any], made: list[dict[str, Any]], gone: list[str]
    ) -> None:
        new = path not in self.group_ids()
        group = self.data["groups"].setdefault(path, {})
        group["version"] = self._version()
        if "dependencies" in update:
            group["dependencies"] = update["dependencies"]
        if len(segments(path)) == 1:
            if update.get("enforceRole") is not None:
                group["enforceRole"] = bool(update["enforceRole"])
            elif new:
                group["enforceRole"] = self.enforce_new
        inside = path.rstrip("/")
        if "apps" in update:
            apps = [{**app, "id": resolve(path, app.get("id", ""))} for app in update["apps"]]
            made += apps
            names = {app["id"] for app in apps}
            gone += [
                one for one in self.data["apps"] if one.rpartition("/")[0] == inside and one not in names
            ]
        for one in update.get("groups", ()):
            self._group(resolve(path, one.get("id", "")), one, made, gone)

    def _unlock(self, paths: Any, force: bool) -> None:
        locking = {one["id"]: one for path in paths for one in self.deployments_of(path)}
        if locking and not force:
            raise Refusal(409, LOCKED, deployments=[{"id": number} for number in locking])
        for one in locking.values():
            self.data["deployments"].remove(one)
            self._event("deployment_failed", id=one["id"])

    def _deploy(self, before: Mapping[str, Any], version: str) -> dict[str, str]:
        number = str(uuid.uuid4())
        actions = [{"action": self._action(path, entry), "app": path} for path, entry in before.items()]
        deployment = {
            "id": number,
            "version": version,
            "affectedApps": list(before),
            "affectedPods": [],
            "steps": [{"actions": actions}],
            "currentActions": actions,
            "currentStep": 1,
            "totalSteps": 1,
            "before": dict(before),
        }
        self.data["deployments"].append(deployment)
        self._event("deployment_info", plan=self._plan(deployment))
        self.advance()
        return {"version": version, "deploymentId": number}

    def _action(self, path: str, before: Any) -> str:
        entry = self.data["apps"].get(path)
        if before is None:
            return "ScaleApplication"
        if entry is None or entry.get("removed"):
            return "StopApplication"
        return "ScaleApplication" if entry["config"] == before["config"] else "RestartApplication"

    def _plan(self, one: Mapping[str, Any]) -> dict[str, Any]:
        empty = {
            "id": "/",
            "apps": [],
            "groups": [],
            "pods": [],
            "dependencies": [],
            "version": one["version"],
        }
        return {key: one[key] for key in ("id", "version", "steps")} | {"original": empty, "target": empty}

    def _kill(self, task: dict[str, Any]) -> None:
        task["dead"] = task["dead"] or self.clock() + KILL_SECONDS

    def _end(self, task: dict[str, Any], state: str) -> None:
        task["state"] = state
        self._status(task)
        del self.data["tasks"][task["id"]]

    def _version(self) -> str:
        """A time that no other version has."""
        self.data["versions"] = max(self.data["versions"] + 1, int(self.clock() * 1000))
        return stamp(self.data["versions"] / 1000)

    def _status(self, task: Mapping[str, Any]) -> None:
        self._event(
            "status_update_event",
            slaveId=f"{task['host']}-S0",
            taskId=task["id"],
            taskStatus=task["state"],
            message="",
            appId=task["appId"],
            host=task["host"],
            ipAddresses=[],
            ports=task["ports"],
            version=task["version"],
        )

    def _event(self, kind: str, **fields: Any) -> None:
        self.event_number += 1
        event = {"number": self.event_number, "eventType": kind, "timestamp": stamp(self.clock()), **fields}
        self.events = [*self.events, event][-EVENTS_KEPT:]


def resolve(base: str, path: str) -> str:
    """Return a path that may be relative to a group as an absolute one."""
    return path if path.startswith("/") else f"{base.rstrip('/')}/{path}"


def stamp(seconds: float) -> str:
    """Return a time as the API writes it."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
