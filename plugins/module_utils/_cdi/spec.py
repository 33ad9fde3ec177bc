# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs and slices of a machine, described to container engines (Container Device Interface, CDI)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import Any

from .._nvml.gpu import ComputeInstance, Gpu, GpuError, GpuInstance

# The oldest version with all that is used here, device names that begin with a digit among it; engines refuse
# what is newer than themselves (CDI SPEC.md, "Released versions").
VERSION = "0.5.0"
KIND = "nvidia.com/gpu"
# Device nodes that every program on any GPU opens; the last one serves profilers and may be missing.
COMMON_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools")
# Libraries that are mounted whatever their files are called; others are known by their version.
ALWAYS_MOUNTED = frozenset({"libcuda.so.1", "libnvidia-ml.so.1"})
# NVIDIA's own runtime would otherwise add every GPU that an image asks for in this variable.
NO_DEVICES = "NVIDIA_VISIBLE_DEVICES=void"
# Those of NVIDIA's own specifications: a container reads the driver's files, and finds no device in them.
MOUNT_OPTIONS = ("ro", "nosuid", "nodev", "rbind", "rprivate")


def parse_libraries(text: str) -> dict[str, str]:
    """Return the path of each library of the dynamic linker, by its name; the linker's first choice counts.

    Args:
        text: output of `ldconfig -p`.
    """
    found: dict[str, str] = {}
    for name, kind, path in re.findall(r"^\s*(\S+) \(([^)]*)\) => (\S+)$", text, re.MULTILINE):
        if kind.startswith("libc6,"):  # libc6 alone is for 32 bits
            found.setdefault(name, path)
    return found


def driver_libraries(libraries: Mapping[str, str], files: Mapping[str, str], version: str) -> dict[str, str]:
    """Return the driver's libraries: the path where programs look for each, and the file that it is.

    Every library of a driver carries the driver's version in the name of its file.

    Args:
        libraries: paths by name, as `parse_libraries` returns them.
        files: for each path the file that it leads to through links.
        version: the driver's.
    """
    return {
        path: files[path]
        for name, path in libraries.items()
        if name in ALWAYS_MOUNTED or files[path].endswith(f".so.{version}")
    }


def devices(
    gpus: Iterable[Gpu], indexes: Mapping[str, int], partition_nodes: Mapping[str, PurePath]
) -> dict[str, list[dict[str, str]]]:
    """Return the device nodes of each device by its names; empty when no program can compute on any.

    A GPU without MIG mode is called by its index and UUID, a slice by `<index of GPU>:<index of slice>` and
    its UUID, as NVIDIA's own tool does; a GPU in MIG mode is none by itself. `all` is all of them.

    Args:
        indexes: NVML's index of each slice on its GPU, by UUID.
        partition_nodes: device nodes of partitions, by `Gpu.capability`.

    Raises:
        GpuError: when the driver tells no device node for a slice.
    """
    found: dict[str, list[dict[str, str]]] = {}
    everything: dict[str, dict[str, str]] = {}
    for gpu in gpus:
        for names, nodes in _devices(gpu, indexes, partition_nodes):
            found.update((name, nodes) for name in names)
            everything.update((node["path"], node) for node in nodes)
    return {**found, "all": list(everything.values())} if found else {}


def common_edits(common_nodes: Iterable[str], files: Mapping[str, str], hook: str) -> dict[str, Any]:
    """Return what every container with a GPU gets, where NVIDIA's toolkit does not tell it.

    Args:
        common_nodes: those of COMMON_NODES that there are.
        files: path in the container and file of the machine of each library and program.
        hook: program nvidia-cdi-hook of NVIDIA's container toolkit; empty when there is none.
    """
    edits: dict[str, Any] = {
        "env": [NO_DEVICES],
        "deviceNodes": [{"path": path, "permissions": "rw"} for path in common_nodes],
        "mounts": [
            {"hostPath": file, "containerPath": path, "options": list(MOUNT_OPTIONS)}
            for path, file in sorted(files.items())
        ],
    }
    folders = sorted({path.rpartition("/")[0] for path in files if ".so" in path.rpartition("/")[2]})
    if hook and folders:
        # Images whose linker does not look into these folders by itself find the libraries by its cache.
        words = [word for folder in folders for word in ("--folder", folder)]
        arguments = ["nvidia-cdi-hook", "update-ldcache", *words]
        edits["hooks"] = [{"hookName": "createContainer", "path": hook, "args": arguments}]
    return edits


