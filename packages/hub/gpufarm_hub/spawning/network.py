# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of notebooks in containers: ``python -m gpufarm_hub.spawning.network up SUBNET INTERFACE``, or
``... down``.

`walls` says who may send packets through it.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import docker
import requests

from . import containers
from .walls import hub_address

NAME = "jupyterhub"


class NetworkError(Exception):
    """The network cannot be made; the text is for the administrator."""


def up(subnet: str, interface: str) -> None:
    """Make the network, unless it is there.

    Args:
        subnet: its addresses.
        interface: the machine's end of it.

    Raises:
        NetworkError: with the reason and the next step.
    """
    try:
        with closing(docker.APIClient(version="auto", timeout=60)) as client:
            found = client.networks(names=[f"^{NAME}$"])
            if not found:
                _create(client, subnet, interface)
            elif not _is_as_wanted(found[0], subnet):
                client.remove_network(NAME)
                _create(client, subnet, interface)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise NetworkError(
            f"Docker's network {NAME} ({subnet}) cannot be made: {error}; stop what uses it or choose "
            "another jupyterhub_docker_subnet"
        ) from error


def _is_as_wanted(found: Mapping[str, Any], subnet: str) -> bool:
    return [entry.get("Subnet") for entry in found["IPAM"]["Config"]] == [subnet]


def _create(client: docker.APIClient, subnet: str, interface: str) -> None:
    pool = docker.types.IPAMPool(subnet=subnet, gateway=hub_address(subnet))
    client.create_network(
        NAME,
        driver="bridge",
        ipam=docker.types.IPAMConfig(pool_configs=[pool]),
        options={
            "com.docker.network.bridge.name": interface,
            "com.docker.network.bridge.enable_icc": "false",
        },
        check_duplicate=True,
    )


def down() -> None:
    """Stop all notebooks in containers, and remove the network.

    Raises:
        NetworkError: with the reason.
    """
    try:
        with closing(docker.APIClient(version="auto", timeout=60)) as client:
            for notebook in client.containers(all=True, filters={"name": f"^/{containers.NAME}"}):
                client.remove_container(notebook["Id"], force=True, v=True)
            if client.networks(names=[f"^{NAME}$"]):
                client.remove_network(NAME)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise NetworkError(f"Docker's network {NAME} cannot be removed: {error}") from error


def main() -> None:
    """Run the program."""
    try:
        if sys.argv[1] == "up":
            up(*sys.argv[2:])
        else:
            down()
    except NetworkError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
