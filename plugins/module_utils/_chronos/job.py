# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Jobs of Chronos: what is wrong with a definition, in what two of them differ, what a server has dropped. No
I/O.

Sources: mesos/chronos at 3.0.2: docs/docs/api.md; Jobs.scala and JobDeserializer.scala (fields and defaults;
other fields are dropped without a word); JobScheduler.scala (the schedule is rewritten as the job runs, and a
job without runs left is disabled); Iso8601Expressions.scala (a time zone replaces that of the start).
Pull request 810: gpus.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from datetime import datetime, timezone, tzinfo
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

NAME = re.compile(r"[\w.-]+")
SCHEDULE = re.compile(r"R(\d*)/([^/]*)/(P[^/]+)")
PERIOD = re.compile(r"P(?=.)(\d+Y)?(\d+M)?(\d+W)?(\d+D)?(T(?=.)(\d+H)?(\d+M)?(\d+S)?)?")
NETWORKS = ("BRIDGE", "HOST", "USER")
HIDDEN = "********"
CONSTRAINTS = ("EQUALS", "LIKE", "UNLIKE")

DEFAULTS: dict[str, Any] = {
    "arguments": [],
    "command": "",
    "concurrent": False,
    "constraints": [],
    "container": {},
    "dataProcessingJobType": False,
    "description": "",
    "disabled": False,
    "environmentVariables": [],
    "executor": "",
    "executorFlags": "",
    "fetch": [],
    "gpus": 0,
    "highPriority": False,
    "owner": "",
    "ownerName": "",
    "parents": [],
    "retries": 2,
    "schedule": "",
    "scheduleTimeZone": "",
    "shell": True,
    "softError": False,
    "taskInfoData": "",
    "uris": [],
}
# By the server's own options: compared where they are wanted.
CHOSEN_BY_SERVER = ("cpus", "disk", "mem", "runAsUser")
FIELDS = ("name", *DEFAULTS, *CHOSEN_BY_SERVER)
READ_ONLY = ("errorCount", "errorsSinceLastSuccess", "lastError", "lastSuccess", "successCount")
# Accepted by older versions, and without effect in this one.
DROPPED = ("async", "epsilon", "maxCompletionTime")
CONTAINER: dict[str, Any] = {
    "forcePullImage": False,
    "network": "HOST",
    "networkInfos": [],
    "parameters": [],
    "type": "DOCKER",
    "volumes": [],
}
FETCH: dict[str, Any] = {"cache": False, "executable": False, "extract": True, "output_file": ""}


class JobProblem(ValueError):
    """A definition cannot be; the text is one or more sentences for a user."""


class Difference(NamedTuple):
    """The fields in which two definitions differ, as they are and as they shall be."""

    before: dict[str, Any]
    after: dict[str, Any]


class Schedule(NamedTuple):
    """When a job runs: how often, None for no limit; from when on, None for at once; and the period."""

    repeat: int | None
    start: datetime | None
    period: str


def read_name(name: Any) -> str:
    """Return the name of a job.

    Raises:
        JobProblem: it is none.
    """
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise JobProblem(f"The job's name is {name!r}; write letters, digits, '_', '.' and '-'.")
    return name


def read_schedule(text: str) -> Schedule:
    """Return what an ISO 8601 repeating interval says, such as ``R/2027-01-01T06:00:00Z/P1D``.

    Raises:
        JobProblem: it is none.
    """
    match = SCHEDULE.fullmatch(text) if isinstance(text, str) else None
    if not match or not PERIOD.fullmatch(match[3]):
        raise JobProblem(
            f"The job's schedule is {text!r}; write Rn/START/PERIOD as in ISO 8601, such as"
            " R/2027-01-01T06:00:00Z/P1D for every day."
        )
    start = None
    if match[2]:
        try:
            start = datetime.fromisoformat(re.sub(r"(\.\d+)?Z$", "+00:00", match[2]))
        except ValueError as error:
            raise JobProblem(
                f"The job's schedule starts at {match[2]!r}, which is no time; write one such as"
                " 2027-01-01T06:00:00Z."
            ) from error
        start = start if start.tzinfo else start.replace(tzinfo=timezone.utc)
    return Schedule(int(match[1]) if match[1] else None, start, match[3])


