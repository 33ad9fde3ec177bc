"""Jobs of Chronos: what is kept of a definition, when they run, and what becomes of them. No I/O.

Sources: mesos/chronos at 3.0.2, docs/docs/api.md; scheduler/jobs/Jobs.scala and utils/JobDeserializer.scala
(fields, defaults; what is not among them is dropped without a word; a container without image is dropped as a
whole; networks are case-sensitive); api/Iso8601JobResource.scala and DependentJobResource.scala (statuses);
jobs/JobScheduler.scala (the schedule of a job is rewritten as it runs). Pull request 810 adds gpus.

In a job's environmentVariables tests tell what becomes of a run: FAKE_SECONDS (0.1) until it ends,
FAKE_EXIT to fail.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

NAME = re.compile(r"[\w.-]+")
SCHEDULE = re.compile(r"R(\d*)/([^/]*)/(P.*)")
PERIOD = re.compile(r"P(?:(\d+)Y)?(?:(\d+)M)?(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?)?")
DAYS_OF = (365, 30, 7, 1)

DEFAULTS: dict[str, Any] = {
    "arguments": [],
    "command": "",
    "concurrent": False,
    "constraints": [],
    "cpus": 0,
    "dataProcessingJobType": False,
    "description": "",
    "disabled": False,
    "disk": 0,
    "environmentVariables": [],
    "errorCount": 0,
    "errorsSinceLastSuccess": 0,
    "executor": "",
    "executorFlags": "",
    "fetch": [],
    "highPriority": False,
    "lastError": "",
    "lastSuccess": "",
    "mem": 0,
    "owner": "",
    "ownerName": "",
    "retries": 2,
    "runAsUser": "root",
    "shell": True,
    "softError": False,
    "successCount": 0,
    "taskInfoData": "",
    "uris": [],
}
READ_ONLY = ("errorCount", "errorsSinceLastSuccess", "lastError", "lastSuccess", "successCount")
CONTAINER: dict[str, Any] = {
    "type": "DOCKER",
    "network": "HOST",
    "networkInfos": [],
    "volumes": [],
    "parameters": [],
    "forcePullImage": False,
}


class Refusal(Exception):
    """A request that is not done.

    :ivar status: of HTTP
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def as_text(value: Any) -> str:
    """Return a value of JSON as Java's `asText` does."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _kept(container: Mapping[str, Any]) -> dict[str, Any]:
    """JobDeserializer.scala and JobSerializer.scala."""
    volumes = [
        one | ({"mode": one["mode"].upper()} if one.get("mode") else {}) for one in container["volumes"]
    ]
    networks = [
        {"labels": [], **one}
        | {
            "portMappings": [
                {name: as_text(value) for name, value in port.items()} for port in one.get("portMappings", ())
            ]
        }
        for one in container["networkInfos"]
    ]
    parameters = [{name: as_text(value) for name, value in one.items()} for one in container["parameters"]]
    return {
        **container,
        "type": container["type"].upper(),
        "volumes": volumes,
        "networkInfos": networks,
        "parameters": parameters,
    }


def seconds(period: str) -> float:
    """Return the length of an ISO 8601 period, with years of 365 and months of 30 days.

    :raises Refusal: it is none
    """
    match = PERIOD.fullmatch(period)
    if not match or not any(match.groups()):
        raise Refusal(400, f"Invalid format: {period!r} is malformed")
    numbers = [int(part or 0) for part in match.groups()]
    days = sum(number * days for number, days in zip(numbers[:4], DAYS_OF, strict=True))
    return timedelta(days=days, hours=numbers[4], minutes=numbers[5], seconds=numbers[6]).total_seconds()


class Chronos:
    """The state of one cluster, which is `data`, and the rules by which it changes."""

    def __init__(
        self,
        clock: Callable[[], float],
        values: Mapping[str, Any],
        gpu_patch: bool,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Make a Chronos.

        :param clock: tells the time in seconds since 1970
        :param values: of the options
        :param gpu_patch: whether this build knows GPUs
        :param data: state of an earlier leader
        """
        self.clock, self.values, self.gpu_patch = clock, values, gpu_patch
        self.data: dict[str, Any] = data or {"jobs": {}, "due": {}, "running": {}, "number": 0}

    def job(self, name: str) -> dict[str, Any]:
        """Return a job.

        :raises Refusal: there is none
        """
        if name not in self.data["jobs"]:
            raise Refusal(400, f"Job '{name}' not found")
        return self.data["jobs"][name]

    def put(self, request: Mapping[str, Any]) -> None:
        """Create or replace a job.

        :raises Refusal: it cannot be
        """
        name = str(request.get("name", ""))
        if not NAME.fullmatch(name):
            raise Refusal(400, "the job's name is invalid. Allowed names: '[\\w.-]+'")
        job = DEFAULTS | {
            key: value for key, value in request.items() if key in DEFAULTS and key not in READ_ONLY
        }
        job |= {"name": name, "cpus": request.get("cpus") or self.values["mesos_task_cpu"]}
        job |= {"mem": request.get("mem") or self.values["mesos_task_mem"]}
        job |= {"disk": request.get("disk") or self.values["mesos_task_disk"]}
        job["runAsUser"] = request.get("runAsUser") or self.values["user"]
        if self.gpu_patch:
            job["gpus"] = int(request.get("gpus") or self.values["mesos_task_gpu"])
        if request.get("container", {}).get("image"):
            container = CONTAINER | {
                key: request["container"][key] for key in (*CONTAINER, "image") if key in request["container"]
            }
            if container["network"] not in ("HOST", "BRIDGE", "USER"):
                raise Refusal(500, f"No enum constant NetworkMode.{container['network']}")
            job["container"] = _kept(container)
        # JobDeserializer.scala reads words, whatever they are.
        job["arguments"] = [as_text(one) for one in job["arguments"]]
        job["constraints"] = [[as_text(one) for one in rule] for rule in job["constraints"]]
        self._when(job, request)
        old = self.data["jobs"].get(name, {})
        self.data["jobs"][name] = job | {key: old[key] for key in READ_ONLY if key in old}

    def _when(self, job: dict[str, Any], request: Mapping[str, Any]) -> None:
        name = job["name"]
        self.data["due"].pop(name, None)
        if "parents" in request:
            missing = [parent for parent in request["parents"] if parent not in self.data["jobs"]]
            if missing or not request["parents"]:
                raise Refusal(400, f"parents does not exist: {missing}")
            job["parents"] = list(request["parents"])
            return
        schedule = request.get("schedule", f"R1/{stamp(self.clock())}/PT24H")
        match = SCHEDULE.fullmatch(schedule)
        if not match:
            raise Refusal(400, "the job's schedule is invalid")
        try:
            start = datetime.fromisoformat(match[2]).timestamp() if match[2] else self.clock()
        except ValueError as error:
            raise Refusal(400, f"Invalid format: {match[2]!r}") from error
        job["schedule"], job["scheduleTimeZone"] = schedule, request.get("scheduleTimeZone", "")
        period = seconds(match[3])
        if start < self.clock() - self.values["task_epsilon"] and period:
            start += period * -(-(self.clock() - start) // period)
        self.data["due"][name] = start

    def delete(self, name: str) -> None:
        """Forget a job, and what runs of it."""
        self.job(name)
        for key in ("jobs", "due"):
            self.data[key].pop(name, None)
        for parent in self.data["jobs"].values():
            if name in parent.get("parents", ()):
                parent["parents"].remove(name)
        self.kill(name)

    def run(self, name: str) -> None:
        """Start a job now, whatever its schedule says."""
        job = self.job(name)
        self.data["number"] += 1
        environment = {one["name"]: one["value"] for one in job["environmentVariables"]}
        self.data["running"][f"ct:{int(self.clock() * 1000)}:{self.data['number']}:{name}:"] = {
            "job": name,
            "ends": self.clock() + float(environment.get("FAKE_SECONDS", 0.1)),
            "fails": "FAKE_EXIT" in environment,
        }

    def kill(self, name: str) -> None:
        """End what runs of a job."""
        for task in [task for task, run in self.data["running"].items() if run["job"] == name]:
            del self.data["running"][task]

    def succeed(self, name: str) -> None:
        """Count a run as done, so that dependent jobs start."""
        self._done(self.job(name), failed=False)

    def state(self, name: str) -> str:
        """Return what a job does, as the summary tells it."""
        running = sum(run["job"] == name for run in self.data["running"].values())
        return f"{running} running" if running else "idle"

    def status(self, job: Mapping[str, Any]) -> str:
        """Return how the last run of a job ended, as the summary tells it."""
        if job["lastSuccess"] == job["lastError"]:
            return "fresh"
        return "success" if job["lastSuccess"] > job["lastError"] else "failure"

    def advance(self) -> None:
        """Let happen what is due."""
        now = self.clock()
        for name, due in list(self.data["due"].items()):
            job = self.data["jobs"][name]
            if due <= now:
                self._tick(job, due)
        for task, run in list(self.data["running"].items()):
            if run["ends"] <= now:
                del self.data["running"][task]
                if run["job"] in self.data["jobs"]:
                    self._done(self.data["jobs"][run["job"]], run["fails"])

    def _tick(self, job: dict[str, Any], due: float) -> None:
        """Run a job that is due, and rewrite its schedule to the next time."""
        name = job["name"]
        match = SCHEDULE.fullmatch(job["schedule"])
        assert match  # as it was when the job was taken
        if not job["disabled"]:
            self.run(name)
        repeat = int(match[1]) - 1 if match[1] else -1
        if match[1] and repeat <= 0:
            job["schedule"] = f"R0/{stamp(due)}/{match[3]}"
            del self.data["due"][name]
            return
        following = due + seconds(match[3])
        job["schedule"] = f"R{repeat if match[1] else ''}/{stamp(following)}/{match[3]}"
        self.data["due"][name] = following

    def _done(self, job: dict[str, Any], failed: bool) -> None:
        now = stamp(self.clock())
        if failed:
            job.update(lastError=now, errorCount=job["errorCount"] + 1)
            job["errorsSinceLastSuccess"] += 1
            limit = self.values["disable_after_failures"]
            job["disabled"] = job["disabled"] or bool(limit and job["errorsSinceLastSuccess"] >= limit)
            return
        job.update(lastSuccess=now, successCount=job["successCount"] + 1, errorsSinceLastSuccess=0)
        # JobScheduler.scala: "Disabling job that reached a zero-recurrence count!"
        job["disabled"] = job["disabled"] or job.get("schedule", "").startswith("R0/")
        for child in self.data["jobs"].values():
            if job["name"] in child.get("parents", ()) and not child["disabled"]:
                self.run(child["name"])


def stamp(moment: float) -> str:
    """Return a time as Chronos writes it."""
    return datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
