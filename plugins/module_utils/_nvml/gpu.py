# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and their partitions as plain data, in the words of NVML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar, Protocol, TypeVar


class GpuError(Exception):
    """A GPU, its driver or its library cannot do what is asked; the text is one sentence for a user."""


class DriverNotRunning(GpuError):
    """The driver is installed, and does not run or not in the version that is installed."""


@dataclass(frozen=True, order=True)
class Placement:
    """Where a GPU instance lies, in memory units of its GPU; the size is not the number before the "g"."""

    start: int
    size: int

    def overlaps(self, other: Placement) -> bool:
        """Whether two placements share a unit."""
        return self.start < other.start + other.size and other.start < self.start + self.size


@dataclass(frozen=True)
class ComputeProfile:
    """A kind of compute instance that a GPU instance offers; `placements` are in its compute slices."""

    id: int
    slices: int
    placements: tuple[Placement, ...]


@dataclass(frozen=True)
class Profile:
    """A kind of GPU instance that a GPU offers.

    `id` is what create calls take, `slices` counts compute slices, `max_count` says how many fit on an empty
    GPU. `engines` counts the media engines of one instance by kind, `remaining` says how many more the driver
    would create now (None when MIG mode is off). `compute_profiles` are the compute instances that such an
    instance offers; NVML tells them only while the GPU has one, and they are empty otherwise.
    """

    id: int
    name: str
    slices: int
    memory_mib: int
    max_count: int
    placements: tuple[Placement, ...]
    engines: tuple[tuple[str, int], ...] = ()
    remaining: int | None = None
    compute_profiles: tuple[ComputeProfile, ...] = ()


@dataclass(frozen=True)
class Process:
    """A program that uses a GPU; the instance ids are None when it uses the whole GPU.

    Without a `pid` it is somebody who holds it, whether or not a program of theirs uses it at the moment.
    """

    pid: int | None
    name: str
    gpu_instance: int | None
    compute_instance: int | None

    def __str__(self) -> str:
        """The process as messages name it."""
        return self.name if self.pid is None else f"{self.name or 'process'} (PID {self.pid})"


@dataclass(frozen=True)
class ComputeInstance:
    """A compute instance.

    Programs address it by `uuid`, which is empty while no MIG device belongs to it. `start` is the first of
    its `slices` among the compute slices of the GPU instance, `profile_id` what create calls take.
    """

    id: int
    slices: int
    uuid: str
    start: int = 0
    profile_id: int = 0


@dataclass(frozen=True)
class GpuInstance:
    """A GPU instance and what is in it."""

    id: int
    profile: Profile
    placement: Placement
    compute_instances: tuple[ComputeInstance, ...]

    @property
    def whole(self) -> bool:
        """Whether it is one slice for a user: exactly one compute instance, of full width."""
        return [one.slices for one in self.compute_instances] == [self.profile.slices]

    @property
    def widths(self) -> tuple[int, ...]:
        """Compute slices of its compute instances, the widest first."""
        return tuple(sorted((one.slices for one in self.compute_instances), reverse=True))

    def __str__(self) -> str:
        """The instance as messages name it."""
        return f"{self.profile.name} at {self.placement.start}"


@dataclass(frozen=True)
class Gpu:
    """A GPU. `profiles` is empty when it cannot be partitioned."""

    index: int
    minor: int
    uuid: str
    name: str
    serial: str
    pci_address: str
    memory_mib: int
    mig_capable: bool
    mig_enabled: bool
    mig_pending: bool
    profiles: tuple[Profile, ...]
    instances: tuple[GpuInstance, ...]
    processes: tuple[Process, ...]

    def __str__(self) -> str:
        """The GPU as messages name it."""
        return f"GPU {self.index} ({self.name}, {self.pci_address})"

    def users(self, instance: GpuInstance) -> tuple[Process, ...]:
        """Return the programs that use one of the GPU's instances."""
        return tuple(process for process in self.processes if process.gpu_instance == instance.id)

    def capability(self, instance: GpuInstance, compute_instance: ComputeInstance | None = None) -> str:
        """Return the path of the file of a partition below /proc/driver/nvidia/capabilities."""
        part = "" if compute_instance is None else f"/ci{compute_instance.id}"
        return f"gpu{self.minor}/mig/gi{instance.id}{part}/access"

    def used_compute_instances(self, instance: GpuInstance) -> frozenset[int]:
        """Return the ids of the compute instances of an instance that programs use.

        All of them where a program is known to use the instance and not which of them.
        """
        ids = {process.compute_instance for process in self.users(instance)}
        if None in ids:
            return frozenset(one.id for one in instance.compute_instances)
        return frozenset(one for one in ids if one is not None)


