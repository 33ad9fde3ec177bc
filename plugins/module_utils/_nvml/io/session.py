# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The NVIDIA Management Library (NVML), as far as partitions need it, in terms of the data of `_nvml.gpu`."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib import metadata
from typing import Any

try:
    import pynvml
except ImportError:
    pynvml = None

from ..gpu import (
    REPAIR,
    ComputeInstance,
    ComputeProfile,
    DriverNotRunning,
    Gpu,
    GpuError,
    GpuInstance,
    Placement,
    Process,
    Profile,
    Survey,
    Unreadable,
    identified,
    pci_address,
)
from . import kernel_gpus
from .guarded import Calls
from .handle import by_uuid

LIBRARY = "libnvidia-ml.so.1"
# With the binding; installed by the entry point gpu_python of the role _common.
GPU_PYTHON = "/opt/gpufarm/gpu/bin/python"
# Profile indexes of nvml.h 13.3 are 0..17; the binding's own constants are fewer in older releases, and a GPU
# that lacks a profile answers NOT_SUPPORTED or INVALID_ARGUMENT.
PROFILE_INDEXES = range(18)
COMPUTE_PROFILE_INDEXES = range(9)
# Older releases return bytes instead of text, or lack explicit placements.
OLDEST_BINDING = (11, 525)
ENGINES = ("decoderCount", "encoderCount", "jpegCount", "ofaCount")
# Seconds; a reset takes some, and more of a GPU with NVLinks.
RESET_TIMEOUT = 300.0
# nvmlProcessInfo_t: instance ids of a process that uses the whole GPU.
NO_INSTANCE = 0xFFFFFFFF


@dataclass(frozen=True)
class Driver:
    """Versions: of the driver, of NVML, and of the newest CUDA that the driver runs."""

    version: str
    nvml_version: str
    cuda_version: str


@dataclass(frozen=True)
class MigDevice:
    """A slice as NVML tells it: its index on its GPU, the ids of its instances, its UUID, and its handle."""

    index: int
    gpu_instance: int
    compute_instance: int
    uuid: str
    handle: Any


