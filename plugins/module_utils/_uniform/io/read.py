# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the properties of a machine that others of its kind ought to have too."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from ..._benchmarks import results
from ..._benchmarks.neighbours import neighbours
from ..._host.io import timed
from .. import parse
from ..compare import Value

BOARD = ("sys_vendor", "product_name", "board_name", "bios_vendor", "bios_version", "bios_date")
# Settings on which jobs and data depend (Linux, Documentation/admin-guide/sysctl).
SETTINGS = (
    "kernel.numa_balancing",
    "kernel.perf_event_paranoid",
    "kernel.pid_max",
    "kernel.unprivileged_userns_clone",
    "kernel.yama.ptrace_scope",
    "net.core.rmem_max",
    "net.core.wmem_max",
    "net.core.somaxconn",
    "net.ipv4.ip_forward",
    "net.ipv4.tcp_congestion_control",
    "net.ipv4.tcp_rmem",
    "net.ipv4.tcp_wmem",
    "user.max_user_namespaces",
    "vm.max_map_count",
    "vm.overcommit_memory",
    "vm.overcommit_ratio",
    "vm.swappiness",
    "vm.zone_reclaim_mode",
)
# Services whose limits are those of what users run.
SERVICES = ("slurmd",)
# Files of an interface in /sys/class/net, and of a port in /sys/class/infiniband.
INTERFACE = ("mtu", "speed", "duplex", "operstate")
PORT = ("state", "phys_state", "rate", "link_layer")
FORMAT = r"${db:Status-Abbrev}\t${Package}\t${Architecture}\t${Version}\n"
SECONDS = 30.0


def read(root: Path = Path("/")) -> dict[str, Value]:
    """Return the properties of the machine, by names such as ``kernel.release``.

    A property that the machine does not have, or does not tell, is left out.

    Args:
        root: folder that holds the files of the machine.
    """
    found: dict[str, Value] = {"kernel.release": os.uname().release, "kernel.machine": os.uname().machine}
    for part in (_board, _processors, _memory, _kernel, _system, _network, _fabric, _limits):
        found.update(part(root))
    found.update(_printed(parse.packages, "dpkg-query", "--show", f"--showformat={FORMAT}"))
    found.update(_printed(parse.enabled, "systemctl", "list-unit-files", "--state=enabled", "--no-legend"))
    found.update(
        _printed(parse.failed, "systemctl", "list-units", "--state=failed", "--plain", "--no-legend")
    )
    found.update(parse.mounts(_text(root / "proc/self/mountinfo")))
    found.update(_measured(root))
    return found


