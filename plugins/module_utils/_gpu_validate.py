# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine compared with what is declared about its GPUs, without I/O."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from ._mig.flavor import AS_FOUND, DISABLED, Flavor, Item, parse_flavor, read_name
from ._nvml.gpu import Gpu

# nvml.h, nvmlComputeMode_t
COMPUTE_MODES = ("default", "exclusive_thread", "prohibited", "exclusive_process")


@dataclass(frozen=True)
class Expected:
    """Declared values; None is not checked. The fields are the options of the module gpu_validate."""

    count: int | None = None
    driver_version: str | None = None
    cuda_version: str | None = None
    kernel_module: str | None = None
    model: str | None = None
    memory_mib: int | None = None
    vbios: str | None = None
    mig_enabled: bool | None = None
    mig_flavor: str | None = None
    ecc: bool | None = None
    persistence: bool | None = None
    compute_mode: str | None = None
    power_limit_watts: int | None = None
    pcie_width: int | None = None
    nvlinks: int | None = None
    idle: bool | None = None
    cordoned: bool | None = None


# Fields that are compared for each GPU; the other fields of Expected are about the machine.
MACHINE_CHECKS = ("count", "driver_version", "cuda_version", "kernel_module")
CHECKS = tuple(one.name for one in fields(Expected))


@dataclass(frozen=True)
class Found:
    """Readings: versions, the kind of kernel module, and the GPUs with their readings by UUID."""

    driver_version: str
    cuda_version: str
    kernel_module: str
    gpus: Sequence[Gpu]
    readings: Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Check:
    """One comparison; `gpu` is a UUID, empty for the machine, `severity` what a violation is."""

    name: str
    ok: bool
    severity: str
    detail: str
    gpu: str = ""


