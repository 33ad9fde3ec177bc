# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what Docker tells of the containers of a project, and compares it with what was applied. Pure.

Compose marks its containers with labels (docker/compose, pkg/api/labels.go; the same in version 1): the
project, the service, and the files that those are from.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LABEL = "com.docker.compose"
# Restart policies with which Docker starts a container again that has ended with 0.
_FOREVER = ("always", "unless-stopped")


@dataclass(frozen=True)
class Container:
    """A container of a project.

    Attributes:
        id: of the container.
        name: of the container.
        service: that it belongs to.
        files: the Compose files that it was made from.
        image: its name.
        status: such as `running`.
        code: its exit status, if it is over.
        health: such as `healthy`; empty without a health check.
        policy: its restart policy, such as `always`.
        restarts: how often Docker has started it again.
        is_single: whether it is a single run (`docker compose run`) beside the services.
        ports: such as `0.0.0.0:8080->80/tcp`.
    """

    id: str
    name: str
    service: str
    files: str
    image: str
    status: str
    code: int
    health: str
    policy: str
    restarts: int
    is_single: bool
    ports: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        """Whether it has done what it was for: it ended well, and nothing is to start it again."""
        return self.status == "exited" and self.code == 0 and self.policy not in _FOREVER

    @property
    def is_well(self) -> bool:
        """Whether it runs and is not known to be ill, or has done what it was for."""
        return self.is_done or (self.status == "running" and self.health in ("", "healthy"))

    @property
    def has_failed(self) -> bool:
        """Whether waiting for it is of no use."""
        return self.status in ("exited", "dead", "paused") and not self.is_done

    def told(self) -> str:
        """Return its state in a phrase."""
        if self.status == "exited":
            return f"{self.service} has ended with {self.code}"
        return f"{self.service} is {self.health if self.status == 'running' and self.health else self.status}"


def _ports(settings: Mapping[str, Any]) -> tuple[str, ...]:
    bound = (settings.get("NetworkSettings") or {}).get("Ports") or {}
    return tuple(
        f"{place['HostIp']}:{place['HostPort']}->{port}"
        for port, places in sorted(bound.items())
        for place in places or ()
    )


def containers(inspected: Iterable[Mapping[str, Any]]) -> list[Container]:
    """Read the answer of `docker inspect`.

    Args:
        inspected: one entry for each container of a project.

    Returns:
        The containers by service and name.
    """
    found = []
    for entry in inspected:
        labels, state = entry["Config"].get("Labels") or {}, entry["State"]
        found.append(
            Container(
                id=entry["Id"],
                name=str(entry.get("Name", "")).lstrip("/"),
                service=labels.get(f"{LABEL}.service", ""),
                files=labels.get(f"{LABEL}.project.config_files", ""),
                image=entry["Config"]["Image"],
                status=state["Status"],
                code=int(state.get("ExitCode") or 0),
                health=(state.get("Health") or {}).get("Status", ""),
                policy=((entry.get("HostConfig") or {}).get("RestartPolicy") or {}).get("Name", ""),
                restarts=int(entry.get("RestartCount") or 0),
                is_single=labels.get(f"{LABEL}.oneoff", "").lower() == "true",
                ports=_ports(entry),
            )
        )
    return sorted(found, key=lambda one: (one.service, one.name))


def digest(rendered: str) -> str:
    """Return a digest of a Compose file with all its values, as `docker compose config` prints it."""
    return hashlib.sha256(rendered.encode()).hexdigest()


def applied(rendered: str, found: Iterable[Container]) -> str:
    """Write down what was applied, for `differences`.

    Args:
        rendered: the Compose file with all its values.
        found: the containers that it made.

    Returns:
        A file; the values are in it as a digest only.
    """
    made = sorted(one.id for one in found if not one.is_single)
    return json.dumps({"digest": digest(rendered), "containers": made}) + "\n"


def differences(rendered: str, before: str, found: Iterable[Container]) -> list[str]:
    """Compare the containers that are there with what was applied.

    Args:
        rendered: the Compose file with all its values.
        before: what `applied` has written down; empty without a former run.
        found: the containers.

    Returns:
        A phrase for each difference, such as `web has ended with 137`.
    """
    there = [one for one in found if not one.is_single]
    try:
        known = json.loads(before) if before else {}
        former, made = known.get("digest"), set(known.get("containers", ()))
    except (ValueError, AttributeError, TypeError):
        former, made = None, set()
    said = []
    if former != digest(rendered):
        said.append("the settings have changed" if before else "nothing was applied")
    ids = {one.id for one in there}
    if former and made - ids:
        said.append("containers are missing")
    said += [f"{one.name} was not made by this role" for one in there if former and one.id not in made]
    return said + [one.told() for one in there if not one.is_well]


def dotenv(values: Mapping[str, str], major: int) -> str:
    """Write a file with values of variables.

    Args:
        values: by name.
        major: version of Compose. The first reads such files with python-dotenv, later ones with
            compose-go/dotenv, which would expand dollar signs.

    Returns:
        The file; every value is taken as it is.
    """
    quote, special = ("'", "\\'") if major == 1 else ('"', '\\"$')
    lines = []
    for name, value in values.items():
        escaped = "".join(f"\\{letter}" if letter in special else letter for letter in value)
        lines.append(f"{name}={quote}{escaped}{quote}\n")
    return "".join(lines)