@dataclass(frozen=True)
class Unreadable:
    """A GPU that the driver lists and that cannot be read.

    `uuid` and `pci_address` are empty where they are unknown; `reason` is NVML's, in a sentence.
    """

    index: int
    uuid: str
    pci_address: str
    reason: str

    def __str__(self) -> str:
        """The GPU and the reason as messages tell them, in a sentence."""
        known = ", ".join(filter(None, (self.pci_address, self.uuid)))
        return f"GPU {self.index}{f' ({known})' if known else ''} cannot be read: {self.reason}"


def entries(unreadable: Iterable[Unreadable], warn: Callable[[str], object]) -> list[dict[str, Any]]:
    """Return the result `unreadable` of a module, and warn of each GPU."""
    found = list(unreadable)
    for one in found:
        warn(str(one))
    return [asdict(one) for one in found]


@dataclass(frozen=True)
class Survey:
    """All GPUs of a machine: those that can be read, and the others."""

    gpus: tuple[Gpu, ...]
    unreadable: tuple[Unreadable, ...] = ()

    def now(self, gpu: Gpu) -> Gpu:
        """Return a GPU as this survey found it.

        Raises:
            GpuError: when it cannot be read any more.
        """
        for one in self.gpus:
            if one.uuid == gpu.uuid:
                return one
        reasons = " ".join(map(str, self.unreadable)) or "The driver lists it no more."
        raise GpuError(f"{gpu} cannot be read any more: {reasons}{REPAIR}")


# The next step after the reason for which a GPU cannot be read.
REPAIR = " Look into the kernel's log for its cause, and reset the GPU or reboot the machine."


