# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads the RDMA adapters of a machine, its interfaces, and what GPUs need to reach adapters."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

from ..._host.io import timed
from .. import parse

SECONDS = 30.0
# Hardware types of interfaces (include/uapi/linux/if_arp.h).
KINDS = {"1": "ethernet", "32": "infiniband"}
_PCI = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]")
SOFT_ROCE = "rdma_rxe"


class FabricError(Exception):
    """Something that must be known cannot be read."""


def read(root: Path = Path("/")) -> dict[str, Any]:
    """Return the adapters, interfaces and modules of the machine.

    Args:
        root: folder that holds the files of the machine.

    Returns:
        `adapters`, each with `name`, `pci`, `parent`, `firmware`, `guid` and its `ports`; `interfaces`, each
        with `name`, `kind`, `pci` and `mode`; `kernel`, its release; `soft_roce`, whether it has the module
        of soft RoCE; and `gpudirect`, what is there of it.
    """
    interfaces = [
        _interface(folder) for folder in sorted((root / "sys/class/net").glob("*")) if folder.is_dir()
    ]
    adapters = [_adapter(folder, root) for folder in sorted((root / "sys/class/infiniband").glob("*"))]
    return {
        "adapters": adapters,
        "interfaces": interfaces,
        "kernel": os.uname().release,
        "soft_roce": _has_module(root, SOFT_ROCE),
        "gpudirect": _gpudirect(root),
    }


def addresses() -> dict[str, list[str]]:
    """Return the addresses of IPv4 of each interface by its name.

    Raises:
        FabricError: the addresses cannot be listed.
    """
    try:
        answer = timed.run(["ip", "-json", "-4", "address", "show"], SECONDS)
    except OSError as error:
        raise FabricError(f"ip cannot be run: {error.strerror}; install iproute2.") from None
    if answer.status != 0:
        raise FabricError(f"ip does not list the addresses: {' '.join(answer.errors.split())}; run again.")
    return parse.addresses(json.loads(answer.output))


def _text(path: Path) -> str:
    """Return what a file holds; empty if there is none, or the kernel does not tell it."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""


def _pci(folder: Path) -> str:
    """Return the address of the PCI device of an adapter or interface; empty if it has none."""
    device = folder / "device"
    name = device.resolve().name if device.exists() else ""
    return name if _PCI.fullmatch(name) else ""


def _interface(folder: Path) -> dict[str, str]:
    return {
        "name": folder.name,
        "kind": KINDS.get(_text(folder / "type"), "other"),
        "pci": _pci(folder),
        "mode": _text(folder / "mode"),
    }


def _adapter(folder: Path, root: Path) -> dict[str, Any]:
    ports = sorted((path for path in (folder / "ports").glob("*")), key=lambda path: int(path.name))
    return {
        "name": folder.name,
        "pci": _pci(folder),
        # Devices without hardware tell the interface below them.
        "parent": _text(folder / "parent"),
        "firmware": _text(folder / "fw_ver"),
        "guid": _text(folder / "node_guid"),
        "ports": [_port(path, folder, root) for path in ports],
    }


def _port(path: Path, adapter: Path, root: Path) -> dict[str, Any]:
    counters = {
        one.name: _text(one)
        for kind in ("counters", "hw_counters")
        for one in (path / kind).glob("*")
        if one.is_file()
    }
    return {
        "number": int(path.name),
        "state": parse.state(_text(path / "state")),
        "physical_state": parse.state(_text(path / "phys_state")),
        "rate": parse.rate(_text(path / "rate")),
        "link_layer": _text(path / "link_layer"),
        "interface": _interface_of(path, adapter, root),
        "errors": parse.errors(counters),
    }


def _interface_of(path: Path, adapter: Path, root: Path) -> str:
    """Return the interface that carries IP on a port; empty if there is none.

    RoCE tells it beside its first address. IPoIB is an interface of the same device, whose `dev_port` counts
    ports from 0 (Linux, Documentation/ABI/testing/sysfs-class-net).
    """
    if told := _text(path / "gid_attrs/ndevs/0") or _text(adapter / "parent"):
        return told
    same = [
        folder
        for folder in sorted((adapter / "device/net").glob("*"))
        if int(_text(root / "sys/class/net" / folder.name / "dev_port") or 0) == int(path.name) - 1
    ]
    return same[0].name if same else ""


def _has_module(root: Path, name: str) -> bool:
    """Return whether the running kernel has a module, loaded, built in, or as a file (modprobe(8))."""
    if (root / "sys/module" / name).exists():
        return True
    folder = root / "lib/modules" / os.uname().release
    listed = _text(folder / "modules.dep") + "\n" + _text(folder / "modules.builtin")
    return bool(re.search(rf"/{name}\.ko(\.\w+)?(:|$)", listed, re.MULTILINE))


def _gpudirect(root: Path) -> dict[str, str]:
    """Return for each module by which adapters reach the memory of GPUs ``absent``, ``loaded`` or ``usable``.

    A nvidia_peermem that was built without the headers of the vendor's driver loads, and registers nowhere;
    the core of RDMA lists those that did. Copies by gdrcopy need its device.
    """
    device = root / "dev/gdrdrv"
    usable = {
        "nvidia_peermem": any((root / "sys/kernel/mm/memory_peers").glob("nv*")),
        "gdrdrv": device.exists() and stat.S_ISCHR(device.stat().st_mode),
    }
    return {
        name: ("usable" if usable[name] else "loaded") if (root / "sys/module" / name).exists() else "absent"
        for name in usable
    }
