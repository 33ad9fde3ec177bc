# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster as Slurm describes it now: the partition of notebooks, and the nodes in it that run them."""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from functools import cache

from gpufarm_hub.spawning.engine import EngineError

from . import client, offers, submission
from .offers import Node, OffersError, Partition

AGE = 5  # seconds that a description serves; it is for forms, and Slurm decides


@dataclass(frozen=True)
class Cluster:
    """A cluster as the hub knows it.

    Attributes:
        partition: the one for notebooks.
        nodes: those in it that run notebooks.
    """

    partition: Partition
    nodes: tuple[Node, ...]


def read(partition: str) -> Cluster:
    """Return the cluster; all who ask within some seconds share the answer.

    Args:
        partition: name of the one for notebooks; empty for the default one.

    Raises:
        EngineError: Slurm does not answer, or has no such partition.
    """
    return _shared(partition).get()


@cache
def _shared(partition: str) -> client.Shared[Cluster]:
    return client.Shared(lambda: _ask(partition), AGE)


def _ask(wanted: str) -> Cluster:
    try:
        partition = offers.read_partition(client.run(["sinfo", "--noheader", "--format=%P|%l"]), wanted)
        nodes = offers.read_nodes(client.run(["scontrol", "--json", "show", "nodes"]))
    except OffersError as error:
        raise EngineError(str(error)) from error
    if partition is None:
        raise EngineError(f"Slurm has no partition {wanted}" if wanted else "Slurm has no default partition")
    ours = (node for node in nodes if partition.name in node.partitions)
    return Cluster(partition, tuple(node for node in ours if submission.FEATURE in node.features))


def address_of(name: str, nodes: tuple[Node, ...]) -> str:
    """Return the IP address of a node.

    Raises:
        EngineError: Slurm has no such node, or nobody knows its address.
    """
    address = next((node.address for node in nodes if node.name == name), "")
    try:
        found = socket.getaddrinfo(address, None, type=socket.SOCK_STREAM) if address else []
    except OSError as error:
        raise EngineError(f"the address {address} of node {name} is not known: {error}") from error
    if not found:
        raise EngineError(f"Slurm has no node {name}")
    return str(ipaddress.ip_address(found[0][4][0]))
