# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan and problems that result from the settings of the role mesos_agent. No I/O.

Sources: Mesos documentation, "Nvidia GPU Support", "Mesos Containerizer", "Agent Recovery";
src/slave/flags.cpp; src/tests/slave_compatibility_tests.cpp;
src/slave/containerizer/mesos/isolators/gpu/allocator.cpp; src/linux/ldcache.cpp; src/linux/capabilities.cpp.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .options import APACHE, common_problems, environment, problems, rendered, tls, unwanted

FOLDER = "/etc/mesos-agent"
SECRETS = FOLDER + "/secrets"
OWN = {
    "attributes": "mesos_agent_attributes",
    "credential": "mesos_agent_principal",
    "hostname": "mesos_agent_hostname",
    "http_credentials": "mesos_agent_principal",
    "ip": "mesos_agent_ip",
    "isolation": "mesos_agent_isolation",
    "master": "mesos_agent_zookeeper",
    "nvidia_gpu_devices": "mesos_agent_gpu_devices",
    "port": "mesos_agent_port",
    "resources": "mesos_agent_resources",
    "work_dir": "mesos_agent_work_directory",
}
# CPU and memory are limited only with their isolators; the others are what images, volumes and disks need.
ISOLATION = (
    "filesystem/linux",
    "docker/runtime",
    "cgroups/cpu",
    "cgroups/mem",
    "disk/du",
    "namespaces/pid",
    "posix/rlimits",
    "volume/host_path",
    "volume/sandbox_path",
)
GPU_ISOLATION = ("cgroups/devices", "gpu/nvidia")
POSIX_ISOLATION = ("posix/cpu", "posix/mem", "disk/du")
DEFAULTS: dict[str, Any] = {
    "authenticate_http_readonly": True,
    "authenticate_http_readwrite": True,
    "containerizers": "mesos",
    "hostname_lookup": False,
    "recover": "reconnect",
    "reconfiguration_policy": "additive",
    "strict": True,
}
# Those need the Linux launcher.
LINUX_DEFAULTS: dict[str, Any] = {
    "cgroups_enable_cfs": True,
    "enforce_container_disk_quota": True,
    "image_providers": "docker",
    "launcher": "linux",
}
OLDEST_CACHE = (2, 32)  # glibc whose ldconfig no longer writes what Mesos 1.11.0 reads
USUAL_PORTS = "[31000-32000]"  # src/slave/constants.hpp
NEWEST_KERNEL = (5, 8)  # first kernel with capabilities that Mesos 1.11.0 does not know


def gpu_count(settings: Mapping[str, Any]) -> int:
    """Return how many GPUs the agent gets."""
    return len(settings["gpu_devices"])


def isolation(settings: Mapping[str, Any]) -> list[str]:
    """Return the isolators."""
    if settings["isolation"]:
        return list(settings["isolation"])
    if settings["flags"].get("launcher") == "posix":
        return list(POSIX_ISOLATION)
    return [*ISOLATION, *(GPU_ISOLATION if gpu_count(settings) else ())]