def read_job(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition that can be.

    Raises:
        JobProblem: all that is wrong with it.
    """
    found = list(problems(request))
    if found:
        raise JobProblem(" ".join(found))
    return dict(request)


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a definition, each a sentence."""
    try:
        read_name(request.get("name"))
    except JobProblem as error:
        yield str(error)
    for name in request:
        if name in DROPPED:
            yield f"Chronos 3 drops the field {name} without a word; leave it out."
        elif name in READ_ONLY:
            yield f"The field {name} is what Chronos tells, and cannot be set; leave it out."
        elif name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            yield f"Jobs have no field {name}{f'; did you mean {near[0]}?' if near else ''}."
    yield from _when_problems(request)
    yield from _number_problems(request)
    container = request.get("container") or {}
    if not (request.get("command") or request.get("arguments") or container):
        yield "The job has nothing to run; give a command, arguments or a container."
    yield from _container_problems(container, bool(request.get("gpus")))
    if request.get("fetch") and request.get("uris"):
        yield "The job has both fetch and uris; give fetch only."
    for one in request.get("environmentVariables") or ():
        if not isinstance(one, Mapping) or set(one) != {"name", "value"}:
            yield "An entry of the job's environmentVariables needs name and value, and nothing else."
    for rule in request.get("constraints") or ():
        if not isinstance(rule, (list, tuple)) or len(rule) != 3 or rule[1] not in CONSTRAINTS:
            yield (
                f"The constraint {rule} is none: give an attribute, one of {', '.join(CONSTRAINTS)}, and"
                " a value."
            )


def _when_problems(request: Mapping[str, Any]) -> Iterator[str]:
    if bool(request.get("schedule")) == bool(request.get("parents")):
        yield "The job needs a schedule or parents, and not both."
    if request.get("schedule"):
        try:
            read_schedule(request["schedule"])
        except JobProblem as error:
            yield str(error)


def _number_problems(request: Mapping[str, Any]) -> Iterator[str]:
    for name, whole in (("cpus", False), ("mem", False), ("disk", False), ("gpus", True), ("retries", True)):
        value = request.get(name)
        if value is None:
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or value < 0 or (whole and value != int(value)):
            yield f"The job's {name} is {value!r}; give a {'whole ' if whole else ''}number of 0 or more."


def _container_problems(container: Mapping[str, Any], gpus: bool) -> Iterator[str]:
    if not container:
        return
    if not container.get("image"):
        yield "The job's container has no image, and Chronos drops it as a whole; give the image."
    if container.get("network", "HOST") not in NETWORKS:
        yield (
            f"The job's container has network {container['network']!r}; give one of"
            f" {', '.join(NETWORKS)}, in capitals."
        )
    kind = str(container.get("type", "DOCKER")).upper()
    if kind not in ("DOCKER", "MESOS"):
        yield f"The job's container has type {container['type']!r}; give DOCKER or MESOS."
    if gpus and kind == "DOCKER":
        yield (
            "The job wants GPUs in a container of type DOCKER, which gets no devices; set container.type to"
            " MESOS."
        )


def difference(current: Mapping[str, Any], wanted: Mapping[str, Any], now: datetime) -> Difference:
    """Return in what a job differs from a definition, after what the server fills in and what its runs have
    changed.

    Args:
        current: as the server tells it; empty when there is none.
        wanted: as `read_job` returns it.
        now: the time.
    """
    before, after = {}, {}
    for name in FIELDS:
        if name in CHOSEN_BY_SERVER and not wanted.get(name):
            continue
        has, shall = _canonical(name, current.get(name)), _canonical(name, wanted.get(name))
        same = has == shall
        if name == "schedule" and has and shall:
            same = _same_schedule(has, shall, now, _zone(wanted.get("scheduleTimeZone")))
        elif name == "disabled" and has and _is_done(current, wanted):
            same = True
        if not same or not current:
            if name in current and not _empty(has):
                before[name] = current[name]
            if not _empty(shall) and (current or wanted.get(name) is not None):
                after[name] = wanted.get(name, shall)
    return Difference(before, after)


def _is_done(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    """Return whether a job has run as often as it shall, after which Chronos disables it."""
    if not (current.get("schedule") and wanted.get("schedule")):
        return False
    limited = read_schedule(wanted["schedule"]).repeat is not None
    return limited and read_schedule(current["schedule"]).repeat == 0


def _zone(name: str | None) -> tzinfo | None:
    """Return a time zone; None if there is none, or this machine does not know it."""
    try:
        return ZoneInfo(name) if name else None
    except (ValueError, OSError, ZoneInfoNotFoundError):
        return None


def _same_schedule(current: str, wanted: str, now: datetime, zone: tzinfo | None) -> bool:
    """Runs count the repeats down and move the start on, so these two tell of a change in one direction
    only."""
    has, shall = read_schedule(current), read_schedule(wanted)
    if has.period != shall.period or (has.repeat is None) != (shall.repeat is None):
        return False
    if has.repeat is not None and shall.repeat is not None and has.repeat > shall.repeat:
        return False
    starts = [start.replace(tzinfo=zone) if start and zone else start for start in (has.start, shall.start)]
    return not (starts[1] and starts[1] > now and starts[0] != starts[1])


def _empty(value: Any) -> bool:
    return value is None or value == {} or value == [] or value == ""


def _canonical(name: str, value: Any) -> Any:
    """Return a field in the one form that definitions of the same meaning share."""
    if _empty(value):
        return DEFAULTS.get(name)
    if name == "container":
        if not value.get("image"):
            return {}
        return _container({**CONTAINER, **{key: item for key, item in value.items() if item is not None}})
    if name == "environmentVariables":
        return sorted((one["name"], _text(one["value"])) for one in value)
    if name == "parents":
        return sorted(value)
    if name == "fetch":
        return [{**FETCH, **one} for one in value]
    if name == "constraints":
        return [[_text(word) for word in rule] for rule in value]
    if name == "arguments":
        return [_text(word) for word in value]
    return value


def _container(full: Mapping[str, Any]) -> dict[str, Any]:
    volumes = [{key: item for key, item in one.items() if item} for one in full["volumes"]]
    networks = [
        {"labels": [], **one, "portMappings": [_texts(port) for port in one.get("portMappings") or ()]}
        for one in full["networkInfos"]
    ]
    return {
        **full,
        "type": str(full["type"]).upper(),
        "volumes": [{**one, "mode": one["mode"].upper()} if "mode" in one else one for one in volumes],
        "networkInfos": networks,
        "parameters": [_texts(one) for one in full["parameters"]],
    }


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    return {name: _text(value) for name, value in fields.items()}


def _text(value: Any) -> str:
    """Return a value as the server reads it where it expects a text."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def lost(wanted: Mapping[str, Any], current: Mapping[str, Any]) -> list[str]:
    """Return the fields of a definition that a server which took it has dropped."""
    return [
        name
        for name, value in wanted.items()
        if not _empty(value) and value != 0 and _empty(current.get(name))
    ]


def starts_at_once(job: Mapping[str, Any]) -> bool:
    """Return whether a job runs whenever its definition is sent, as its schedule names no start."""
    schedule = job.get("schedule", "")
    return bool(schedule) and not job.get("disabled") and read_schedule(schedule).start is None


def request(wanted: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the path that a definition is sent to, and what is sent."""
    kind = "dependency" if wanted.get("parents") else "iso8601"
    body = {
        name: value for name, value in wanted.items() if not (name in ("parents", "schedule") and not value)
    }
    return "/v1/scheduler/" + kind, body


def masked(fields: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a definition with the values of its environment hidden.

    Nobody knows which of those that the server has were secret.

    Args:
        fields: of a job.
        plain: the variables of the environment that everybody may see; they are shown.
    """
    shown = dict(fields)
    if "environmentVariables" in shown:
        shown["environmentVariables"] = [
            one if one["name"] in plain and plain[one["name"]] == one["value"] else {**one, "value": HIDDEN}
            for one in shown["environmentVariables"]
        ]
    return shown
