"""Definitions of apps: what is refused, and what the server fills in.

Sources: mesosphere/marathon, docs/docs/rest-api and the RAML of releases/1.11 (fields, defaults); docs/gpu.md
and AppValidation.scala (GPUs need the feature and no Docker container); docs/multi-role.md (roles,
enforceRole).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

ID = re.compile(r"(/[a-z0-9]([a-z0-9.-]*[a-z0-9])?)+")
# Fields of the answer that a client cannot set.
READ_ONLY = (
    "version",
    "versionInfo",
    "tasksStaged",
    "tasksRunning",
    "tasksHealthy",
    "tasksUnhealthy",
    "deployments",
    "tasks",
    "lastTaskFailure",
)
DEFAULTS: dict[str, Any] = {
    "backoffFactor": 1.15,
    "backoffSeconds": 1,
    "cpus": 1,
    "disk": 0,
    "executor": "",
    "gpus": 0,
    "instances": 1,
    "killSelection": "YOUNGEST_FIRST",
    "labels": {},
    "maxLaunchDelaySeconds": 300,
    "mem": 128,
    "requirePorts": False,
}
# Where an empty value differs from none at all.
EMPTY_MEANS_NONE = ("labels", "portDefinitions")
CHECK = {
    "gracePeriodSeconds": 300,
    "intervalSeconds": 60,
    "timeoutSeconds": 20,
    "delaySeconds": 15,
    "maxConsecutiveFailures": 3,
    "protocol": "HTTP",
    "ipProtocol": "IPv4",
}
GENERAL_CHECK = {"intervalSeconds": 60, "timeoutSeconds": 20, "delaySeconds": 15}


def problems(app: Mapping[str, Any], gpu_feature: bool, role: str) -> Iterator[tuple[str, str]]:
    """Yield what is wrong with a definition: the place and the words.

    :param gpu_feature: whether `gpu_resources` is among the features
    :param role: the only role that its group allows, empty for any
    """
    container = app.get("container") or {}
    image = container.get("docker", {}).get("image")
    if not ID.fullmatch(str(app.get("id", ""))):
        yield "/id", "must fully match regular expression of a path"
    if ("cmd" in app and "args" in app) or not ("cmd" in app or "args" in app or image):
        yield "/", "AppDefinition must either contain one of 'cmd' or 'args', and/or a 'container'."
    for name, least in (("cpus", 0), ("mem", 0), ("disk", 0), ("instances", 0), ("gpus", 0)):
        value = app.get(name, 0)
        if not isinstance(value, int | float) or isinstance(value, bool) or value < least:
            yield f"/{name}", f"got {value}, expected {least} or more"
    if app.get("gpus"):
        if app["gpus"] != int(app["gpus"]):
            yield "/gpus", "error.expected.int"
        if not gpu_feature:
            yield "/", "Feature gpu_resources is not enabled. Enable with --enable_features gpu_resources)"
        if container.get("type", "DOCKER" if container else "MESOS") == "DOCKER":
            yield "/", "GPU resources only work with the Mesos containerizer"
    if role and app.get("role", role) != role:
        yield "/role", f"got {app['role']}, expected one of: {role}"


def complete(app: Mapping[str, Any], role: str) -> dict[str, Any]:
    """Return a definition as the server keeps it."""
    kept = {
        name: value
        for name, value in app.items()
        if name not in READ_ONLY and value is not None and (value not in ({}, []) or name in EMPTY_MEANS_NONE)
    }
    full = {**DEFAULTS, **kept, "role": kept.get("role", role)}
    networked = [one for one in full.get("networks", ()) if one.get("mode", "container") != "host"]
    container = full.get("container")
    if networked:
        container = {"portMappings": [{"name": "default"}], **(container or {"type": "MESOS"})}
        # It is for networks of the host (AppNormalization.scala).
        full["requirePorts"] = False
    if container is not None:
        full["container"] = _container(container)
    full["networks"] = [
        {"mode": "container", **one} | ({} if one.get("name") else _named(one))
        for one in full.get("networks", ())
    ] or [{"mode": "host"}]
    if not networked:
        ports = full.get("portDefinitions", [{"port": 0, "name": "default"}])
        full["portDefinitions"] = [
            {"protocol": "tcp", **one, "port": one.get("port") or 10000 + number}
            for number, one in enumerate(ports)
        ]
    else:
        full.pop("portDefinitions", None)
    volumes = (container or {}).get("volumes", ())
    resident = any("persistent" in volume for volume in volumes)
    # AppConversion.scala, UpgradeStrategyConverter
    slow = resident or any("external" in volume for volume in volumes)
    full.setdefault(
        "unreachableStrategy",
        "disabled" if resident else {"inactiveAfterSeconds": 0, "expungeAfterSeconds": 0},
    )
    full["upgradeStrategy"] = {
        "minimumHealthCapacity": 0.5 if slow else 1,
        "maximumOverCapacity": 0 if slow else 1,
        **full.get("upgradeStrategy", {}),
    }
    if full.get("healthChecks"):
        ported = bool(app.get("portDefinitions") or (full.get("container") or {}).get("portMappings"))
        full["healthChecks"] = [_health_check(one, ported) for one in full["healthChecks"]]
    if full.get("check"):
        full["check"] = GENERAL_CHECK | full["check"]
        if "http" in full["check"]:
            full["check"]["http"] = {"scheme": "HTTP"} | full["check"]["http"]
    if full.get("fetch"):
        full["fetch"] = [
            {"cache": False, "executable": False, "extract": True} | one for one in full["fetch"]
        ]
    return full


def _named(network: Mapping[str, Any]) -> dict[str, str]:
    """As with the option `default_network_name`."""
    return {"name": "site"} if network.get("mode", "container") == "container" else {}


def _health_check(check: Mapping[str, Any], ported: bool) -> dict[str, Any]:
    """AppNormalization.scala, `normalizeHealthChecks`; HealthCheckConversion.scala."""
    full = CHECK | dict(check)
    protocol = str(full["protocol"])
    if ported and protocol != "COMMAND" and "port" not in full:
        full.setdefault("portIndex", 0)
    if protocol == "COMMAND":
        full.pop("portIndex", None)
    elif not protocol.startswith("MESOS_"):
        full |= {"delaySeconds": 15, "ipProtocol": "IPv4"}
    if protocol in ("HTTP", "HTTPS"):
        full.setdefault("ignoreHttp1xx", False)
    else:
        full.pop("ignoreHttp1xx", None)
    return full


def _volume(volume: Mapping[str, Any]) -> dict[str, Any]:
    """VolumeConversion.scala."""
    full = dict(volume)
    if "persistent" in full:
        kind = "mount" if "profileName" in full["persistent"] else "root"
        full["persistent"] = {"type": kind, "constraints": [], **full["persistent"]}
    if "external" in full and full["external"].get("provider") != "csi":
        full["external"] = {"options": {}, "shared": False, **full["external"]}
    return full


def _container(container: Mapping[str, Any]) -> dict[str, Any]:
    full = {"type": "DOCKER", **container}
    full["volumes"] = [_volume(one) for one in full.get("volumes", ())]
    if "docker" in full:
        docker = {"forcePullImage": False, **full["docker"]}
        if full["type"] == "DOCKER":
            docker = {"parameters": [], "privileged": False, **docker}
        full["docker"] = docker
    if "portMappings" in full:
        full["portMappings"] = [
            {
                "containerPort": 0,
                "hostPort": 0,
                "labels": {},
                "protocol": "tcp",
                "servicePort": 10100 + number,
            }
            | {name: value for name, value in one.items() if not (name == "servicePort" and value == 0)}
            for number, one in enumerate(full["portMappings"])
        ]
    return full