class Nvml:
    """A session with NVML. The methods raise GpuError with one sentence for a user.

    The profiles of a GPU do not change while the driver is loaded, so they are read once.
    """

    def __init__(self, calls: Calls | None = None) -> None:
        self._calls = calls or Calls()
        # The GPU that is asked, None when the question is about no GPU, and the indexes of GPUs by UUID.
        self._index: int | None = None
        self._indexes: dict[str, int] = {}
        self._offers: dict[str, tuple[Profile, ...]] = {}
        self._compute_offers: dict[tuple[str, int], tuple[ComputeProfile, ...]] = {}

    def driver(self) -> Driver:
        """Return the versions of the driver."""
        self._index = None
        cuda = self._ask("the CUDA version", pynvml.nvmlSystemGetCudaDriverVersion)
        return Driver(
            version=self._ask("the driver version", pynvml.nvmlSystemGetDriverVersion),
            nvml_version=self._ask("the NVML version", pynvml.nvmlSystemGetNVMLVersion),
            cuda_version=f"{cuda // 1000}.{cuda % 1000 // 10}",
        )

    def survey(self) -> Survey:
        """Return all GPUs with their partitions and the programs that use them, each read for itself.

        Raises:
            GpuError: when none of them can be read, or NVML does not tell their number.
        """
        gpus: list[Gpu] = []
        failed: list[Unreadable] = []
        self._index = None
        for index in range(self._ask("the number of GPUs", pynvml.nvmlDeviceGetCount)):
            if index in self._calls.hung:
                failed.append(self._calls.hung[index])
                continue
            self._index = index
            try:
                gpus.append(self._gpu(index))
            except GpuError as error:
                failed.append(Unreadable(index, *self._identity(index), reason=str(error)))
        unreadable = identified(failed, gpus, kernel_gpus.listed()) if failed else ()
        if unreadable and not gpus:
            raise GpuError(f"{' '.join(map(str, unreadable))}{REPAIR}")
        return Survey(tuple(gpus), unreadable)

    def gpus(self) -> tuple[Gpu, ...]:
        """Return the GPUs that can be read."""
        return self.survey().gpus

    def slice_indexes(self, gpus: Iterable[Gpu]) -> dict[str, int]:
        """Return the index of each slice on its GPU, by UUID; it has gaps where slices were destroyed."""
        return {
            device.uuid: device.index
            for gpu in gpus
            if gpu.mig_enabled
            for device in self._mig_devices(self._handle(gpu.uuid))
        }

    def set_mig_mode(self, uuid: str, enabled: bool) -> str:
        """Switch the MIG mode of a GPU.

        Returns:
            the activation status: `applied`, `in use`, `reset required`, or NVML's words for any other.
        """
        status = self._ask(
            f"to switch MIG mode of {uuid}", pynvml.nvmlDeviceSetMigMode, self._handle(uuid), int(enabled)
        )
        names = {
            pynvml.NVML_SUCCESS: "applied",
            pynvml.NVML_ERROR_IN_USE: "in use",
            pynvml.NVML_ERROR_RESET_REQUIRED: "reset required",
        }
        return names.get(status) or str(pynvml.NVMLError(status))

    def create_gpu_instance(self, uuid: str, profile: Profile, placement: Placement) -> GpuInstance:
        """Create a GPU instance at a place, still without compute instances."""
        instance = self._ask(
            f"to create {profile.name} at {placement.start} on {uuid}",
            pynvml.nvmlDeviceCreateGpuInstanceWithPlacement,
            self._handle(uuid),
            profile.id,
            ctypes.byref(pynvml.c_nvmlGpuInstancePlacement_t(placement.start, placement.size)),
        )
        number = self._ask("a GPU instance", pynvml.nvmlGpuInstanceGetInfo, instance).id
        return GpuInstance(number, profile, placement, ())

    def destroy_gpu_instance(self, uuid: str, instance: GpuInstance) -> None:
        """Destroy a GPU instance, which must be without compute instances."""
        self._ask(
            f"to destroy {instance} on {uuid}",
            pynvml.nvmlGpuInstanceDestroy,
            self._instance_handle(uuid, instance),
        )

    def create_compute_instance(
        self, uuid: str, instance: GpuInstance, profile: ComputeProfile, placement: Placement
    ) -> None:
        """Create a compute instance at a place in a GPU instance."""
        self._ask(
            f"to create the compute instance {profile.slices}c at {placement.start} in {instance} on {uuid}",
            pynvml.nvmlGpuInstanceCreateComputeInstanceWithPlacement,
            self._instance_handle(uuid, instance),
            profile.id,
            ctypes.byref(pynvml.c_nvmlComputeInstancePlacement_t(placement.start, placement.size)),
        )

    def destroy_compute_instance(self, uuid: str, instance: GpuInstance, compute: ComputeInstance) -> None:
        """Destroy a compute instance in a GPU instance."""
        what = f"the compute instance {compute.slices}c at {compute.start} in {instance} on {uuid}"
        handle = self._ask(
            what,
            pynvml.nvmlGpuInstanceGetComputeInstanceById,
            self._instance_handle(uuid, instance),
            compute.id,
        )
        self._ask(f"to destroy {what}", pynvml.nvmlComputeInstanceDestroy, handle)

    def compute_profiles(self, uuid: str, instance: GpuInstance) -> tuple[ComputeProfile, ...]:
        """Return the compute instances of which a GPU instance can hold more now.

        A driver may list several profiles of one width, not all of which an instance can hold.
        """
        handle = self._instance_handle(uuid, instance)
        return tuple(
            one
            for one in self._compute_profiles(handle, uuid, instance.profile)
            if self._ask(
                "the remaining capacity",
                pynvml.nvmlGpuInstanceGetComputeInstanceRemainingCapacity,
                handle,
                one.id,
            )
        )

    @contextlib.contextmanager
    def released(self) -> Iterator[None]:
        """Let go of the GPUs for a while: a GPU is not reset while a program holds it."""
        self._ask("to let go of the GPUs", pynvml.nvmlShutdown)
        self.report("nvidia-smi --gpu-reset", RESET_TIMEOUT + 60)
        try:
            yield
        finally:
            self._ask("to start again", pynvml.nvmlInit)

    def report(self, call: str, timeout: float | None = None) -> None:
        """Tell the parent process what comes next, and the seconds that it may take if not the usual ones."""
        self._calls.report(call, self._index, timeout)

    def _identity(self, index: int) -> tuple[str, str]:
        """Return UUID and PCI address of a GPU that cannot be read, empty where NVML does not tell them."""
        uuid = address = ""
        with contextlib.suppress(pynvml.NVMLError):
            self.report("nvmlDeviceGetHandleByIndex")
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            address = pci_address(pynvml.nvmlDeviceGetPciInfo(handle).busId)
            uuid = pynvml.nvmlDeviceGetUUID(handle)
        return uuid, address

    def _gpu(self, index: int) -> Gpu:
        handle = self._ask(f"GPU {index}", pynvml.nvmlDeviceGetHandleByIndex, index)

        def ask(call: Callable[..., Any], *arguments: Any) -> Any:
            return self._ask(f"{call.__name__} of GPU {index}", call, handle, *arguments)

        uuid = ask(pynvml.nvmlDeviceGetUUID)
        address = pci_address(ask(pynvml.nvmlDeviceGetPciInfo).busId)
        self._indexes[uuid] = index
        self._calls.identify(index, uuid, address)
        mode = self._optional(pynvml.nvmlDeviceGetMigMode, handle)
        current, pending = mode or (0, 0)
        offered = tuple(self._profiles(handle, uuid, bool(current))) if mode else ()
        slices = tuple(self._mig_devices(handle)) if current else ()
        uuids = {(one.gpu_instance, one.compute_instance): one.uuid for one in slices}
        memory = ask(pynvml.nvmlDeviceGetMemoryInfo)
        return Gpu(
            index=index,
            minor=ask(pynvml.nvmlDeviceGetMinorNumber),
            uuid=uuid,
            name=ask(pynvml.nvmlDeviceGetName),
            serial=self._optional(pynvml.nvmlDeviceGetSerial, handle) or "",
            pci_address=address,
            memory_mib=memory.total // 2**20,
            mig_capable=mode is not None,
            mig_enabled=bool(current),
            mig_pending=bool(pending),
            profiles=tuple(profile for profile, _instances in offered),
            instances=tuple(
                self._instance(one, profile, uuids) for profile, instances in offered for one in instances
            ),
            processes=tuple(self._processes(handle, slices)),
        )

    def _profiles(self, handle: Any, uuid: str, enabled: bool) -> Iterator[tuple[Profile, list[Any]]]:
        """Yield each profile that a GPU offers, with handles of its instances."""
        if uuid not in self._offers:
            self._offers[uuid] = tuple(self._offered(handle))
        for profile in self._offers[uuid]:
            if not enabled:
                yield profile, []
                continue
            remaining = self._ask(
                "the remaining capacity",
                pynvml.nvmlDeviceGetGpuInstanceRemainingCapacity,
                handle,
                profile.id,
            )
            instances = self._fill(
                pynvml.nvmlDeviceGetGpuInstances,
                pynvml.c_nvmlGpuInstance_t,
                profile.max_count,
                handle,
                profile.id,
            )
            compute_profiles = self._compute_profiles(instances[0], uuid, profile) if instances else ()
            yield replace(profile, remaining=remaining, compute_profiles=compute_profiles), instances

    def _offered(self, handle: Any) -> Iterator[Profile]:
        for index in PROFILE_INDEXES:
            info = self._optional(pynvml.nvmlDeviceGetGpuInstanceProfileInfo, handle, index)
            if info is None:
                continue
            placements = self._list(
                pynvml.nvmlDeviceGetGpuInstancePossiblePlacements,
                pynvml.c_nvmlGpuInstancePlacement_t,
                handle,
                info.id,
            )
            yield Profile(
                id=info.id,
                name=_text(info.name).replace("MIG ", ""),
                slices=info.sliceCount,
                memory_mib=info.memorySizeMB,
                max_count=info.instanceCount,
                placements=tuple(sorted(Placement(one.start, one.size) for one in placements)),
                engines=tuple((kind, getattr(info, kind)) for kind in ENGINES),
            )

    def _instance(self, handle: Any, profile: Profile, uuids: dict[tuple[int, int], str]) -> GpuInstance:
        info = self._ask("a GPU instance", pynvml.nvmlGpuInstanceGetInfo, handle)
        return GpuInstance(
            id=info.id,
            profile=profile,
            placement=Placement(info.placement.start, info.placement.size),
            compute_instances=tuple(self._compute_instances(handle, info.id, profile, uuids)),
        )

    def _compute_instances(
        self, handle: Any, gpu_instance: int, profile: Profile, uuids: dict[tuple[int, int], str]
    ) -> Iterator[ComputeInstance]:
        for compute_profile in profile.compute_profiles:
            for one in self._fill(
                pynvml.nvmlGpuInstanceGetComputeInstances,
                pynvml.c_nvmlComputeInstance_t,
                len(compute_profile.placements),
                handle,
                compute_profile.id,
            ):
                info = self._ask("a compute instance", pynvml.nvmlComputeInstanceGetInfo, one)
                yield ComputeInstance(
                    id=info.id,
                    slices=compute_profile.slices,
                    uuid=uuids.get((gpu_instance, info.id), ""),
                    start=info.placement.start,
                    profile_id=compute_profile.id,
                )

    def _compute_profiles(self, instance: Any, uuid: str, profile: Profile) -> tuple[ComputeProfile, ...]:
        key = uuid, profile.id
        if key not in self._compute_offers:
            self._compute_offers[key] = tuple(self._compute_offered(instance))
        return self._compute_offers[key]

    def _compute_offered(self, instance: Any) -> Iterator[ComputeProfile]:
        """Yield what a GPU instance offers. The full width has no fixed profile id: slices tell it."""
        for index in COMPUTE_PROFILE_INDEXES:
            info = self._optional(
                pynvml.nvmlGpuInstanceGetComputeInstanceProfileInfo,
                instance,
                index,
                pynvml.NVML_COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED,
            )
            if info is None:
                continue
            placements = self._list(
                pynvml.nvmlGpuInstanceGetComputeInstancePossiblePlacements,
                pynvml.c_nvmlComputeInstancePlacement_t,
                instance,
                info.id,
            )
            spots = tuple(sorted(Placement(one.start, one.size) for one in placements))
            yield ComputeProfile(info.id, info.sliceCount, spots)

    def _instance_handle(self, uuid: str, instance: GpuInstance) -> Any:
        return self._ask(
            f"the instance {instance} of {uuid}",
            pynvml.nvmlDeviceGetGpuInstanceById,
            self._handle(uuid),
            instance.id,
        )

    def _mig_devices(self, handle: Any) -> Iterator[MigDevice]:
        """Yield each slice of a GPU."""
        for index in range(self._ask("the number of slices", pynvml.nvmlDeviceGetMaxMigDeviceCount, handle)):
            self.report("nvmlDeviceGetMigDeviceHandleByIndex")
            try:
                device = pynvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except (pynvml.NVMLError_NotFound, pynvml.NVMLError_InvalidArgument):
                continue
            except pynvml.NVMLError as error:
                raise GpuError(f"NVML does not tell slice {index}: {error}.") from error
            yield MigDevice(
                index,
                self._ask("a slice's GPU instance", pynvml.nvmlDeviceGetGpuInstanceId, device),
                self._ask("a slice's compute instance", pynvml.nvmlDeviceGetComputeInstanceId, device),
                self._ask("a slice's UUID", pynvml.nvmlDeviceGetUUID, device),
                device,
            )

    def _processes(self, handle: Any, slices: tuple[MigDevice, ...]) -> Iterator[Process]:
        """Yield the programs that use a GPU or a slice of it.

        The GPU's own list has those of its slices too when the caller is privileged, and a slice's list has
        them in any case (nvml.h, nvmlDeviceGetComputeRunningProcesses_v3): both are read, and each program is
        told once.
        """
        found: dict[tuple[int, int | None, int | None], Process] = {}
        sources: list[tuple[Any, int | None, int | None]] = [(handle, None, None)]
        sources += [(one.handle, one.gpu_instance, one.compute_instance) for one in slices]
        for device, gpu_instance, compute_instance in sources:
            for kind in ("Compute", "Graphics"):
                for one in self._optional(_running(kind), device) or ():
                    where = (
                        _instance_id(one.gpuInstanceId) if gpu_instance is None else gpu_instance,
                        _instance_id(one.computeInstanceId) if compute_instance is None else compute_instance,
                    )
                    found[(one.pid, *where)] = Process(one.pid, self._process_name(one.pid), *where)
        yield from found.values()

    def _process_name(self, pid: int) -> str:
        """Return the name of a program. Users choose it, so it is any bytes; the binding wants UTF-8."""
        try:
            path = self._optional(pynvml.nvmlSystemGetProcessName, pid) or ""
        except UnicodeDecodeError as error:
            path = error.object.decode(errors="replace")
        return "".join(one if one.isprintable() else "\ufffd" for one in path.rpartition("/")[2])

    def _handle(self, uuid: str) -> Any:
        self._index = self._indexes.get(uuid)
        return self._ask(f"the GPU {uuid}", by_uuid, uuid, self._calls.hung)

    def _list(self, call: Callable[..., Any], kind: Any, *arguments: Any) -> list[Any]:
        """Read a list from a call that tells its length when it gets no room."""
        count = ctypes.c_uint(0)
        self._ask("a list", call, *arguments, None, ctypes.byref(count))
        return self._fill(call, kind, count.value, *arguments)

    def _fill(self, call: Callable[..., Any], kind: Any, room: int, *arguments: Any) -> list[Any]:
        found = (kind * room)()
        count = ctypes.c_uint(room)
        self._ask("a list", call, *arguments, found, ctypes.byref(count))
        return list(found[: count.value])

    def _optional(self, call: Callable[..., Any], *arguments: Any) -> Any:
        """Ask for what a GPU may not have; None when it does not."""
        self.report(call.__name__)
        try:
            return call(*arguments)
        except (pynvml.NVMLError_NotSupported, pynvml.NVMLError_InvalidArgument, pynvml.NVMLError_NotFound):
            return None
        except pynvml.NVMLError as error:
            raise GpuError(f"NVML does not answer {call.__name__}: {error}{_hint(error)}.") from error

    def _ask(self, what: str, call: Callable[..., Any], *arguments: Any) -> Any:
        self.report("nvmlDeviceGetHandleByUUID" if call is by_uuid else call.__name__)
        try:
            return call(*arguments)
        except pynvml.NVMLError as error:
            # "asked to create 1g.10gb at 0", "asked for the number of GPUs"
            request = what if what.startswith("to ") else f"for {what}"
            raise GpuError(f"NVML was asked {request} and answered: {error}{_hint(error)}.") from error


