# SPDX-License-Identifier: GPL-3.0-or-later
"""The network of notebooks in containers: ``python -m gpufarm_hub.spawning.network up SUBNET PORT``, or
``down``.

Notebooks reach the hub at the network's first address, and what lies beyond the machine; neither each
other, nor what else the machine serves, nor the metadata service of a cloud.
"""

from __future__ import annotations

import ipaddress
import subprocess
import sys
from collections.abc import Mapping
from contextlib import closing
from typing import Any

import docker
import requests

from . import containers, metadata

NAME = "jupyterhub"
BRIDGE = "jupyterhub0"  # at most 15 characters (Linux, IFNAMSIZ)
TABLE = "inet jupyterhub_notebooks"


class NetworkError(Exception):
    """The network cannot be made; the text is for the administrator."""


def hub_address(subnet: str) -> str:
    """Return the address of the machine in the network."""
    return str(next(ipaddress.ip_network(subnet).hosts()))


def rules(hub: str, port: int) -> str:
    """Return the rules for packets as `nft` takes them.

    Args:
        hub: address of the machine in the network.
        port: TCP port of the hub.
    """
    refused = "\n    ".join(metadata.refused())
    return f"""\
table {TABLE}
delete table {TABLE}
table {TABLE} {{
  chain input {{
    type filter hook input priority filter - 5; policy accept;
    iifname "{BRIDGE}" jump from_notebooks
  }}
  chain from_notebooks {{
    ct state established,related accept
    ip daddr {hub} tcp dport {port} accept
    # The machine may be its own name server.
    meta l4proto {{ tcp, udp }} th dport 53 accept
    reject
  }}
  chain forward {{
    type filter hook forward priority filter - 5; policy accept;
    iifname "{BRIDGE}" oifname "{BRIDGE}" drop
    iifname "{BRIDGE}" jump to_metadata
  }}
  chain to_metadata {{
    {refused}
  }}
}}
"""


def up(subnet: str, port: int) -> None:
    """Make the network and its rules, unless they are there.

    Raises:
        NetworkError: with the reason and the next step.
    """
    try:
        with closing(docker.APIClient(version="auto", timeout=60)) as client:
            found = client.networks(names=[f"^{NAME}$"])
            if not found:
                _create(client, subnet)
            elif not _is_as_wanted(found[0], subnet):
                client.remove_network(NAME)
                _create(client, subnet)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise NetworkError(
            f"Docker's network {NAME} ({subnet}) cannot be made: {error}; stop what uses it or choose "
            "another jupyterhub_docker_subnet"
        ) from error
    _nft(rules(hub_address(subnet), port))


def _is_as_wanted(found: Mapping[str, Any], subnet: str) -> bool:
    return [entry.get("Subnet") for entry in found["IPAM"]["Config"]] == [subnet]


def _create(client: docker.APIClient, subnet: str) -> None:
    pool = docker.types.IPAMPool(subnet=subnet, gateway=hub_address(subnet))
    client.create_network(
        NAME,
        driver="bridge",
        ipam=docker.types.IPAMConfig(pool_configs=[pool]),
        options={
            "com.docker.network.bridge.name": BRIDGE,
            "com.docker.network.bridge.enable_icc": "false",
        },
        check_duplicate=True,
    )


def down() -> None:
    """Stop all notebooks in containers, and remove the network and its rules.

    Raises:
        NetworkError: with the reason.
    """
    _nft(f"table {TABLE}\ndelete table {TABLE}\n")
    try:
        with closing(docker.APIClient(version="auto", timeout=60)) as client:
            for notebook in client.containers(all=True, filters={"name": f"^/{containers.NAME}"}):
                client.remove_container(notebook["Id"], force=True, v=True)
            if client.networks(names=[f"^{NAME}$"]):
                client.remove_network(NAME)
    except (docker.errors.DockerException, requests.RequestException) as error:
        raise NetworkError(f"Docker's network {NAME} cannot be removed: {error}") from error


def _nft(program: str) -> None:
    done = subprocess.run(["nft", "--file", "-"], check=False, input=program, capture_output=True, text=True)
    if done.returncode:
        raise NetworkError(f"the rules for packets of notebooks were refused: {done.stderr.strip()}")


def main() -> None:
    """Run the program."""
    try:
        if sys.argv[1] == "up":
            up(sys.argv[2], int(sys.argv[3]))
        else:
            down()
    except NetworkError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
