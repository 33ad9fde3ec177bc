# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds a machine of the pool for every Compute node of a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from gpufarm.errors import NoMachine
from gpufarm.functions import Scope
from gpufarm.pool import Gpu, Machine, Pool
from gpufarm.topology import Node
from gpufarm.values import in_units

_UNITS = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"))


def _bytes(size: Any) -> int:
    return int(in_units("scalar-unit.size", size)) if size else 0


def _size(number: int) -> str:
    for unit, name in _UNITS:
        if number >= unit:
            return f"{number / unit:.4g} {name}"
    return f"{number} B"


@dataclass(frozen=True)
class Wish:
    """What a Compute node asks for; zero and empty ask for nothing.

    Attributes:
        cpus: number of CPUs.
        memory: in bytes.
        disk: size of the root file system in bytes.
        distribution: ID of os-release.
        version: VERSION_ID of os-release, or its beginning: "24" fits 24.04.
        gpus: number of GPUs.
        gpu_model: part of the name of each GPU, in any case.
        gpu_memory: of each GPU, in bytes.
        mig: whether each GPU has to support Multi-Instance GPU.
    """

    cpus: int = 0
    memory: int = 0
    disk: int = 0
    distribution: str = ""
    version: str = ""
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory: int = 0
    mig: bool = False

    @classmethod
    def of(cls, node: Node, scope: Scope) -> Wish:
        """Read the capabilities of a node.

        Args:
            node: a Compute node.
            scope: for its expressions.

        Returns:
            What it asks for.
        """
        found = {name: scope.evaluate(values, node.name) or {} for name, values in node.capabilities.items()}
        host, system, gpu = (found.get(name, {}) for name in ("host", "os", "gpu"))
        return cls(
            cpus=int(host.get("num_cpus") or 0),
            memory=_bytes(host.get("mem_size")),
            disk=_bytes(host.get("disk_size")),
            distribution=str(system.get("distribution") or "").lower(),
            version=str(system.get("version") or ""),
            gpus=int(gpu.get("count") or 0),
            gpu_model=str(gpu.get("model") or ""),
            gpu_memory=_bytes(gpu.get("memory")),
            mig=bool(gpu.get("mig_capable")),
        )

    def __str__(self) -> str:
        parts = []
        if self.gpus:
            parts.append(self._gpus())
        if self.cpus:
            parts.append(f"{self.cpus} CPU{'s' if self.cpus > 1 else ''}")
        if self.memory:
            parts.append(f"{_size(self.memory)} memory")
        if self.disk:
            parts.append(f"{_size(self.disk)} disk")
        if self._system():
            parts.append(self._system())
        return ", ".join(parts) or "anything"

    def _gpus(self) -> str:
        words = f"{self.gpus} NVIDIA GPU{'s' if self.gpus > 1 else ''}"
        traits = [f'of model "{self.gpu_model}"'] if self.gpu_model else []
        traits += [f"with {_size(self.gpu_memory)}"] if self.gpu_memory else []
        traits += ["with MIG"] if self.mig else []
        return " ".join([words, *traits])

    def _system(self) -> str:
        return " ".join(
            part for part in (self.distribution, f"version {self.version}" * bool(self.version)) if part
        )

    def suits(self, gpu: Gpu) -> bool:
        """Tell whether a GPU is what is asked for, as far as is known before the driver is installed.

        Args:
            gpu: the GPU.

        Returns:
            False if something that is known about it does not fit.
        """
        return (
            (gpu.model is None or self.gpu_model.lower() in gpu.model.lower())
            and (gpu.memory is None or gpu.memory >= self.gpu_memory)
            and (gpu.mig_capable is not False or not self.mig)
        )

    def lacks(self, machine: Machine) -> list[str]:
        """List what a machine does not have.

        Args:
            machine: the machine.

        Returns:
            One phrase for each thing, such as "64 GB memory (has 33.5 GB)"; empty if the machine fits.
        """
        found = []
        suitable = sum(self.suits(gpu) for gpu in machine.gpus)
        if suitable < self.gpus:
            models = ", ".join(sorted({gpu.model or "unknown" for gpu in machine.gpus}))
            found.append(
                f"{self._gpus()} (has {f'{len(machine.gpus)}: {models}' if machine.gpus else 'none'})"
            )
        if machine.cpus < self.cpus:
            found.append(f"{self.cpus} CPUs (has {machine.cpus})")
        if machine.memory < self.memory:
            found.append(f"{_size(self.memory)} memory (has {_size(machine.memory)})")
        if machine.disk < self.disk:
            found.append(f"{_size(self.disk)} disk (has {_size(machine.disk)})")
        other_version = self.version and not f"{machine.version}.".startswith(f"{self.version}.")
        if other_version or (self.distribution and self.distribution != machine.distribution):
            found.append(f"{self._system()} (has {machine.distribution} {machine.version})")
        return found