def toolkit_edits(generated: str, common_nodes: Iterable[str]) -> tuple[str, dict[str, Any]]:
    """Return what NVIDIA's toolkit gives every container with a GPU, and the version of CDI that it needs.

    Its libraries, programs, sockets, firmware, variables and hooks stay as they are. Its devices are left
    out, and its device nodes too: they are nodes of displays beside the common ones, and containers may make
    them themselves.

    Args:
        generated: output of `nvidia-ctk cdi generate --format=json`.
        common_nodes: those of COMMON_NODES that there are.

    Raises:
        GpuError: it is no specification.
    """
    try:
        told = json.loads(generated)
        edits = {**told["containerEdits"]}
        version = max(VERSION, str(told["cdiVersion"]), key=_numbers)
        variables = [str(one) for one in edits.get("env", [])]
    except (ValueError, LookupError, TypeError) as error:
        raise GpuError(f"nvidia-ctk generated no specification ({type(error).__name__}: {error}).") from error
    others = [one for one in variables if not one.startswith(f"{NO_DEVICES.partition('=')[0]}=")]
    edits["env"] = [*others, NO_DEVICES]
    edits["deviceNodes"] = [{"path": path, "permissions": "rw"} for path in common_nodes]
    return version, edits


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def specification(
    described: Mapping[str, list[dict[str, str]]], edits: Mapping[str, Any], version: str = VERSION
) -> dict[str, Any]:
    """Return the specification of a machine.

    Args:
        described: device nodes by names, as `devices` returns them; not empty, as CDI has no empty one.
        edits: what every container with one of them gets.
        version: of CDI.
    """
    return {
        "cdiVersion": version,
        "kind": KIND,
        "devices": [
            {"name": name, "containerEdits": {"deviceNodes": nodes}} for name, nodes in described.items()
        ],
        "containerEdits": dict(edits),
    }


def text(specified: Mapping[str, Any]) -> str:
    """Return a specification as the text of its file, which is JSON and so YAML too."""
    return json.dumps(specified, indent=2) + "\n"


def device_names(specified: Mapping[str, Any] | None) -> list[str]:
    """Return the names by which containers ask for devices, such as `nvidia.com/gpu=0:1`."""
    return [f"{KIND}={device['name']}" for device in specified["devices"]] if specified else []


def defines_gpus(content: str) -> bool:
    """Whether the text of a specification (YAML or JSON) is about the same kind of devices."""
    pattern = rf"""["']?kind["']?\s*:\s*["']?{re.escape(KIND)}["']?\s*(,|$)"""
    return re.search(pattern, content, re.MULTILINE) is not None


def _slice_nodes(
    gpu: Gpu,
    instance: GpuInstance,
    compute_instance: ComputeInstance,
    partition_nodes: Mapping[str, PurePath],
) -> Iterable[dict[str, str]]:
    """Yield the device nodes that a program opens to compute on a slice.

    Raises:
        GpuError: when the driver tells none.
    """
    for capability in (gpu.capability(instance), gpu.capability(instance, compute_instance)):
        if capability not in partition_nodes:
            raise GpuError(
                f"The driver tells no device node for {capability} of {gpu}: report the driver's version."
            )
        yield {"path": str(partition_nodes[capability]), "permissions": "r"}


def _devices(
    gpu: Gpu, indexes: Mapping[str, int], partition_nodes: Mapping[str, PurePath]
) -> Iterable[tuple[tuple[str, str], list[dict[str, str]]]]:
    """Yield names and device nodes of what a program can compute on."""
    whole = {"path": f"/dev/nvidia{gpu.minor}", "permissions": "rw"}
    if not gpu.mig_enabled:
        yield (str(gpu.index), gpu.uuid), [whole]
    slices = [(one, instance) for instance in gpu.instances for one in instance.compute_instances if one.uuid]
    for one, instance in sorted(slices, key=lambda pair: indexes[pair[0].uuid]):
        nodes = [whole, *_slice_nodes(gpu, instance, one, partition_nodes)]
        yield (f"{gpu.index}:{indexes[one.uuid]}", one.uuid), nodes
