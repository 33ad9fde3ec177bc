# SPDX-License-Identifier: GPL-3.0-or-later
"""Rights and limits of a notebook's container, for ``create_host_config`` of the Docker SDK. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

from docker.types import DeviceRequest, LogConfig, Mount

from .mounts import Bind


class GpuAccess(Enum):
    """How containers of this engine get GPUs."""

    CDI = "cdi"  # names of the Container Device Interface, which the engine resolves itself
    RUNTIME = "nvidia"  # NVIDIA's container runtime, told by an environment variable


CDI_KIND = "nvidia.com/gpu="  # what CDI's names of NVIDIA's devices begin with


class NoGpuAccessError(Exception):
    """Containers of this engine get no GPUs; the text is for the administrator."""


def gpu_access(info: Mapping[str, Any]) -> GpuAccess:
    """Return how containers get GPUs.

    Args:
        info: what the engine says about itself (Engine API, SystemInfo).

    Raises:
        NoGpuAccessError: they get none.
    """
    if info.get("CDISpecDirs"):  # empty where CDI is switched off
        return GpuAccess.CDI
    if GpuAccess.RUNTIME.value in info.get("Runtimes", {}):
        return GpuAccess.RUNTIME
    raise NoGpuAccessError(
        f"Docker {info.get('ServerVersion', '')} knows neither CDI (Docker 25 and later, role "
        "nvidia_container) nor the runtime nvidia of NVIDIA's container toolkit"
    )


@dataclass(frozen=True)
class Plan:
    """Settings of one notebook's container.

    Attributes:
        uid: user id of its processes.
        gid: group id of its processes.
        groups: ids of the other groups that they belong to.
        home: the user's home; it has the same path inside.
        memory: bytes of memory, with its ``/tmp`` and its shared memory.
        cores: CPU cores.
        processes: processes and threads.
        temporary: size of its ``/tmp``, and of its ``/var/tmp``, such as ``1G``.
        network: the network it is in.
        binds: more folders of the machine.
        hidden: paths inside of them that must not be seen.
        slices: UUIDs of its GPU slices.
        access: how it gets them; None for without any.
        image: repository of the image, ``@``, and its digest.
    """

    uid: int
    gid: int
    groups: Sequence[int]
    home: str
    memory: int
    cores: float
    processes: int
    temporary: str
    network: str
    binds: Sequence[Bind] = ()
    hidden: Sequence[str] = ()
    slices: Sequence[str] = ()
    access: GpuAccess | None = None
    image: str = ""


# The role puts the package gpufarm-environment there. It is mounted where no image or site has a folder.
LAYERS = Bind("/opt/gpufarm/layers", "/run/gpufarm/layers")
CPU_PERIOD = 100_000  # microseconds; Docker's default


def user_of(plan: Plan) -> str:
    """Return the user and group that the container's processes run as."""
    return f"{plan.uid}:{plan.gid}"


def environment_of(plan: Plan) -> dict[str, str]:
    """Return the variables through which the slices are given, and those that keep others away.

    With the last two, Jupyter has the kernel that adds packages of the user to those of the image.
    """
    given = ",".join(plan.slices)
    # "void" tells NVIDIA's runtime, should it be the default one, to do nothing.
    by_runtime = given if plan.access is GpuAccess.RUNTIME else "void"
    return {
        "CUDA_VISIBLE_DEVICES": given,
        "NVIDIA_VISIBLE_DEVICES": by_runtime or "void",
        "NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
        "GPUFARM_IMAGE": plan.image,
        "JUPYTER_PATH": f"{LAYERS.target}/gpufarm_environment/image",
    }


def host_config(plan: Plan) -> dict[str, Any]:
    """Return the arguments of ``create_host_config``.

    The container writes to the user's home and to memory, and nowhere else: what an image holds stays as it
    is, and no notebook fills the machine's disk.
    """
    temporary = f"rw,nosuid,nodev,exec,mode=1777,size={plan.temporary}"
    config: dict[str, Any] = {
        "network_mode": plan.network,
        "mem_limit": plan.memory,
        "memswap_limit": plan.memory,  # memory and swap together, so no swap
        "shm_size": plan.memory,  # Docker's 64 MiB are too little for data that several processes load
        "cpu_period": CPU_PERIOD,
        "cpu_quota": int(plan.cores * CPU_PERIOD),
        "pids_limit": plan.processes,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "read_only": True,
        "tmpfs": {"/tmp": temporary, "/var/tmp": temporary},  # noqa: S108 - the container's own
        "init": True,
        "group_add": [str(group) for group in plan.groups],
        "log_config": LogConfig(type="local", config={"max-size": "10m", "max-file": "2"}),
        "mounts": [*map(_mount, _with_home(plan)), *map(_nothing, plan.hidden)],
    }
    if plan.slices and plan.access is GpuAccess.CDI:
        names = [f"{CDI_KIND}{uuid}" for uuid in plan.slices]
        config["device_requests"] = [DeviceRequest(driver="cdi", device_ids=names)]
    elif plan.slices and plan.access is GpuAccess.RUNTIME:
        config["runtime"] = GpuAccess.RUNTIME.value
    return config


def given(inspected: Mapping[str, Any]) -> frozenset[str]:
    """Return the UUIDs of the slices that a container was created with.

    Args:
        inspected: what the engine says of it (Engine API, ContainerInspect).
    """
    host = inspected["HostConfig"]
    names = [name for request in host.get("DeviceRequests") or () for name in request["DeviceIDs"] or ()]
    if host.get("Runtime") == GpuAccess.RUNTIME.value:
        variables = dict(entry.partition("=")[::2] for entry in inspected["Config"]["Env"])
        names += variables.get("NVIDIA_VISIBLE_DEVICES", "").split(",")
    return frozenset(name.removeprefix(CDI_KIND) for name in names) - {"", "void"}


def _with_home(plan: Plan) -> Iterable[Bind]:
    return [Bind(plan.home, plan.home, read_only=False), LAYERS, *plan.binds]


def _mount(bind: Bind) -> Mount:
    # rslave: what is mounted on the machine later is seen; the other way nothing is.
    return Mount(bind.target, bind.source, type="bind", read_only=bind.read_only, propagation="rslave")


def _nothing(path: str) -> Mount:
    return Mount(path, None, type="tmpfs", read_only=True)
