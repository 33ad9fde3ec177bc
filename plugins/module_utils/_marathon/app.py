# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Definitions of Marathon's apps: what is wrong with one, and in what two of them differ. No I/O.

Sources: mesosphere/marathon, releases/1.11: the RAML of apps (fields and defaults), PathId.scala (paths),
AppValidation.scala (commands, GPUs), docs/constraints.md (operators); AppNormalization.scala,
AppConversion.scala, HealthCheckConversion.scala, VolumeConversion.scala (what the server fills in and drops).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, NamedTuple

# Of the fields, those with a default that does not depend on the server's own options.
DEFAULTS: dict[str, Any] = {
    "args": [],
    "backoffFactor": 1.15,
    "backoffSeconds": 1,
    "check": {},
    "cmd": "",
    "constraints": [],
    "container": {},
    "cpus": 1,
    "dependencies": [],
    "disk": 0,
    "env": {},
    "executorResources": {},
    "fetch": [],
    "gpus": 0,
    "healthChecks": [],
    "instances": 1,
    "killSelection": "YOUNGEST_FIRST",
    "labels": {},
    "maxLaunchDelaySeconds": 300,
    "mem": 128,
    "readinessChecks": [],
    "requirePorts": False,
    "resourceLimits": {},
    "secrets": {},
    "taskKillGracePeriodSeconds": 0,
    "tty": False,
    "user": "",
}
# Fields that the server derives from its options or from the rest of the definition: compared where it is
# wanted.
CHOSEN_BY_SERVER = ("acceptedResourceRoles", "executor", "networks", "portDefinitions", "role")
STRATEGIES = ("unreachableStrategy", "upgradeStrategy")
FIELDS = ("id", *DEFAULTS, *CHOSEN_BY_SERVER, *STRATEGIES)
READ_ONLY = (
    "deployments",
    "lastTaskFailure",
    "readinessCheckResults",
    "tasks",
    "tasksHealthy",
    "tasksRunning",
    "tasksStaged",
    "tasksUnhealthy",
    "version",
    "versionInfo",
)
OUTDATED = {
    "ipAddress": "networks",
    "ports": "portDefinitions",
    "residency": "unreachableStrategy",
    "storeUrls": "fetch",
    "uris": "fetch",
}
HEALTH_CHECK: dict[str, Any] = {
    "delaySeconds": 15,
    "gracePeriodSeconds": 300,
    "ignoreHttp1xx": False,
    "intervalSeconds": 60,
    "ipProtocol": "IPv4",
    "maxConsecutiveFailures": 3,
    "protocol": "HTTP",
    "timeoutSeconds": 20,
}
# Fields that checks of other protocols lose.
OF_PROTOCOLS = {
    "delaySeconds": ("COMMAND", "MESOS_HTTP", "MESOS_HTTPS", "MESOS_TCP"),
    "ignoreHttp1xx": ("HTTP", "HTTPS"),
    "ipProtocol": ("MESOS_HTTP", "MESOS_HTTPS", "MESOS_TCP"),
    "portIndex": ("HTTP", "HTTPS", "TCP", "MESOS_HTTP", "MESOS_HTTPS", "MESOS_TCP"),
}
GENERAL_CHECK: dict[str, Any] = {"delaySeconds": 15, "intervalSeconds": 60, "timeoutSeconds": 20}
READINESS_CHECK: dict[str, Any] = {
    "httpStatusCodesForReady": [200],
    "intervalSeconds": 30,
    "name": "readinessCheck",
    "path": "/",
    "portName": "http-api",
    "preserveLastResponse": False,
    "protocol": "HTTP",
    "timeoutSeconds": 10,
}
FETCH: dict[str, Any] = {"cache": False, "executable": False, "extract": True}
PORT: dict[str, Any] = {"labels": {}, "port": 0, "protocol": "tcp"}
PORT_MAPPING: dict[str, Any] = {
    "containerPort": 0,
    "hostPort": 0,
    "labels": {},
    "protocol": "tcp",
    "servicePort": 0,
}
DOCKER: dict[str, Any] = {"forcePullImage": False, "parameters": [], "privileged": False}
HIDDEN = "********"
CONSTRAINTS = ("UNIQUE", "CLUSTER", "GROUP_BY", "LIKE", "UNLIKE", "MAX_PER", "IS")

