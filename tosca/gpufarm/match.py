# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds a machine of the pool for every Compute node of a template."""

from __future__ import annotations

import bisect
import fnmatch
import functools
import itertools
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from gpufarm.assignment import assign, shortage
from gpufarm.errors import BadInput, NoMachine
from gpufarm.functions import Scope, Unknown
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
class MachineRequest:
    """Requirements of a Compute node; zero and empty mean none.

    Attributes:
        cpus: number of CPUs.
        memory: in bytes.
        disk: size of the root file system in bytes.
        distribution: ID of os-release.
        version: VERSION_ID of os-release, or its beginning: "24" fits 24.04.
        system: kind of operating system; machines of a pool have "linux".
        architecture: of the processors, such as "x86_64".
        gpus: number of GPUs.
        gpu_model: part of the name of each GPU, in any case.
        gpu_memory: of each GPU, in bytes.
        mig: whether each GPU has to support Multi-Instance GPU.
        among: names of machines that may be taken, with ``*`` for any letters; empty for all.
    """

    cpus: int = 0
    memory: int = 0
    disk: int = 0
    distribution: str = ""
    version: str = ""
    system: str = ""
    architecture: str = ""
    gpus: int = 0
    gpu_model: str = ""
    gpu_memory: int = 0
    mig: bool = False
    among: tuple[str, ...] = ()

    @classmethod
    def of(cls, node: Node, scope: Scope) -> MachineRequest:
        """Read the capabilities of a node.

        Args:
            node: a Compute node.
            scope: for its expressions.

        Returns:
            Its requirements.
        """
        try:
            host, system, gpu = (
                scope.evaluate(node.capabilities.get(name), node.name) or {} for name in ("host", "os", "gpu")
            )
            return cls._asked(host, system, gpu, tuple(scope.evaluate(node.among, node.name) or ()))
        except Unknown as error:
            raise BadInput(
                f"{scope.topology.path}: what node {node.name} asks of its machine needs {error.attribute} "
                f"of {error.node}, which is known only after the machines are chosen; use a property"
            ) from error
        except (TypeError, ValueError, OverflowError) as error:
            raise BadInput(
                f"{scope.topology.path}: what node {node.name} asks of its machine is wrong: {error}"
            ) from error

    @classmethod
    def _asked(
        cls,
        host: Mapping[str, Any],
        system: Mapping[str, Any],
        gpu: Mapping[str, Any],
        among: tuple[str, ...],
    ) -> MachineRequest:
        return cls(
            cpus=int(host.get("num_cpus") or 0),
            memory=_bytes(host.get("mem_size")),
            disk=_bytes(host.get("disk_size")),
            distribution=str(system.get("distribution") or "").lower(),
            version=str(system.get("version") or system.get("release") or ""),
            system=str(system.get("type") or "").lower(),
            architecture=str(system.get("architecture") or "").lower(),
            # INDIGO's machines ask for GPUs in the capability host
            gpus=int(gpu.get("count") or host.get("num_gpus") or 0),
            gpu_model=str(gpu.get("model") or (host.get("num_gpus") and host.get("gpu_model")) or ""),
            gpu_memory=_bytes(gpu.get("memory")),
            mig=bool(gpu.get("mig_capable")),
            among=among,
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
        parts += [part for part in (self.system, self.architecture) if part]
        if self.among:
            parts.append(f"a name like {' or '.join(self.among)}")
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

    def admits(self, host: str) -> bool:
        """Tell whether a machine may be taken at all.

        Args:
            host: its name.

        Returns:
            False if only others may.
        """
        return not self.among or any(fnmatch.fnmatchcase(host, pattern) for pattern in self.among)

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
        if self.system not in ("", "linux"):
            found.append(f"{self.system} (has linux)")
        if machine.architecture and self.architecture not in ("", machine.architecture):
            found.append(f"{self.architecture} (has {machine.architecture})")
        if not self.admits(machine.host):
            found.append(f"a name like {' or '.join(self.among)}")
        return found


def _at_most(amounts: Sequence[int]) -> Callable[[int], int]:
    """A function that returns the requests that an amount satisfies."""
    order = sorted(range(len(amounts)), key=amounts.__getitem__)
    steps = [amounts[index] for index in order]
    sets = list(itertools.accumulate((1 << index for index in order), operator.or_, initial=0))
    return lambda amount: sets[bisect.bisect_right(steps, amount)]


def _suits(requests: Sequence[MachineRequest], machines: Sequence[Machine]) -> list[int]:
    """The set of requests that each machine fulfils: `MachineRequest.lacks` of every pair, but faster."""
    cpus = _at_most([request.cpus for request in requests])
    memory = _at_most([request.memory for request in requests])
    disk = _at_most([request.disk for request in requests])
    kinds: dict[MachineRequest, int] = {}
    places: dict[MachineRequest, int] = {}
    for index, request in enumerate(requests):
        rest = replace(request, cpus=0, memory=0, disk=0, among=())
        kinds[rest] = kinds.get(rest, 0) | 1 << index
        place = MachineRequest(among=request.among)
        places[place] = places.get(place, 0) | 1 << index

    @functools.cache
    def others(gpus: tuple[Gpu, ...], distribution: str, version: str, architecture: str) -> int:
        plain = Machine("", "", 0, 0, 0, distribution, version, gpus, architecture)
        return functools.reduce(
            operator.or_, (own for kind, own in kinds.items() if not kind.lacks(plain)), 0
        )

    def admitted(host: str) -> int:
        return functools.reduce(operator.or_, (own for place, own in places.items() if place.admits(host)), 0)

    return [
        cpus(entry.cpus)
        & memory(entry.memory)
        & disk(entry.disk)
        & others(entry.gpus, entry.distribution, entry.version, entry.architecture)
        & admitted(entry.host)
        for entry in machines
    ]


def _nearest(request: MachineRequest, pool: Pool, held: Mapping[str, str]) -> str:
    """The machines that come nearest to a request, and what each lacks; empty if there are none."""
    misses = []
    for host, machine in pool.machines.items():
        lacking = request.lacks(machine)
        why = [f"lacks {' and '.join(lacking)}"] if lacking else []
        if machine.address in held:
            why.append(f"is held by deployment {held[machine.address]}")
        if why:
            misses.append((len(lacking) + (machine.address in held), bool(lacking), host, " and ".join(why)))
    nearest = [f"{host} {why}" for _count, _lacks, host, why in sorted(misses)[:2]]
    nearest += [f"{host} cannot be reached ({why})" for host, why in list(pool.silent.items())[:2]]
    return f"; nearest: {'; '.join(nearest)}" if nearest else ""


def _some(names: Iterable[str]) -> str:
    known = list(names)
    return ", ".join(known[:5]) + (f" and {len(known) - 5} more" if len(known) > 5 else "")


def _refusal(
    nodes: list[str], request: MachineRequest, fitting: list[str], pool: Pool, held: Mapping[str, str]
) -> str:
    """Why there are not enough machines: none fits, or too few for all who need one of them."""
    if not fitting:
        sentence = f"no free machine of {pool.path} has {request} for node {nodes[0]}"
    else:
        sentence = (
            f"the nodes {_some(nodes)} need {len(nodes)} machines, but only {len(fitting)} of {pool.path} "
            f"{'fit and are' if len(fitting) > 1 else 'fits and is'} free: {_some(fitting)}"
        )
    return sentence + _nearest(request, pool, held)


def _standing(node: str, request: MachineRequest, host: str, pool: Pool) -> Machine:
    """The machine that a node has already, if it still has what is asked for."""
    if host not in pool.machines:
        why = pool.silent.get(host)
        state = f"cannot be reached ({why})" if why else f"is not in {pool.path}"
        raise NoMachine(f"node {node} stands on {host}, which {state}; repair that, or undeploy")
    lacking = " and ".join(request.lacks(pool.machines[host]))
    if lacking:
        raise NoMachine(
            f"node {node} stands on {host}, which lacks {lacking}; ask for less, or undeploy first"
        )
    return pool.machines[host]


def match(
    requests: Mapping[str, MachineRequest], pool: Pool, held: Mapping[str, str], previous: Mapping[str, str]
) -> dict[str, Machine]:
    """Choose a machine for every Compute node.

    A node keeps the machine it has. For the others the machines with the least to waste are taken: fewest
    GPUs, then CPUs, then memory, then by name; machines whose GPUs are known before those whose GPUs are not.

    Args:
        requests: what each node asks for.
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

    found: dict[str, Machine] = {}
    problems = []
    for node, request in requests.items():
        if node in previous:
            try:
                found[node] = _standing(node, request, previous[node], pool)
            except NoMachine as error:
                problems.append(error.message)
    if problems:
        raise NoMachine("\n".join(problems))
    kept = {machine.host for machine in found.values()}
    free = sorted(
        (entry for entry in pool.machines.values() if entry.address not in held and entry.host not in kept),
        key=waste,
    )
    new = [node for node in requests if node not in previous]
    suits = _suits([requests[node] for node in new], free)
    chosen = assign(suits, len(new))
    for index, node in enumerate(new):
        if index not in chosen:
            takers, machines = shortage(suits, chosen, index)
            nodes = [new[taker] for taker in sorted(takers)]
            fitting = [free[machine].host for machine in sorted(machines)]
            raise NoMachine(_refusal(nodes, requests[node], fitting, pool, held))
        found[node] = free[chosen[index]]
    return {node: found[node] for node in requests}
