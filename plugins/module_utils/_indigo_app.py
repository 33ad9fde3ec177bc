# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Apps, jobs and containers of INDIGO's TOSCA types in the words of Marathon, Chronos and Compose. Pure.

Words are translated as INDIGO's orchestrator does (indigo-dc/orchestrator, MarathonServiceImpl
and ChronosServiceImpl): containers with GPUs are run by Mesos itself, in the network of the host, others by
Docker.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

_UNITS = {"": 1, "b": 1, "kb": 10**3, "kib": 2**10, "mb": 10**6, "mib": 2**20, "gb": 10**9, "gib": 2**30}


# Once and now, as Chronos reads a schedule without a start (mesos/chronos, Iso8601Expressions).
ONCE = "R1//P1Y"


class IndigoError(ValueError):
    """The request cannot be expressed; the message is one sentence."""


def mebibytes(size: str) -> float:
    """Read an amount of memory.

    Args:
        size: such as "512 MB" (TOSCA Simple Profile 1.3, section 3.3.6.4).

    Returns:
        MiB, as Mesos counts.

    Raises:
        IndigoError: it is none.
    """
    found = re.fullmatch(r"([0-9]+(?:[.][0-9]+)?) *([A-Za-z]*)", size.strip())
    if not found or found.group(2).lower() not in _UNITS:
        raise IndigoError(f'mem_size "{size}" is no amount of memory; write it as "512 MB"')
    return round(float(found.group(1)) * _UNITS[found.group(2).lower()] / 2**20, 3)


def _common(words: dict[str, Any]) -> dict[str, Any]:
    if words.get("volumes"):
        raise IndigoError(
            "volumes of an INDIGO template are not supported; use tosca.nodes.gpufarm.MarathonApp"
        )
    found: dict[str, Any] = {
        "cpus": float(words.get("num_cpus") or 1.0),
        "mem": mebibytes(str(words.get("mem_size") or "512 MB")),
        "fetch": [{"uri": uri} for uri in words.get("uris") or []],
    }
    if words.get("num_gpus"):
        found["gpus"] = int(words["num_gpus"])
    return found


def _docker(words: dict[str, Any]) -> dict[str, Any]:
    found = {"image": words["image"], "forcePullImage": bool(words.get("force_pull_image"))}
    return found if words.get("num_gpus") else {**found, "privileged": bool(words.get("privileged"))}


def _own(name: str, words: dict[str, Any]) -> str:
    """A name of the template, and letters for the deployment: others of the template have the same name."""
    made_for = words.get("made_for")
    return f"{name}-{hashlib.sha256(made_for.encode()).hexdigest()[:8]}" if made_for else name


def marathon_app(words: dict[str, Any]) -> dict[str, Any]:
    """Say an app in the words of Marathon.

    Args:
        words: properties of the node and of the runtime that it stands on, by their names in INDIGO's types,
            and ``name`` and ``image``, and ``made_for``, the deployment. Entries that are None or empty are
            left out.

    Returns:
        The definition, without its environment.

    Raises:
        IndigoError: something cannot be said.
    """
    found = {"id": f"/{_own(words['name'], words).lower().replace('_', '-')}", **_common(words)}
    if words.get("command"):
        found["cmd"] = words["command"]
    if words.get("constraints"):
        found["constraints"] = words["constraints"]
    ports = words.get("publish_ports") or []
    labels = {key: str(value) for key, value in (words.get("labels") or {}).items()}
    if ports:
        labels.setdefault("HAPROXY_GROUP", "external")
    found["labels"] = labels
    if words.get("num_gpus"):
        found["container"] = {"type": "MESOS", "docker": _docker(words)}
        found["networks"] = [{"mode": "host"}]
        found["portDefinitions"] = [
            {"port": int(port.get("target") or 0), "protocol": port.get("protocol") or "tcp"}
            for port in ports
        ]
    else:
        mappings = [
            {
                "containerPort": int(port["source"]),
                "hostPort": 0,
                "servicePort": int(port.get("target") or 0),
                "protocol": port.get("protocol") or "tcp",
            }
            for port in ports
        ]
        found["container"] = {"type": "DOCKER", "docker": _docker(words), "portMappings": mappings}
        found["networks"] = [{"mode": "container/bridge"}]
    return found


def chronos_job(words: dict[str, Any]) -> dict[str, Any]:
    """Say a job in the words of Chronos.

    Args:
        words: as for `marathon_app`.

    Returns:
        The definition, without its environment.

    Raises:
        IndigoError: something cannot be said.
    """
    common = _common(words)
    parents = [_own(parent, words) for parent in words.get("parents") or [] if parent]
    found = {
        "name": _own(words["name"], words),
        "command": words["command"],
        **({"parents": parents} if parents else {"schedule": words.get("schedule") or ONCE}),
        "description": words.get("description") or "",
        "retries": int(words.get("retries") or 0),
        **common,
    }
    docker = _docker(words)
    kind = "MESOS" if words.get("num_gpus") else "DOCKER"
    found["container"] = {
        "type": kind,
        "image": docker["image"],
        "forcePullImage": docker["forcePullImage"],
    }
    return found


def environment(words: Any) -> dict[str, str]:
    """Read the environment of a container.

    Args:
        words: list of maps, each with variables, or with `key` and `value` of one.

    Returns:
        The values by name; of several with one name the last.

    Raises:
        IndigoError: an entry is no map of texts, or a variable has no value.
    """
    if not isinstance(words, list):
        raise IndigoError("environment_variables is no list of maps of names to texts; write it as one")
    found: dict[str, str] = {}
    for entry in words:
        own = (
            {entry["key"]: entry["value"]}
            if isinstance(entry, Mapping) and entry.keys() == {"key", "value"}
            else entry
        )
        if not isinstance(own, Mapping) or any(isinstance(value, (Mapping, list)) for value in own.values()):
            raise IndigoError("environment_variables has an entry that is no map of names to texts")
        for name, value in own.items():
            if value is None:
                raise IndigoError(f"environment_variables gives {name} no value; write one or remove it")
            found[str(name)] = str(value).lower() if isinstance(value, bool) else str(value)
    return found


def _reference(image: str, tag: str) -> str:
    """An image with its tag, unless it has a tag or a digest already; a port belongs to the registry."""
    return image if "@" in image or ":" in image.rpartition("/")[2] else f"{image}:{tag or 'latest'}"


def compose_definition(words: dict[str, Any]) -> dict[str, Any]:
    """Say a container in the words of Compose.

    Args:
        words: properties of the node without their prefix `docker_`, by their names in INDIGO's types, and
            `variables`, the names in its environment.

    Returns:
        The Compose file. Compose takes the values of the variables from its own environment.
    """
    # Compose reads a dollar sign as the begin of a variable
    plain = {
        key: str(words.get(key) or "").replace("$", "$$") for key in ("image", "tag", "command", "volume")
    }
    service: dict[str, Any] = {
        "image": _reference(plain["image"], plain["tag"]),
        # users call the container by it, as in `docker exec NAME`
        "container_name": words["appname"],
        "restart": "unless-stopped",
        "ports": [str(port).replace("$", "$$") for port in words.get("ports") or []],
        "environment": sorted(words.get("variables") or []),
        # INDIGO's role shares this folder of the machine with the container
        "volumes": [f"/data:{plain['volume']}"] if plain["volume"] else [],
    }
    if plain["command"]:
        service["command"] = plain["command"]
    return {"services": {words["appname"]: {key: value for key, value in service.items() if value}}}