@contextlib.contextmanager
def session(calls: Calls | None = None) -> Iterator[Nvml]:
    """Open NVML, close it in the end.

    Args:
        calls: what a guarded child process tells its parent, see `guarded`.

    Raises:
        GpuError: when the binding, the library or the driver is missing, or they do not fit together.
    """
    _check_binding()
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError_LibraryNotFound as error:
        # The binding says that there is no library whatever the dynamic linker said.
        raise GpuError(load_problem(str(error.__context__ or ""))) from error
    except pynvml.NVMLError_DriverNotLoaded as error:
        raise DriverNotRunning(
            "The NVIDIA driver is installed on this machine, but its kernel module is not loaded: run"
            " 'modprobe nvidia' or reboot, and look into the kernel's log if that does not help."
        ) from error
    except pynvml.NVMLError as error:
        if error.value == pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH:
            raise DriverNotRunning(
                "The NVIDIA library and the loaded kernel module are of different versions: reboot the"
                " machine, so that the module of the installed version is loaded."
            ) from error
        raise GpuError(f"NVML does not start: {error}.") from error
    try:
        yield Nvml(calls)
    finally:
        with contextlib.suppress(pynvml.NVMLError):
            pynvml.nvmlShutdown()


def survey(calls: Calls) -> Survey:
    """Return the GPUs as a session of its own finds them; arguments and errors as `session`."""
    with session(calls) as nvml:
        return nvml.survey()