PART = r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?"
PATH = re.compile(rf"(/{PART})+")


class AppProblem(ValueError):
    """A definition cannot be; the text is one or more sentences for a user."""


class Difference(NamedTuple):
    """The fields in which two definitions differ, as they are and as they shall be."""

    before: dict[str, Any]
    after: dict[str, Any]


def read_path(path: str) -> str:
    """Return the path of an app or a group with a slash in front and none behind.

    Raises:
        AppProblem: it is none.
    """
    absolute = "/" + path.strip("/")
    if not PATH.fullmatch(absolute):
        raise AppProblem(
            f"'{path}' is no path: write parts of lower case letters, digits, '-' and '.' with '/' between"
            " them, such as /physics/notebook."
        )
    return absolute


def read_app(request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a definition with its path made absolute.

    Raises:
        AppProblem: all that is wrong with it.
    """
    found = list(problems(request))
    if found:
        raise AppProblem(" ".join(found))
    return {**request, "id": read_path(request["id"])}


def problems(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what is wrong with a definition, each a sentence."""
    name = request.get("id")
    try:
        read_path(name if isinstance(name, str) else "")
    except AppProblem as error:
        yield f"The app's id {error}"
    yield from _names(request)
    yield from _numbers(request)
    container = request.get("container") or {}
    image = isinstance(container, Mapping) and (container.get("docker") or {}).get("image")
    if request.get("cmd") and request.get("args"):
        yield "The app has both cmd and args; give one of them."
    if not (request.get("cmd") or request.get("args") or image):
        yield "The app has nothing to run; give cmd, args, or a container with docker.image."
    if request.get("gpus") and isinstance(container, Mapping):
        yield from _gpu_problems(container)
    if isinstance(container, Mapping):
        yield from _port_problems(request, container)
    for rule in request.get("constraints") or ():
        if not isinstance(rule, Sequence) or len(rule) not in (2, 3) or rule[1] not in CONSTRAINTS:
            yield (
                f"The constraint {rule} is none: give a field, one of {', '.join(CONSTRAINTS)}, and a"
                " value where it needs one."
            )


def _names(request: Mapping[str, Any]) -> Iterator[str]:
    for name in request:
        if name in OUTDATED:
            yield f"The field {name} is outdated; use {OUTDATED[name]}."
        elif name in READ_ONLY:
            yield f"The field {name} is what Marathon tells, and cannot be set; leave it out."
        elif name not in FIELDS:
            near = difflib.get_close_matches(name, FIELDS, 1)
            yield f"Apps have no field {name}{f'; did you mean {near[0]}?' if near else ''}."


def _numbers(request: Mapping[str, Any]) -> Iterator[str]:
    for name, whole, least in (
        ("instances", True, 0),
        ("gpus", True, 0),
        ("cpus", False, 0.001),
        ("mem", False, 0),
        ("disk", False, 0),
    ):
        value = request.get(name)
        if value is None:
            continue
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or value < least or (whole and value != int(value)):
            yield (
                f"The app's {name} is {value!r}; give a {'whole ' if whole else ''}number of {least} or more."
            )


def _port_problems(request: Mapping[str, Any], container: Mapping[str, Any]) -> Iterator[str]:
    docker = container.get("docker") or {}
    for name, instead in (("network", "networks"), ("portMappings", "container.portMappings")):
        if docker.get(name):
            yield f"The field container.docker.{name} is outdated; use {instead}."
    if _own_network(request) and request.get("portDefinitions"):
        yield (
            "The app has portDefinitions and a network of its own, where Marathon drops them; give"
            " container.portMappings."
        )
    if not _own_network(request) and container.get("portMappings"):
        yield (
            "The app has container.portMappings and the network of the host, where Marathon drops them; give"
            " networks, such as [{mode: container/bridge}], or portDefinitions."
        )


def _own_network(app: Mapping[str, Any]) -> bool:
    return any(one.get("mode", "container") != "host" for one in app.get("networks") or ())


def _gpu_problems(container: Mapping[str, Any]) -> Iterator[str]:
    if container and container.get("type", "DOCKER") == "DOCKER":
        yield (
            "The app wants GPUs in a container of type DOCKER, which gets no devices; set container.type to"
            " MESOS."
        )
    docker = container.get("docker") or {}
    for name in ("parameters", "privileged"):
        if docker.get(name):
            yield f"The app wants GPUs, and containers of type MESOS have no docker.{name}; leave it out."


def warnings(request: Mapping[str, Any]) -> Iterator[str]:
    """Yield what can work and mostly is not meant, each a sentence."""
    strategy = request.get("upgradeStrategy") or {}
    over = strategy.get("maximumOverCapacity", 1) > 0
    if request.get("gpus") and over and strategy.get("minimumHealthCapacity", 1) > 0:
        yield (
            f"{request['id']} is updated by starting new instances beside the old ones, for which there may"
            " be no GPUs; set upgradeStrategy to minimumHealthCapacity 0 and maximumOverCapacity 0."
        )
    for check in request.get("healthChecks") or ():
        if not str(check.get("protocol", "HTTP")).startswith(("MESOS_", "COMMAND")):
            yield (
                f"{request['id']} has a health check that Marathon itself makes, which does not scale;"
                f" MESOS_{check.get('protocol', 'HTTP')} is made on the agents."
            )


def difference(current: Mapping[str, Any], wanted: Mapping[str, Any]) -> Difference:
    """Return in what an app differs from a definition, after what the server fills in.

    Args:
        current: as the server tells it; empty when there is none.
        wanted: as `read_app` returns it.
    """
    before, after = {}, {}
    for name in FIELDS:
        has, shall = _canonical(name, current, wanted), _canonical(name, wanted, wanted)
        if name in CHOSEN_BY_SERVER and wanted.get(name) is None:
            continue
        if has != shall or not current:
            if not _empty(has) and current:
                before[name] = current.get(name, has)
            if not _empty(shall) and (current or wanted.get(name) is not None):
                after[name] = wanted.get(name, shall)
    return Difference(before, after)


def _empty(value: Any) -> bool:
    return value is None or value == {} or value == [] or value == ""


def _canonical(name: str, app: Mapping[str, Any], wanted: Mapping[str, Any]) -> Any:
    """Return a field in the one form that definitions of the same meaning share."""
    value = app.get(name)
    reader = _READERS.get(name)
    if name in STRATEGIES:
        return _strategy(name, app)
    if _empty(value):
        value = DEFAULTS.get(name)
    if _own_network(wanted):
        if name == "container" and _empty(value):
            value = {"type": "MESOS"}
        elif name == "requirePorts":
            value = False
    if reader is not None and not _empty(value):
        return reader(value, wanted.get(name))
    return value


def _strategy(name: str, app: Mapping[str, Any]) -> Any:
    """Apps with volumes that are not folders of the agent have other defaults (state/UpgradeStrategy.scala,
    UnreachableStrategy.scala)."""
    volumes = (app.get("container") or {}).get("volumes") or ()
    resident = any(volume.get("persistent") for volume in volumes)
    value = app.get(name)
    if name == "upgradeStrategy":
        slow = resident or any(volume.get("external") for volume in volumes)
        low, over = (0.5, 0) if slow else (1, 1)
        return {"minimumHealthCapacity": low, "maximumOverCapacity": over, **(value or {})}
    if value == "disabled" or (value is None and resident):
        return "disabled"
    return {"inactiveAfterSeconds": 0, "expungeAfterSeconds": 0, **(value or {})}


def _each(defaults: Mapping[str, Any]) -> Callable[[Any, Any], Any]:
    def read(value: Any, _wanted: Any) -> Any:
        return [{**defaults, **one} for one in value]

    return read


def _ports(defaults: Mapping[str, Any], field: str) -> Callable[[Any, Any], Any]:
    """A port 0 becomes one that the server chooses, so it says nothing about the port that is there."""

    def read(value: Any, wanted: Any) -> Any:
        rows = []
        for position, one in enumerate(value):
            row = {**defaults, **_given(one)}
            other = wanted[position] if isinstance(wanted, list) and position < len(wanted) else {}
            if not other.get(field):
                row[field] = 0
            if row.get("name") == "default" and "name" not in other:
                del row["name"]
            rows.append(row)
        return rows

    return read


def _container(value: Any, wanted: Any) -> Any:
    requested = wanted if isinstance(wanted, Mapping) else {}
    full = {"type": "DOCKER", **value}
    if full.get("docker"):
        full["docker"] = {**DOCKER, **full["docker"]}
    full["volumes"] = [_volume(one) for one in full.get("volumes") or ()]
    if full.get("portMappings"):
        full["portMappings"] = _ports(PORT_MAPPING, "servicePort")(
            full["portMappings"], requested.get("portMappings")
        )
    if "portMappings" not in requested:
        full.pop("portMappings", None)
    return full


def _given(value: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out what says no more than its absence."""
    return {name: item for name, item in value.items() if item is not None and item != [] and item != {}}


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    full = _given(volume)
    if "persistent" in full:
        kind = "mount" if full["persistent"].get("profileName") else "root"
        full["persistent"] = {"type": kind, **_given(full["persistent"])}
    if "external" in full:
        full["external"] = {"shared": False, **_given(full["external"])}
    return full


def _health_checks(value: Any, _wanted: Any) -> list[dict[str, Any]]:
    rows = []
    for one in value:
        row = {**HEALTH_CHECK, **_given(one)}
        # With the ports that it knows, the server takes the first.
        if row.get("port") is None:
            row.setdefault("portIndex", 0)
        lost = [name for name, protocols in OF_PROTOCOLS.items() if row["protocol"] not in protocols]
        rows.append({name: item for name, item in row.items() if name not in lost})
    return rows


def _check(value: Any, _wanted: Any) -> dict[str, Any]:
    full = {**GENERAL_CHECK, **_given(value)}
    if "http" in full:
        full["http"] = {"scheme": "HTTP", **_given(full["http"])}
    return full


def _networks(value: Any, wanted: Any) -> list[dict[str, Any]]:
    """A network without a name gets that of the server's option."""
    rows = []
    for position, one in enumerate(value):
        row = {"mode": "container", **_given(one)}
        other = wanted[position] if isinstance(wanted, list) and position < len(wanted) else {}
        if not other.get("name"):
            row.pop("name", None)
        rows.append(row)
    return rows


def _words(value: Any, _wanted: Any) -> list[str]:
    return sorted(set(map(str, value)))


def _names_as_paths(value: Any, _wanted: Any) -> list[str]:
    return sorted("/" + str(one).strip("/") for one in value)


def _rules(value: Any, _wanted: Any) -> list[tuple[str, ...]]:
    """The server keeps them in no order, and each once."""
    return sorted({tuple(str(word) for word in rule) for rule in value})


_READERS: dict[str, Callable[[Any, Any], Any]] = {
    "acceptedResourceRoles": _words,
    "check": _check,
    "constraints": _rules,
    "container": _container,
    "dependencies": _names_as_paths,
    "fetch": _each(FETCH),
    "healthChecks": _health_checks,
    "id": lambda value, _wanted: "/" + str(value).strip("/"),
    "networks": _networks,
    "portDefinitions": _ports(PORT, "port"),
    "readinessChecks": _each(READINESS_CHECK),
}


def masked(fields: Mapping[str, Any], plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return fields of a definition with the values of its environment hidden.

    Nobody knows which of those that the server has were secret.

    Args:
        fields: of an app.
        plain: the variables of the environment that everybody may see; they are shown.
    """
    shown = dict(fields)
    if "env" in shown:
        shown["env"] = {
            name: value if name in plain and plain[name] == value else HIDDEN
            for name, value in sorted(shown["env"].items())
        }
    return shown