class _Named(Protocol):
    """A dataclass about a GPU, with UUID and PCI address that may be empty."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    @property
    def uuid(self) -> str: ...

    @property
    def pci_address(self) -> str: ...


Named = TypeVar("Named", bound=_Named)


def identified(
    found: Iterable[Named], others: Iterable[_Named], listed: Mapping[str, str]
) -> tuple[Named, ...]:
    """Return GPUs with PCI address and UUID also of those that NVML does not open, if a list tells them.

    If several have neither, it is not known which of them has which index. That does not matter, as none of
    them can be read.

    Args:
        others: the other GPUs of the machine.
        listed: UUIDs of all GPUs of the machine by PCI address, empty where they are unknown.
    """
    gpus = tuple(found)
    known = {one.pci_address for one in gpus} | {one.pci_address for one in others}
    missing = [address for address in listed if address not in known]
    if len(missing) != sum(not one.pci_address for one in gpus):
        return gpus
    addresses = iter(missing)
    return tuple(one if one.pci_address else _placed(one, next(addresses), listed) for one in gpus)


def _placed(gpu: Named, address: str, listed: Mapping[str, str]) -> Named:
    return replace(gpu, pci_address=address, uuid=gpu.uuid or listed[address])


# The selector of all GPUs that can be partitioned.
CAPABLE = "capable"


def select(
    gpus: tuple[Gpu, ...], selectors: list[str], unreadable: tuple[Unreadable, ...] = ()
) -> tuple[Gpu, ...]:
    """Return the GPUs that a list of selectors names, in the order of the GPUs.

    Args:
        selectors: each is `all`, `capable` (those that can be partitioned), an index, a UUID, a PCI address,
            a serial number or a model name.
        unreadable: GPUs of the machine that cannot be read.

    Raises:
        GpuError: when one of them matches no GPU, or one that cannot be read.
    """
    chosen = set()
    count = len(gpus) + len(unreadable)
    for selector in selectors:
        failed = [one for one in unreadable if _matches(one, selector, count)]
        if failed:
            others = f" Or select other GPUs: {_known(gpus)}." if gpus else ""
            raise GpuError(f"{' '.join(map(str, failed))}{REPAIR}{others}")
        matches = {gpu.uuid for gpu in gpus if _matches(gpu, selector, count)}
        if not matches and gpus and selector.strip().lower() == CAPABLE:
            raise GpuError(
                f"No GPU of this machine can be partitioned with MIG, which '{CAPABLE}' asks for: choose"
                f" among {_known(gpus)}."
            )
        if not matches and unreadable:
            choice = f": choose among {_known(gpus)}" if gpus else ""
            raise GpuError(
                f"'{selector}' names no GPU of this machine that can be read{choice}."
                f" {' '.join(map(str, unreadable))}{REPAIR}"
            )
        if not matches:
            raise GpuError(
                f"'{selector}' names no GPU of this machine: choose among {_known(gpus)}."
                if gpus
                else "The NVIDIA driver manages no GPU on this machine: check the hardware and the driver."
            )
        chosen |= matches
    return tuple(gpu for gpu in gpus if gpu.uuid in chosen)


def _known(gpus: tuple[Gpu, ...]) -> str:
    return "; ".join(f"{gpu}, UUID {gpu.uuid}, serial number {gpu.serial or 'unknown'}" for gpu in gpus)


def _matches(gpu: Gpu | Unreadable, selector: str, count: int) -> bool:
    word = selector.strip().lower()
    # A number below the number of GPUs is an index; serial numbers are longer.
    if word.isdecimal() and int(word) < count:
        return gpu.index == int(word)
    names = {"all", gpu.uuid.lower(), _short_pci(gpu.pci_address)}
    if isinstance(gpu, Unreadable) or gpu.mig_capable:
        names |= {CAPABLE}  # a GPU that cannot be read may be one
    if isinstance(gpu, Gpu):
        names |= {gpu.name.lower(), gpu.serial}
    return bool(word) and (word in names or _short_pci(word) in names)


def _short_pci(address: str) -> str:
    """Return a PCI address with a domain of four digits: NVML writes eight, lspci four or none."""
    match = re.fullmatch(
        r"(?:(?P<domain>[0-9a-f]{4,8}):)?(?P<rest>[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])", address.lower()
    )
    return f"{int(match['domain'] or '0', 16):04x}:{match['rest']}" if match else address.lower()


def is_bus_id(bus_id: bytes | str) -> bool:
    """Whether it has the form of an address of NVML."""
    return bool(re.fullmatch(r"[0-9A-Fa-f]{4,8}(:[0-9A-Fa-f]{2}){2}\.[0-7]", _text(bus_id)))


def pci_address(bus_id: bytes | str) -> str:
    """Return an address of NVML as lspci -D writes it; NVML's has eight digits of domain."""
    domain, _colon, rest = _text(bus_id).lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(bus_id: bytes | str) -> str:
    return bus_id.decode() if isinstance(bus_id, bytes) else bus_id


def compute_name(profile: Profile, width: int) -> str:
    """Return the name of a compute instance of some compute slices (MIG user guide, "MIG Device Names")."""
    return profile.name if width == profile.slices else f"{width}c.{profile.name}"


def slices(gpus: tuple[Gpu, ...]) -> list[dict[str, str]]:
    """Return UUID, profile and GPU of each partition that programs can use, in the order of places."""
    return [
        {
            "uuid": compute_instance.uuid,
            "profile": compute_name(instance.profile, compute_instance.slices),
            "gpu": gpu.uuid,
        }
        for gpu in gpus
        for instance in sorted(gpu.instances, key=lambda one: one.placement)
        for compute_instance in sorted(instance.compute_instances, key=lambda one: one.start)
        if compute_instance.uuid
    ]