def load_problem(words: str) -> str:
    """Return why the driver's library was not loaded, in a sentence with the next step.

    Args:
        words: of the dynamic linker, such as `FILE: invalid ELF header`; empty if it gave none.
    """
    if not words or is_missing(words, LIBRARY):
        return (
            f"The NVIDIA driver is not installed on this machine, as there is no library {LIBRARY}: install"
            " the driver."
        )
    return (
        f"The library of the NVIDIA driver cannot be loaded ({words}): install the driver again, for the"
        " architecture of this machine."
    )


def is_missing(words: str, library: str) -> bool:
    """Whether the dynamic linker says that there is no such library."""
    return words.startswith(f"{library}: ") and words.endswith("No such file or directory")


def _check_binding() -> None:
    try:
        version = metadata.version("nvidia-ml-py")
    except metadata.PackageNotFoundError:
        version = ""
    if pynvml is None or not version:
        raise GpuError(
            f"The Python package nvidia-ml-py is missing for this interpreter, and there is no {GPU_PYTHON}:"
            " run the role nvidia_driver or mig, which install that, or install the package."
        )
    if tuple(int(part) for part in version.split(".")[:2]) < OLDEST_BINDING:
        raise GpuError(f"nvidia-ml-py {version} is too old: install 11.525 or later.")


def _running(kind: str) -> Callable[[Any], Any]:
    """Return the call that lists programs: version 2 with drivers before R510, with the same fields."""
    name = f"nvmlDeviceGet{kind}RunningProcesses"

    def call(device: Any) -> Any:
        try:
            return getattr(pynvml, f"{name}_v3")(device)
        except pynvml.NVMLError_FunctionNotFound:
            return getattr(pynvml, f"{name}_v2")(device)

    call.__name__ = name
    return call


def _hint(error: Any) -> str:
    """Return the next step after an answer of NVML that has one."""
    if error.value == pynvml.NVML_ERROR_NO_PERMISSION:
        return "; run this as root (become: true)"
    if error.value == pynvml.NVML_ERROR_FUNCTION_NOT_FOUND:
        return "; the driver is too old for this, so update it to 525 or later"
    return ""


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _instance_id(value: int | None) -> int | None:
    return None if value in (None, NO_INSTANCE) else value
