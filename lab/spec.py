"""Request for a bench: hosts, by name, with what each must have. Pure."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import yaml

from lab.errors import LabError

SUITES = ("bookworm", "trixie")
CGROUPS = ("auto", "v1", "v2")
KINDS = ("nspawn", "qemu")
LAYERS = ("gpu", "hub", "notebook", "rdma", "zookeeper")
NICS = (1, 2)
# An RFC 1123 label that still fits into a host name of Linux (64 bytes) with the bench's prefix in front.
HOST_NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
BENCH_NAME = re.compile(r"[a-z0-9]([a-z0-9_.-]{0,62}[a-z0-9])?")


@dataclass(frozen=True)
class HostSpec:
    """One host.

    :param name: host name, a lower-case RFC 1123 label.
    :param suite: Debian release, one of ``SUITES``.
    :param gpus: simulated GPUs, each "model:count".
    :param cgroup: control group version the host's systemd sees; "auto" takes the one that enforces limits.
    :param kind: "nspawn" (a container with a systemd of its own) or "qemu" (a virtual machine).
    :param iam: whether the bench's identity provider runs on this host.
    :param layers: what is installed on it already, of ``LAYERS``.
    :param nics: network interfaces. The second one of a virtual machine is on the same network as the first,
        without an address; that of a container is on a second network, which reaches other containers alone.
    """

    name: str
    suite: str = "bookworm"
    gpus: tuple[str, ...] = ()
    cgroup: str = "auto"
    kind: str = "nspawn"
    iam: bool = False
    layers: tuple[str, ...] = ()
    nics: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not HOST_NAME.fullmatch(self.name):
            raise LabError(f"host name {self.name!r} must be 1 to 40 lower-case letters, digits and hyphens")
        for field, allowed in (("suite", SUITES), ("cgroup", CGROUPS), ("kind", KINDS)):
            value = getattr(self, field)
            if value not in allowed:
                raise LabError(f"host {self.name}: {field} is {value!r}, must be one of {', '.join(allowed)}")
        if not isinstance(self.gpus, list | tuple) or not all(isinstance(gpu, str) for gpu in self.gpus):
            raise LabError(
                f"host {self.name}: gpus must be a list such as ['a100-80gb:1'], not {self.gpus!r}"
            )
        if not isinstance(self.iam, bool):
            raise LabError(f"host {self.name}: iam must be true or false, not {self.iam!r}")
        if not isinstance(self.layers, list | tuple) or not set(self.layers) <= set(LAYERS):
            raise LabError(
                f"host {self.name}: layers must be a list of {', '.join(LAYERS)}, not {self.layers!r}"
            )
        object.__setattr__(self, "gpus", tuple(self.gpus))
        # Each is installed over those before it, so the same ones in another order would be made anew.
        object.__setattr__(self, "layers", tuple(sorted(set(self.layers))))
        if self.nics not in NICS:
            raise LabError(
                f"host {self.name}: nics is {self.nics!r}, must be one of {', '.join(map(str, NICS))}"
            )
        if self.kind == "qemu" and self.gpus:
            raise LabError(
                f"host {self.name}: simulated GPUs need kind nspawn, a virtual machine has its own /proc"
            )
        if self.kind == "qemu" and self.iam:
            raise LabError(f"host {self.name}: the identity provider needs kind nspawn")
        if self.kind == "qemu" and self.cgroup == "v1":
            raise LabError(f"host {self.name}: a virtual machine boots with cgroup v2; leave cgroup at auto")

    def as_dict(self) -> dict[str, Any]:
        """The host as plain data, as a specification file has it."""
        return {**asdict(self), "gpus": list(self.gpus), "layers": list(self.layers)}


def host_from(data: object) -> HostSpec:
    """A host from the plain data of a specification.

    :raises LabError: for anything but a mapping with known keys and allowed values.
    """
    if not isinstance(data, Mapping):
        raise LabError(f"a host must be a mapping with at least a name, not {data!r}")
    known = [field.name for field in fields(HostSpec)]
    unknown = sorted(set(data) - set(known), key=str)
    if unknown:
        raise LabError(
            f"host {data.get('name', '?')}: unknown key {unknown[0]!r}; known are {', '.join(known)}"
        )
    if "name" not in data:
        raise LabError(f"a host has no name: {dict(data)!r}")
    return HostSpec(**data)


def parse(text: str) -> list[HostSpec]:
    """The hosts of a specification in YAML or JSON: ``{hosts: [{name: ...}, ...]}``.

    :raises LabError: for text that is no specification, has no host or has the same host twice.
    """
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise LabError(f"the specification is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(data, Mapping) or set(data) != {"hosts"} or not isinstance(data["hosts"], list):
        raise LabError("the specification must be a mapping with one key, hosts, that holds a list")
    return unique([host_from(host) for host in data["hosts"]])


def unique(hosts: list[HostSpec]) -> list[HostSpec]:
    """:raises LabError: if there is no host, two of the same name, or two identity providers."""
    if not hosts:
        raise LabError("no host was asked for")
    names = [host.name for host in hosts]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise LabError(f"host {twice} is asked for twice")
    if sum(host.iam for host in hosts) > 1:
        raise LabError("a bench has at most one identity provider (iam: true)")
    return hosts


def conflict(current: HostSpec, wanted: HostSpec) -> str:
    """Differences between a host and its request, in words; "" if there are none."""
    differing = [
        f"{field.name} {getattr(current, field.name)!r} -> {getattr(wanted, field.name)!r}"
        for field in fields(HostSpec)
        if getattr(current, field.name) != getattr(wanted, field.name)
    ]
    return ", ".join(differing)
