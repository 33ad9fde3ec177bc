# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as containers of Docker (an `Engine`)."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from string import ascii_lowercase, digits

import docker
import requests
from escapism import escape, unescape

from . import container
from .engine import Death, EngineError

TIMEOUT = 60  # seconds that Docker may take to answer
# Statuses with which a container ends that was asked to: those that systemd takes for success, too
# (systemd.service(5), SuccessExitStatus=), with 128 added to the number of a signal.
CLEAN = (0, 129, 130, 141, 143)
GRACE = 20  # seconds between asking a notebook to end and ending it

PREFIX = "docker:"
NAME = "jupyterhub-notebook-"  # what the names of all notebooks' containers begin with

# Docker's states in which no process of the container is left (Engine API, ContainerInspect, State.Status).
OVER = ("created", "exited", "dead")


def name_of(owner: str) -> str:
    """Return the unit of a notebook: the container's name behind `PREFIX`.

    Characters that Docker does not allow in names are escaped with "-", so "--" separates user and server.

    Args:
        owner: user and server name, ``alice/`` for the default server.
    """
    parts = (escape(part, ascii_lowercase + digits, "-") for part in owner.split("/", 1) if part)
    return f"{PREFIX}{NAME}{'--'.join(parts)}"


def owner_of(unit: str) -> str:
    """Return the owner of a notebook's unit: the opposite of `name_of`.

    Control characters in the name of a server do not come back as they were. A lease of such a notebook is
    taken back all the same when the notebook is over.
    """
    user, _dashes, server = container_of(unit).removeprefix(NAME).partition("--")
    try:
        return f"{unescape(user, '-')}/{unescape(server, '-')}"
    except UnicodeDecodeError:
        return f"{user}/{server}"


def container_of(unit: str) -> str:
    """Return the name of the unit's container."""
    return unit.removeprefix(PREFIX)


@contextmanager
def _engine(doing: str) -> Iterator[docker.APIClient]:
    try:
        client = docker.APIClient(version="auto", timeout=TIMEOUT)
        try:
            yield client
        finally:
            client.close()
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise EngineError(f"Docker, {doing}: {error}") from error


def running() -> list[str]:
    """Return the units of all notebooks that are not over.

    Raises:
        EngineError: Docker did not answer.
    """
    with _engine("looking for notebooks") as client:
        found = client.containers(all=True, filters={"name": f"^/{NAME}"})
    return [f"{PREFIX}{one['Names'][0].lstrip('/')}" for one in found if one["State"] not in OVER]


def is_over(unit: str) -> bool:
    """Tell whether no process of the container is left; one that is gone is over.

    Raises:
        EngineError: Docker did not answer.
    """
    with _engine(f"looking at {unit}") as client:
        try:
            state = client.inspect_container(container_of(unit))["State"]
        except docker.errors.NotFound:
            return True
        return state["Status"] in OVER


def reach() -> dict[str, frozenset[str]]:
    """Return, for each container that is not over, the UUIDs of the GPUs or slices that were given to it.

    Raises:
        EngineError: Docker did not answer.
    """
    found = {}
    units = running()
    with _engine("looking at notebooks") as client:
        for unit in units:
            try:
                found[unit] = container.given(client.inspect_container(container_of(unit)))
            except docker.errors.NotFound:
                continue
    return found


def processes(unit: str) -> frozenset[int]:
    """Return the ids of the container's processes.

    Raises:
        EngineError: Docker did not answer.
    """
    with _engine(f"looking at {unit}") as client:
        try:
            told = client.top(container_of(unit), ps_args="-eo pid")
        except docker.errors.NotFound:
            return frozenset()
        except docker.errors.APIError as error:
            if error.status_code != HTTPStatus.CONFLICT:  # as of a container that does not run
                raise
            return frozenset()
    return frozenset(int(row[0]) for row in told["Processes"] or ())


def cpu_seconds(unit: str) -> float | None:
    """Return the seconds of CPU time that the container's processes have taken; None where nobody counts.

    Raises:
        EngineError: Docker did not answer.
    """
    with _engine(f"measuring {unit}") as client:
        try:
            measured = client.stats(container_of(unit), stream=False, one_shot=True)
        except docker.errors.NotFound:
            return None
    # Nanoseconds. A running container has always used some, so 0 means that its control group does not count.
    nanoseconds = measured.get("cpu_stats", {}).get("cpu_usage", {}).get("total_usage", 0)
    return nanoseconds / 1e9 if nanoseconds else None


def death(unit: str) -> Death | None:
    """Return how a container that is over has failed; None if it did not, or if it is gone.

    Raises:
        EngineError: Docker did not answer.
    """
    with _engine(f"looking at {unit}") as client:
        try:
            state = client.inspect_container(container_of(unit))["State"]
        except docker.errors.NotFound:
            return None
    status = state["ExitCode"]
    if status in CLEAN:
        return None
    # Docker says so of any process of the container, such as a kernel that JupyterLab has outlived.
    if state["OOMKilled"] and status == 128 + signal.SIGKILL:
        return Death("memory")
    return Death("signal", status - 128) if status > 128 else Death("status", status)


def stop(unit: str) -> None:
    """Stop and delete the container; what is in it and not in the user's home is gone.

    Raises:
        EngineError: it still runs, or Docker did not answer.
    """
    with _engine(f"stopping {unit}") as client:
        try:
            client.stop(container_of(unit), timeout=GRACE)
            client.remove_container(container_of(unit), v=True, force=True)
        except docker.errors.NotFound:
            return


def resumable() -> list[str]:
    """Return no units: a notebook runs as soon as it is started."""
    return []


def revoke_devices(unit: str) -> None:
    """Stop the container: Docker cannot take a device from one that runs.

    Raises:
        EngineError: it still runs, or Docker did not answer.
    """
    stop(unit)