def machine_problems(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> list[str]:
    """Return why a machine cannot have an agent with these settings, each a sentence.

    Args:
        settings: those of the role.
        machine: `name`, `cgroup` (1 or 2), `glibc` and `kernel` as texts, `gpus`, lines of nvidia-smi with
            index, MIG mode and UUID of each, None when there are none, `cordoned`, UUIDs of GPUs, `folders`
            below /dev that are named like NVIDIA's nodes, `remembered`, the environment file of an agent
            that has an ID to come back with, empty for none.
    """
    return list(_machine_problems(settings, machine))


def _problems(settings: Mapping[str, Any]) -> Iterator[str]:
    yield from common_problems("agent", settings)
    yield from problems("agent", settings["build"], settings["flags"], OWN)
    yield from _resource_problems(settings)
    yield from _gpu_problems(settings)
    for name, value in settings["attributes"].items():
        if (
            not re.fullmatch(r"[A-Za-z][\w.-]*", name)
            or re.search(r"[:;'\"\\\\\x00-\x1f]", str(value))
            or value in ("", None)
        ):
            yield f"mesos_agent_attributes has '{name}: {value}', which Mesos cannot read; use plain words."
    if not re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_.-]*", settings["principal"]):
        yield f"mesos_agent_principal is '{settings['principal']}', which is no plain name."
    if not settings["masters"]:
        yield "mesos_agent_masters is empty, and the secret comes from them; name them."
    if settings["flags"].get("reconfiguration_policy", "additive") not in ("additive", "equal"):
        yield "mesos_agent_flags.reconfiguration_policy has to be additive or equal."
    if settings["flags"].get("recover", "reconnect") not in ("reconnect", "cleanup"):
        yield "mesos_agent_flags.recover has to be reconnect or cleanup."
    isolators = isolation(settings)
    linux = settings["flags"].get("launcher", "linux") == "linux"
    if not linux and any(one.startswith(("cgroups/", "filesystem/linux")) for one in isolators):
        yield "mesos_agent_isolation needs the Linux launcher, and mesos_agent_flags.launcher is posix."


def _resource_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    for name, value in settings["resources"].items():
        if name == "gpus":
            yield "mesos_agent_resources has gpus; list the GPUs in mesos_agent_gpu_devices instead."
        elif name == "ports":
            if not re.fullmatch(r"[0-9]+-[0-9]+(, ?[0-9]+-[0-9]+)*", str(value)):
                yield f"mesos_agent_resources.ports is '{value}'; give ranges such as 31000-32000."
        elif not re.fullmatch(r"[A-Za-z][\w.-]*", name):
            yield f"mesos_agent_resources has '{name}', which is no name of a resource."
        elif not re.fullmatch(r"[0-9]+(\.[0-9]+)?", str(value)):
            yield f"mesos_agent_resources.{name} is '{value}', and has to be a number, mem and disk in MB."
    for name in ("cpus", "mem", "disk"):
        if name not in settings["resources"]:
            yield (
                f"mesos_agent_resources lacks {name}; what Mesos finds by itself may differ after a"
                " restart, which then refuses to take its tasks back."
            )


def _gpu_problems(settings: Mapping[str, Any]) -> Iterator[str]:
    devices = settings["gpu_devices"]
    for device in devices:
        if not re.fullmatch("[0-9]+", str(device)) and list(devices) != ["all"]:
            yield (
                f"mesos_agent_gpu_devices has '{device}'; give the indexes of GPUs, as nvidia-smi shows"
                " them, or only all."
            )
    if devices and settings["source"] == "image":
        yield (
            "mesos_agent_gpu_devices names GPUs, and an agent in a container does not find the driver that "
            "tasks need; install Mesos from a package or an archive."
        )
    if len({str(device) for device in devices}) < len(devices):
        yield "mesos_agent_gpu_devices has a GPU twice; name each once."
    missing = [one for one in ("filesystem/linux", *GPU_ISOLATION) if one not in isolation(settings)]
    if "cgroups/all" in isolation(settings):
        missing = [one for one in missing if one != "cgroups/devices"]
    if devices and missing:
        yield (
            f"GPUs need the isolators {', '.join(missing)}, which mesos_agent_isolation lacks; add them, or"
            " leave it empty."
        )