def _text(path: Path) -> str:
    """Return what a file holds; empty if there is none, or the kernel does not tell it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _texts(prefix: str, folder: Path, names: Iterator[str] | tuple[str, ...]) -> dict[str, Value]:
    told = {name: _text(folder / name) for name in names}
    return {f"{prefix}.{name}": text for name, text in told.items() if text}


def _printed(parsed: Callable[[str], dict[str, str]], *words: str) -> dict[str, str]:
    try:
        answer = timed.run(words, SECONDS)
    except OSError:
        return {}
    return parsed(answer.output) if answer.status == 0 else {}


def _board(root: Path) -> dict[str, Value]:
    return _texts("board", root / "sys/class/dmi/id", BOARD)


def _processors(root: Path) -> dict[str, Value]:
    folder = root / "sys/devices/system/cpu"
    sockets = {_text(path) for path in folder.glob("cpu[0-9]*/topology/physical_package_id")}
    found: dict[str, Value] = {
        **parse.processors(_text(root / "proc/cpuinfo")),
        "processor.sockets": len(sockets),
        "processor.threads": len(list(folder.glob("cpu[0-9]*/topology"))),
    }
    for name, path in (
        ("smt", "smt/control"),
        ("governor", "cpu0/cpufreq/scaling_governor"),
        ("driver", "cpu0/cpufreq/scaling_driver"),
        ("largest_khz", "cpu0/cpufreq/cpuinfo_max_freq"),
        ("boost", "cpufreq/boost"),
        ("no_turbo", "intel_pstate/no_turbo"),
        ("idle_driver", "cpuidle/current_driver"),
    ):
        if text := _text(folder / path):
            found[f"processor.{name}"] = text
    weak = folder / "vulnerabilities"
    return {**found, **_texts("processor.vulnerability", weak, _names(weak))}


def _memory(root: Path) -> dict[str, Value]:
    found: dict[str, Value] = dict(parse.memory(_text(root / "proc/meminfo")))
    if nodes := list((root / "sys/devices/system/node").glob("node[0-9]*")):
        found["memory.numa_nodes"] = len(nodes)
    if text := _text(root / "sys/kernel/mm/transparent_hugepage/enabled"):
        found["memory.transparent_huge_pages"] = parse.chosen(text)
    return found


def _kernel(root: Path) -> dict[str, Value]:
    found: dict[str, Value] = {
        "kernel.command_line": parse.command_line(_text(root / "proc/cmdline")),
        "kernel.clock_source": _text(
            root / "sys/devices/system/clocksource/clocksource0/current_clocksource"
        ),
    }
    for name in SETTINGS:
        if text := _text(root / "proc/sys" / name.replace(".", "/")):
            found[f"setting.{name}"] = " ".join(text.split())
    return {name: value for name, value in found.items() if value}


def _system(root: Path) -> dict[str, Value]:
    found: dict[str, Value] = dict(parse.distribution(_text(root / "etc/os-release")))
    found.update(parse.accounts(_text(root / "etc/passwd")))
    zone = root / "etc/localtime"
    if zone.is_symlink():
        found["system.time_zone"] = str(zone.readlink()).rpartition("zoneinfo/")[2]
    found.update(
        _printed(
            lambda text: {"system.clock_synchronized": text.strip()},
            "timedatectl",
            "show",
            "--property=NTPSynchronized",
            "--value",
        )
    )
    return found


def _network(root: Path) -> dict[str, Value]:
    """Return the interfaces of a device, and bonds and VLANs; others belong to containers."""
    found: dict[str, Value] = {}
    for folder in sorted((root / "sys/class/net").glob("*")):
        if not ((folder / "device").exists() or (folder / "bonding").exists() or _is_vlan(root, folder.name)):
            continue
        found.update(_texts(f"network.{folder.name}", folder, INTERFACE))
        driver = folder / "device" / "driver"
        if driver.exists():
            found[f"network.{folder.name}.driver"] = driver.resolve().name
        if mode := _text(folder / "bonding/mode"):
            found[f"network.{folder.name}.mode"] = mode.split()[0]
    return found


def _is_vlan(root: Path, name: str) -> bool:
    return (root / "proc/net/vlan" / name).exists()


def _fabric(root: Path) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for device in sorted((root / "sys/class/infiniband").glob("*")):
        found.update(_texts(f"fabric.{device.name}", device, ("fw_ver", "board_id", "hca_type")))
        for port in sorted((device / "ports").glob("*")):
            found.update(_texts(f"fabric.{device.name}.{port.name}", port, PORT))
    return found


def _limits(root: Path) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for service in SERVICES:
        told = _printed(
            lambda text: {"pid": text.strip()},
            "systemctl", "show", "--property=MainPID", "--value", f"{service}.service",
        )  # fmt: skip
        if told.get("pid", "0") != "0":
            found.update(parse.limits(service, _text(root / "proc" / told["pid"] / "limits")))
    return found


def links(root: Path = Path("/")) -> dict[str, str]:
    """Return the machines to which benchmarks have measured links, by the names of the results.

    Args:
        root: folder that holds the files of the machine.
    """
    return neighbours(_results(root))


def _measured(root: Path) -> dict[str, Value]:
    return {f"benchmark.{name}": value for name, value in _results(root).values.items()}


def _results(root: Path) -> results.Results:
    try:
        return results.parse(json.loads(_text(root / results.PATH.lstrip("/"))))
    except ValueError:  # none, or damaged
        return results.Results()


def _names(folder: Path) -> tuple[str, ...]:
    return tuple(sorted(path.name for path in folder.glob("*")))
