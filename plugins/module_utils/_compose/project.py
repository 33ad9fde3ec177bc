# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads what Docker and Compose tell of the containers of a project. Pure.

Compose marks its containers with labels (docker/compose, pkg/api/labels.go; the same in version 1): the
project, the service, a digest of the service's settings, and the files that those are from.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

LABEL = "com.docker.compose"
# States of a container from which it does not go on by itself (Engine API, GET /containers/{id}/json).
_OVER = ("created", "exited", "dead", "paused")


@dataclass(frozen=True)
class Container:
    """A container of a project.

    Attributes:
        id: of the container.
        service: that it belongs to.
        digest: of the settings that it was made with.
        files: the Compose files that it was made from.
        image: its name.
        status: such as `running`.
        code: its exit status, if it is over.
        health: such as `healthy`; empty without a health check.
        ports: such as `0.0.0.0:8080->80/tcp`.
    """

    id: str
    service: str
    digest: str
    files: str
    image: str
    status: str
    code: int
    health: str
    ports: tuple[str, ...]

    @property
    def is_done(self) -> bool:
        """Whether it has done what it was for."""
        return self.status == "exited" and self.code == 0

    @property
    def is_well(self) -> bool:
        """Whether it runs and is not known to be ill, or has done what it was for."""
        return self.is_done or (self.status == "running" and self.health in ("", "healthy"))

    @property
    def has_failed(self) -> bool:
        """Whether waiting for it is of no use."""
        return not self.is_done and self.status in _OVER

    def told(self) -> str:
        """Return its state in a phrase."""
        if self.status == "exited":
            return f"{self.service} ended with {self.code}"
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
        The containers by name of the service, without those of single runs (`docker compose run`).
    """
    found = []
    for entry in inspected:
        labels = entry["Config"].get("Labels") or {}
        if labels.get(f"{LABEL}.oneoff", "False").lower() == "true":
            continue
        state = entry["State"]
        found.append(
            Container(
                id=entry["Id"],
                service=labels.get(f"{LABEL}.service", ""),
                digest=labels.get(f"{LABEL}.config-hash", ""),
                files=labels.get(f"{LABEL}.project.config_files", ""),
                image=entry["Config"]["Image"],
                status=state["Status"],
                code=int(state.get("ExitCode") or 0),
                health=(state.get("Health") or {}).get("Status", ""),
                ports=_ports(entry),
            )
        )
    return sorted(found, key=lambda one: one.service)


def digests(text: str) -> dict[str, str]:
    """Read the answer of `docker compose config --hash '*'`.

    Args:
        text: a line for each service, its name and its digest.

    Returns:
        The digests by service.
    """
    return dict(line.split() for line in text.splitlines() if len(line.split()) == 2)


def differences(wanted: Mapping[str, str], found: Iterable[Container]) -> list[str]:
    """Compare the containers that are there with the services of the file.

    Args:
        wanted: digest of each service.
        found: the containers.

    Returns:
        A phrase for each service that `up` would change, such as `web has other settings`; by service.
    """
    there: dict[str, list[Container]] = {}
    for one in found:
        there.setdefault(one.service, []).append(one)
    said = {name: f"{name} is no longer wanted" for name in there.keys() - wanted.keys()}
    for name, digest in wanted.items():
        own = there.get(name, [])
        if not own:
            said[name] = f"{name} is missing"
        elif any(one.digest != digest for one in own):
            said[name] = f"{name} has other settings"
        elif any(one.has_failed for one in own):
            said[name] = next(one.told() for one in own if one.has_failed)
    return [said[name] for name in sorted(said)]