def _refusal(node: str, wish: Wish, pool: Pool, held: Mapping[str, str]) -> str:
    """Why no machine fits: the nearest miss first."""
    misses = []
    for host, machine in pool.machines.items():
        lacking = wish.lacks(machine)
        why = [f"lacks {' and '.join(lacking)}"] if lacking else []
        if machine.address in held:
            why.append(f"is held by deployment {held[machine.address]}")
        if why:
            misses.append((len(lacking) + (machine.address in held), host, " and ".join(why)))
    nearest = [f"{host} {why}" for _count, host, why in sorted(misses)[:2]]
    nearest += [f"{host} cannot be reached ({why})" for host, why in list(pool.silent.items())[:2]]
    sentence = f"no free machine of {pool.path} has {wish} for node {node}"
    return (
        f"{sentence}; nearest: {'; '.join(nearest)}"
        if nearest
        else f"{sentence}; other nodes take those that have"
    )


def match(
    wishes: Mapping[str, Wish], pool: Pool, held: Mapping[str, str], previous: Mapping[str, str]
) -> dict[str, Machine]:
    """Choose a machine for every Compute node.

    A node keeps the machine it has. Otherwise the machine with the least to waste is taken: fewest GPUs, then
    CPUs, then memory, then by name; machines whose GPUs are known before those whose GPUs are not.

    Args:
        wishes: what each node asks for.
        pool: the machines.
        held: deployment that holds each address that is not free.
        previous: host that each node stands on already.

    Returns:
        The machine of each node.

    Raises:
        NoMachine: the machines do not suffice; the sentence names the nearest miss.
    """

    def waste(machine: Machine) -> tuple[bool, int, int, int, str]:
        unknown = any(gpu.model is None for gpu in machine.gpus)
        return unknown, len(machine.gpus), machine.cpus, machine.memory, machine.host

    free = sorted((entry for entry in pool.machines.values() if entry.address not in held), key=waste)
    taken: dict[str, str] = {}
    options: dict[str, list[Machine]] = {}

    def place(node: str, tried: set[str]) -> bool:
        """Kuhn's algorithm: take a machine, moving another node off it if that one finds a new place."""
        for machine in options[node]:
            if machine.host in tried:
                continue
            tried.add(machine.host)
            if machine.host not in taken or place(taken[machine.host], tried):
                taken[machine.host] = node
                return True
        return False

    for node, wish in wishes.items():
        if node not in previous:
            options[node] = [machine for machine in free if not wish.lacks(machine)]
            continue
        host = previous[node]
        if host not in pool.machines:
            why = pool.silent.get(host)
            state = f"cannot be reached ({why})" if why else f"is not in {pool.path}"
            raise NoMachine(f"node {node} stands on {host}, which {state}; repair that, or undeploy")
        lacking = wish.lacks(pool.machines[host])
        if lacking:
            missing = " and ".join(lacking)
            raise NoMachine(
                f"node {node} stands on {host}, which lacks {missing}; ask for less, or undeploy first"
            )
        options[node] = [pool.machines[host]]
    for node, wish in wishes.items():
        if not place(node, set()):
            raise NoMachine(_refusal(node, wish, pool, held))
    return {node: pool.machines[host] for host, node in taken.items()}