def _machine_problems(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> Iterator[str]:
    name, isolators = machine["name"], isolation(settings)
    stock = settings["build"] == APACHE
    linux = settings["flags"].get("launcher", "linux") == "linux"
    if stock and linux and int(machine["cgroup"]) == 2:
        yield (
            f"{name} has control groups of version 2 only, and Apache Mesos 1.11.0 cannot use them;"
            " install clusterd, or boot with systemd.unified_cgroup_hierarchy=0."
        )
    if stock and gpu_count(settings) and version(machine["glibc"]) >= OLDEST_CACHE:
        yield (
            f"{name} has glibc {machine['glibc']}, whose library cache Apache Mesos 1.11.0 cannot read,"
            " so an agent with GPUs does not start; install clusterd, or take a system with a glibc"
            " before 2.32."
        )
    if stock and "linux/capabilities" in isolators and version(machine["kernel"]) >= NEWEST_KERNEL:
        yield (
            f"{name} has the kernel {machine['kernel']}, and the isolator linux/capabilities of Apache"
            " Mesos 1.11.0 ends the agent there; leave it out, or install clusterd."
        )
    if not stock and int(machine["cgroup"]) == 2 and settings["flags"].get("cgroups_limit_swap"):
        yield f"{name} has control groups of version 2, where cgroups_limit_swap is refused; leave it out."
    yield from _gpu_machine_problems(settings, machine)


def _recovery_problems(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> Iterator[str]:
    """An agent that comes back with less than it had ends itself, and its tasks are lost after a while."""
    had = dict(re.findall(r"^MESOS_([A-Z_]+)=(.*)$", machine["remembered"], re.MULTILINE))
    if not had:
        return
    has = {
        "HOSTNAME": str(settings["hostname"]),
        "PORT": str(settings["port"]),
        "WORK_DIR": settings["work_directory"],
        "RESOURCES": resources(settings),
        "ATTRIBUTES": _attributes(settings["attributes"]) or "",
    }
    equal = settings["flags"].get("reconfiguration_policy") == "equal"
    wrong = [
        name.lower() for name in ("HOSTNAME", "PORT", "WORK_DIR") if had.get(name, has[name]) != has[name]
    ]
    for kind in ("RESOURCES", "ATTRIBUTES"):
        former, next_ones = _pairs(had.get(kind, "")), _pairs(has[kind])
        if kind == "RESOURCES":
            former, next_ones = ({"ports": USUAL_PORTS, **pairs} for pairs in (former, next_ones))
        names = [*former, *next_ones] if equal else [*former]
        wrong += [
            f"{kind.lower()}.{name}"
            for name in dict.fromkeys(names)
            if not _may_become(former.get(name, ""), next_ones.get(name, ""), equal or kind == "ATTRIBUTES")
        ]
    if wrong:
        yield (
            f"The agent of {machine['name']} would come back with other or less {', '.join(wrong)}, which"
            " Mesos does not allow, and end itself; keep these, or drain it with mesos_maintenance, remove"
            f" {had.get('WORK_DIR', has['WORK_DIR'])}/meta/slaves/latest there, and run again."
        )


def _pairs(text: str) -> dict[str, str]:
    return {name: value for name, sign, value in (one.partition(":") for one in text.split(";")) if sign}


def _may_become(had: str, has: str, equal: bool) -> bool:
    if equal or had == has:
        return had == has
    if had.startswith("["):
        return _numbers(had) <= _numbers(has)
    # Nothing of a resource is the same as none.
    amounts = [re.fullmatch(r"[0-9]+(\.[0-9]+)?", one or "0") for one in (had, has)]
    return all(amounts) and float(has or 0) >= float(had or 0)


def _numbers(ranges: str) -> set[int]:
    ends = re.findall("([0-9]+)-([0-9]+)", ranges)
    return {number for first, last in ends for number in range(int(first), int(last) + 1)}


def _gpu_machine_problems(settings: Mapping[str, Any], machine: Mapping[str, Any]) -> Iterator[str]:
    if not gpu_count(settings):
        return
    if machine["gpus"] is None:
        yield (
            f"{machine['name']} has no NVIDIA driver that answers, and mesos_agent_gpu_devices names GPUs;"
            " install it first."
        )
        return
    lines = re.findall(r"^([0-9]+), *([^,]*), *(.*)$", "\n".join(machine["gpus"]), re.MULTILINE)
    modes = {index: mode for index, mode, _uuid in lines}
    cordoned = {index: uuid for index, _mode, uuid in lines if uuid in machine["cordoned"]}
    for device in map(str, settings["gpu_devices"]):
        if device not in modes:
            yield f"{machine['name']} has no GPU {device}; it has {', '.join(sorted(modes)) or 'none'}."
        elif modes[device] == "Enabled" and settings["mig_gpus"] == "refuse":
            yield (
                f"GPU {device} of {machine['name']} is in MIG mode, and Mesos knows whole GPUs only: a"
                " task would get one and find nothing to compute on. Leave it out of"
                " mesos_agent_gpu_devices, turn MIG off, or set mesos_agent_mig_gpus to allow."
            )
        if device in cordoned:
            yield (
                f"GPU {device} of {machine['name']} is cordoned, so no task may get it: list the other GPUs"
                " in mesos_agent_gpu_devices, or end the cordon with 'gpufarm-health uncordon"
                f" {cordoned[device]}'."
            )
    for folder in machine["folders"]:
        yield (
            f"{machine['name']} has the folder {folder}, at which every task with an image fails, as"
            " Mesos takes it for a device; remove it before the agent starts."
        )


def version(text: str) -> tuple[int, ...]:
    """Return the first two numbers of a version."""
    return tuple(int(part) for part in re.findall("[0-9]+", text)[:2])


def resources(settings: Mapping[str, Any]) -> str:
    """Return the resources as Mesos reads them (documentation, "Attributes & Resources")."""
    parts = []
    for name, value in sorted(settings["resources"].items()):
        parts.append(f"ports:[{str(value).replace(' ', '')}]" if name == "ports" else f"{name}:{value}")
    # one that is not told sells every GPU that it finds
    return ";".join([*parts, f"gpus:{gpu_count(settings)}"])


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what settings come to.

    Args:
        settings: the role's variables without ``mesos_agent_``.
        machine: what `machine_problems` reads; without it only the settings are checked.

    Returns:
        ``problems``, each a sentence; if there are none, ``environment``, ``options``, ``files`` and
        ``secret_files`` by name, ``unwanted`` paths.
    """
    wrong = [*_problems(settings), *(machine_problems(settings, machine) if machine else ())]
    # Nothing can be compared with settings that are wrong in themselves.
    wrong = wrong or [*(_recovery_problems(settings, machine) if machine else ())]
    if wrong:
        return {"problems": wrong}
    linux = settings["flags"].get("launcher", "linux") == "linux"
    work = settings["work_directory"]
    options = {
        **DEFAULTS,
        **(LINUX_DEFAULTS if linux else {}),
        "appc_store_dir": f"{work}/appc",
        "docker_store_dir": f"{work}/docker",
        "fetcher_cache_dir": f"{work}/fetch",
        **settings["flags"],
        "attributes": _attributes(settings["attributes"]),
        "credential": f"{SECRETS}/credential.json",
        "hostname": settings["hostname"],
        "http_credentials": f"{SECRETS}/http_credentials.json",
        "ip": settings["ip"] or None,
        "isolation": ",".join(isolation(settings)),
        "master": f"zk://{','.join(settings['zookeeper'])}{settings['zookeeper_path']}",
        "nvidia_gpu_devices": settings["gpu_devices"] or None,
        "port": settings["port"],
        "resources": resources(settings),
        "work_dir": work,
    }
    found = rendered("agent", settings["build"], options, FOLDER)
    certificate = tls(settings, f"{FOLDER}/tls.pem", f"{SECRETS}/tls.key", f"{FOLDER}/ca.pem")
    return {
        "problems": [],
        "environment": environment(found.texts, certificate),
        "options": found.texts,
        "files": found.files,
        "secret_files": found.secret_files,
        "unwanted": unwanted("agent", FOLDER, found, settings),
    }


def _attributes(attributes: Mapping[str, Any]) -> Any:
    return ";".join(f"{name}:{value}" for name, value in sorted(attributes.items())) or None
