# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, units and checks that the settings of the role fabric result in. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from . import parse
from . import rails as all_rails
from .rails import INFINIBAND, PROCESSES, SOFT_ROCE, Rail

_FINGERPRINT = re.compile(r"[0-9A-Fa-f]{40}")
_PACKAGE = re.compile(r"[a-z0-9][a-z0-9+.-]+")


def plan(
    settings: Mapping[str, Any],
    machine: Mapping[str, Any] | None = None,
    offered: Mapping[str, Sequence[str]] | None = None,
    ucx: str | None = None,
) -> dict[str, Any]:
    """Return what the role writes and starts.

    Args:
        settings: the variables of the role without its name.
        machine: the result of the module `fabric_info` and the `name` of the machine; None if unknown.
        offered: the versions of packages in the vendor's source; None if unknown.
        ucx: what `ucx_info -d` prints for a user; None if it was not asked.

    Returns:
        `problems`; if there are none and the machine is known, also `rails` as MPI and others read them,
        `ucx`, settings of UCX, `udev`, rules for the modes of IPoIB, `ipoib`, the interfaces that are in
        another mode, `soft`, the devices of soft RoCE to be made, each with `name`, `interface` and whether
        it is `there`, `deviations` from what is declared, and the `result` of the role.
    """
    declared = all_rails.declared(settings["rails"])
    problems = [*_problems(declared), *_problems_of_source(settings, offered)]
    if problems or machine is None:
        return {"problems": problems}
    found, problems = all_rails.find(declared, machine)
    if settings["subnet_manager"] and not any(
        port["link_layer"] == "InfiniBand" for adapter in machine["adapters"] for port in adapter["ports"]
    ):
        problems.append(
            f"{machine['name']}: fabric_subnet_manager is true, and no port speaks InfiniBand, of which "
            "alone there are subnets; set it to false there."
        )
    if problems:
        return {"problems": problems}
    transports = parse.transports(ucx or "")
    infiniband = [rail for rail in found if rail.type == INFINIBAND and rail.interface]
    return {
        "problems": [],
        "rails": [_told(rail) for rail in found],
        "ucx": _ucx([rail for rail in found if rail.purpose == PROCESSES]),
        "ipoib": [rail.interface for rail in infiniband if all_rails.other_mode(rail, machine)],
        "udev": "".join(_rules(infiniband)),
        "soft": [
            {
                "name": rail.adapter,
                "interface": rail.interface,
                "there": all_rails.port_of(rail, machine) is not None,
            }
            for rail in found
            if rail.type == SOFT_ROCE
        ],
        # UCX sees no port that is down.
        "deviations": all_rails.deviations(found, machine)
        or list(_unseen(found, transports) if ucx is not None else ()),
        "result": {
            "rails": [_report(rail, machine) for rail in found],
            "gpudirect": {**machine["gpudirect"], "ucx": "usable" if "cuda_copy" in transports else "absent"},
        },
    }


def _problems(declared: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not declared:
        yield (
            "fabric_rails has no rail, so there is nothing to set up; declare some, or set fabric_state: "
            "absent to remove those of an earlier run."
        )
    yield from all_rails.problems(declared)


def _problems_of_source(
    settings: Mapping[str, Any], offered: Mapping[str, Sequence[str]] | None
) -> Iterator[str]:
    if settings["source"] != "repository":
        return
    needed = ("apt_url", "apt_suite", "apt_key_url", "apt_key_fingerprint", "vendor_packages")
    missing = [f"fabric_{key}" for key in needed if not settings[key]]
    if missing:
        yield (
            f"fabric_source is repository, which needs {' and '.join(missing)}; set what is missing, or take "
            "distribution."
        )
        return
    if not _FINGERPRINT.fullmatch(settings["apt_key_fingerprint"]):
        yield (
            f"fabric_apt_key_fingerprint is '{settings['apt_key_fingerprint']}', and a fingerprint has 40 "
            "hexadecimal digits without spaces; correct it."
        )
    if any(re.search(r"\s", settings[key]) for key in ("apt_url", "apt_suite", "apt_key_url")):
        yield "fabric_apt_url, fabric_apt_suite or fabric_apt_key_url has a space; write an address without."
    for name in settings["vendor_packages"]:
        if not _PACKAGE.fullmatch(name):
            yield f"fabric_vendor_packages has '{name}', which is no name of a package; correct it."
        elif offered is not None and name not in offered:
            yield (
                f"The package source {settings['apt_url']} has no {name}; correct fabric_vendor_packages or "
                "fabric_apt_url."
            )


def _told(rail: Rail) -> dict[str, Any]:
    """Return what others have to know of a rail."""
    return {
        "name": rail.name,
        "purpose": rail.purpose,
        "type": rail.type,
        "device": rail.device,
        "interface": rail.interface,
        "networks": list(rail.networks),
    }


def _ucx(rails: Sequence[Rail]) -> str:
    """Return settings of UCX: only the rails for processes.

    Their interfaces are named too, as UCX may make a connection over them before data go by RDMA.
    """
    if not rails:
        return ""
    devices = [rail.device for rail in rails] + [rail.interface for rail in rails if rail.interface]
    lines = [f"UCX_NET_DEVICES={','.join(dict.fromkeys(devices))}"]
    if any(rail.type == SOFT_ROCE for rail in rails):
        # UCX 1.18 loses the datagrams of soft RoCE, and aborts; connections come by TCP in place of them.
        lines.append("UCX_TLS=rc_verbs,tcp,self,sm")
    return "\n".join(lines)


def _rules(rails: Iterable[Rail]) -> Iterator[str]:
    """Yield rules of udev that set the mode of IPoIB, which systemd-networkd sets for partitions alone."""
    for rail in rails:
        yield (
            'ACTION=="add|change", SUBSYSTEM=="net", ATTR{type}=="32", '
            f'KERNEL=="{rail.interface}", ATTR{{mode}}="{rail.mode}"\n'
        )


def _unseen(rails: Iterable[Rail], transports: Mapping[str, Sequence[str]]) -> Iterator[str]:
    seen = {device for some in transports.values() for device in some}
    for rail in rails:
        if rail.purpose == PROCESSES and rail.device not in seen:
            yield (
                f"UCX, started by the account nobody, does not see {rail.device} of the rail {rail.name}; "
                "look at 'ucx_info -d' and the permissions of /dev/infiniband."
            )


def _report(rail: Rail, machine: Mapping[str, Any]) -> dict[str, Any]:
    found = all_rails.port_of(rail, machine)
    seen: dict[str, Any] = {}
    if found:
        adapter, port = found
        seen = {key: adapter[key] for key in ("firmware", "guid")}
        seen.update({key: port[key] for key in ("state", "physical_state", "rate", "errors")})
    return {**_told(rail), **seen}


def rails_of(text: str) -> list[dict[str, Any]]:
    """Return the rails for processes in the file that the role leaves for others.

    Args:
        text: what the file holds; empty without it.
    """
    return [rail for rail in json.loads(text or "[]") if rail["purpose"] == PROCESSES]