def version_key(version: str) -> tuple[int, ...]:
    """Return a version as numbers that compare; parts that are no numbers end it."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)*", version)
    return tuple(int(part) for part in match[0].split(".")) if match else ()


def compare(expected: Expected, found: Found, lenient: Sequence[str] = ()) -> list[Check]:
    """Compare a machine with what is declared about it.

    Args:
        lenient: names of the checks whose violation is a `warning`; that of the others is an `error`.

    Returns:
        a check for everything that is declared, in the order of the fields of Expected.

    Raises:
        FlavorError: when the declared MIG flavor is not understood.
    """

    def check(name: str, verdict: tuple[bool, str], gpu: str = "") -> Check:
        return Check(name, verdict[0], "warning" if name in lenient else "error", verdict[1], gpu)

    declared = {name: getattr(expected, name) for name in CHECKS if getattr(expected, name) is not None}
    checks = []
    for name, value in declared.items():
        if name in MACHINE_CHECKS:
            checks.append(check(name, _machine(name, value, found)))
            continue
        for gpu in found.gpus:
            ok, words = _GPU[name](value, gpu, found.readings.get(gpu.uuid, {}))
            checks.append(check(name, (ok, f"{gpu}: {words}"), gpu.uuid))
    return checks


def violations(checks: Sequence[Check], severity: str) -> list[str]:
    """Return the details of the violations of a severity."""
    return [check.detail for check in checks if not check.ok and check.severity == severity]


def _machine(name: str, value: Any, found: Found) -> tuple[bool, str]:
    if name == "count":
        count = len(found.gpus)
        return count == value, f"{count} GPU(s), {value} declared"
    current = getattr(found, name)
    if name == "kernel_module":
        return current == value, f"kernel module {current or 'of unknown kind'}, {value} declared"
    words = f"{'driver' if name == 'driver_version' else 'CUDA'} {current}, at least {value} declared"
    return version_key(current) >= version_key(value), words


def _at_least(what: str, read: Callable[[Gpu, Mapping[str, Any]], Any]) -> Callable[..., tuple[bool, str]]:
    def check(value: Any, gpu: Gpu, readings: Mapping[str, Any]) -> tuple[bool, str]:
        current = read(gpu, readings)
        if current is None:
            return False, f"{what} not told, at least {value} declared"
        return current >= value, f"{what} {current}, at least {value} declared"

    return check


def _equal(what: str, read: Callable[[Gpu, Mapping[str, Any]], Any]) -> Callable[..., tuple[bool, str]]:
    def word(value: Any) -> str:
        return {None: "not told", True: "on", False: "off"}.get(value, str(value))

    def check(value: Any, gpu: Gpu, readings: Mapping[str, Any]) -> tuple[bool, str]:
        current = read(gpu, readings)
        # 1 == True in Python: without the types, one watt would be "on".
        return (current, type(current)) == (
            value,
            type(value),
        ), f"{what} {word(current)}, {word(value)} declared"

    return check


def _model(value: str, gpu: Gpu, _readings: Mapping[str, Any]) -> tuple[bool, str]:
    return value.lower() in gpu.name.lower(), f"model {gpu.name}, {value} declared"


def _mig_flavor(value: str, gpu: Gpu, _readings: Mapping[str, Any]) -> tuple[bool, str]:
    flavor = parse_flavor(value)
    if flavor.kind == AS_FOUND:
        return True, "any partitions are fine"
    current = _partitions(gpu)
    if flavor.kind == DISABLED:
        return not gpu.mig_enabled, f"{current}, MIG mode off declared"
    return _fits(flavor, gpu), f"{current}, {flavor} declared"


def _partitions(gpu: Gpu) -> str:
    if not gpu.mig_enabled:
        return "MIG mode off"
    instances = sorted(gpu.instances, key=lambda one: one.placement)
    return "partitions " + (", ".join(one.profile.name for one in instances) or "none")


def _fits(flavor: Flavor, gpu: Gpu) -> bool:
    """Whether the GPU holds the instances of a layout, no more and no fewer."""
    if not gpu.mig_enabled:
        return False
    left = list(gpu.instances)
    for item in flavor.items:
        for _number in range(item.count):
            match = next((one for one in left if _is(one, item)), None)
            if match is None:
                return False
            left.remove(match)
    return not left


def _is(instance: Any, item: Item) -> bool:
    has, wanted = read_name(instance.profile.name), read_name(item.profile)
    widths = (has.slices,) if item.compute is None else item.compute
    return (
        (has.slices, has.attributes) == (wanted.slices, wanted.attributes)
        and wanted.memory in (None, has.memory)
        and instance.widths == widths
        and item.start in (None, instance.placement.start)
    )


def _idle(value: bool, gpu: Gpu, _readings: Mapping[str, Any]) -> tuple[bool, str]:
    programs = ", ".join(map(str, gpu.processes)) or "no program"
    return bool(gpu.processes) != value, f"{programs}, {'none' if value else 'some'} declared"


def _cordoned(value: bool, _gpu: Gpu, readings: Mapping[str, Any]) -> tuple[bool, str]:
    found = readings.get("cordons", [])
    words = ", ".join(found) or "no cordon"
    return bool(found) == value, f"{words}, {'a cordon' if value else 'none'} declared"


def _watts(_gpu: Gpu, readings: Mapping[str, Any]) -> int | None:
    limit = readings.get("power_limit_mw")
    return None if limit is None else round(limit / 1000)


def _mode(_gpu: Gpu, readings: Mapping[str, Any]) -> str | None:
    mode: Any = readings.get("compute_mode")
    return dict(enumerate(COMPUTE_MODES)).get(mode)


def _links(_gpu: Gpu, readings: Mapping[str, Any]) -> int:
    return sum(readings.get("nvlinks", {}).values())


def _reading(name: str, part: int | None = None) -> Callable[[Gpu, Mapping[str, Any]], Any]:
    def read(_gpu: Gpu, readings: Mapping[str, Any]) -> Any:
        value = readings.get(name)
        return value if part is None or value is None else value[part]

    return read


_GPU: Mapping[str, Callable[..., tuple[bool, str]]] = {
    "model": _model,
    "memory_mib": _at_least("memory in MiB", lambda gpu, _readings: gpu.memory_mib),
    "vbios": _equal("video BIOS", _reading("vbios")),
    "mig_enabled": _equal("MIG mode", lambda gpu, _readings: gpu.mig_enabled),
    "mig_flavor": _mig_flavor,
    "ecc": _equal("ECC", _reading("ecc_mode", 0)),
    "persistence": _equal("persistence mode", _reading("persistence")),
    "compute_mode": _equal("compute mode", _mode),
    "power_limit_watts": _equal("power limit in watts", _watts),
    "pcie_width": _at_least("PCIe lanes", _reading("pcie_width", 0)),
    "nvlinks": _at_least("active NVLinks", _links),
    "idle": _idle,
    "cordoned": _cordoned,
}
