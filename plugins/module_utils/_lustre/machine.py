# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine compared with what clients and servers of Lustre need of it. No I/O.

A machine has one LNet, and one set of Lustre's packages: those of a server have the client in them and
replace the client's (source of Lustre, debian/control). So one role has written ``/etc/lnet.conf`` and owns
both. On a machine that serves it is lustre_server, also where lustre_client mounts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

LNET_FILE = "/etc/lnet.conf"
# A server mounts file systems after it has started its own targets.
SERVED = "gpufarm-lustre-served.target"
_MARK = re.compile(r"# Written by gpufarm\.cluster\.(lustre_client|lustre_server);")


def writer(text: str) -> str:
    """Return who has written a file: a role, ``other``, or nobody where it says nothing.

    Args:
        text: content of ``/etc/lnet.conf``; empty when there is none.
    """
    found = _MARK.match(text)
    if found:
        return found[1]
    said = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    return "other" if said else ""


def owner_problems(role: str, source: str, machine: Mapping[str, Any], host: str) -> Iterator[str]:
    """Yield why LNet and the packages of a machine are not a role's to set up.

    Args:
        role: ``lustre_client`` or ``lustre_server``.
        source: where its packages come from; ``server`` when the machine is also one.
        machine: what the module lustre_info returns.
        host: name of the machine, for people.
    """
    owner = machine["lnet"]["written_by"]
    alone = "run lustre_client there with lustre_client_state absent, and then lustre_server"
    if owner == "other":
        yield (
            f"{LNET_FILE} on {host} was not written by this role; move what it says into the role's"
            " variables and remove it."
        )
    elif owner == "lustre_server" and role == "lustre_client" and source != "server":
        yield (
            f"{host} serves Lustre, so its packages and LNet are those of lustre_server; set"
            " lustre_client_source to server."
        )
    elif owner == "lustre_client" and (role == "lustre_server" or source == "server"):
        yield (
            f"{host} was set up as a client alone, whose packages those of a server replace; {alone}, and"
            " lustre_client with lustre_client_source server."
        )


def machine_source_problems(
    prefix: str, settings: Mapping[str, Any], machine: Mapping[str, Any], host: str
) -> Iterator[str]:
    """Yield why the Lustre that is installed does not do, where a role installs none.

    Args:
        prefix: what the names of the variables begin with, such as ``lustre_client_``.
        settings: the role's variables without that.
        machine: what the module lustre_info returns.
        host: name of the machine, for people.
    """
    if settings["source"] != "preinstalled":
        return
    if not machine["installed"]:
        yield (
            f"{prefix}source is preinstalled, and {host} has no Lustre; install it, or set {prefix}source to"
            " repository."
        )
        return
    found = unfit(machine["kernels"], settings["version"])
    if found:
        yield modules_problem(found, settings["version"], host) + (
            f" Install them, or name the kernels that will boot in {prefix}kernels."
        )


def unfit(kernels: Sequence[Mapping[str, Any]], version: str) -> list[Mapping[str, Any]]:
    """Return the kernels that have no modules of a version of Lustre.

    Args:
        kernels: what the module lustre_info tells of them.
        version: of Lustre, of its package, or the beginning of one; empty for any.
    """
    wanted = _numbers(version)
    return [one for one in kernels if not one["fits"] or _numbers(one["version"])[: len(wanted)] != wanted]


def _numbers(version: str) -> list[str]:
    found = re.match(r"[0-9]+(\.[0-9]+)*", version)
    return found[0].split(".") if found else []


def modules_problem(found: Sequence[Mapping[str, Any]], version: str, host: str) -> str:
    """Return in a sentence what the kernels that unfit() returns have in place of modules."""
    there = [
        f"{one['release']} has "
        + (f"those of {one['version']} for {one['built_for']}" if one["built_for"] else "none")
        for one in found
    ]
    return (
        f"Kernels that will boot on {host} have no modules of Lustre{' ' + version if version else ''}:"
        f" {', '.join(there)}."
    )


def interface_problems(
    prefix: str, networks: Sequence[Mapping[str, Any]], machine: Mapping[str, Any], host: str
) -> Iterator[str]:
    """Yield what interfaces LNet cannot use; arguments as for machine_source_problems()."""
    known = machine["interfaces"]
    for network in networks:
        for interface in network["interfaces"]:
            if interface not in known:
                there = ", ".join(name for name in known if name != "lo")
                yield (
                    f"{host} has no interface {interface}, of {network['name']}; it has"
                    f" {there or 'none'}; correct {prefix}networks."
                )
            elif not known[interface]["addresses"]:
                yield (
                    f"The interface {interface} of {host} has no IPv4 address, which LNet needs; give it"
                    f" one, or leave it out of {prefix}networks."
                )


def addresses_of(names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the addresses of hosts that have one.

    Args:
        names: what the module lustre_info tells of names.
    """
    return {name: found[0] for name, found in names.items() if len(found) == 1}


def name_problems(
    where: str, wanted: Sequence[str], names: Mapping[str, Sequence[str]], host: str
) -> Iterator[str]:
    """Yield which hosts have no address that can stand in a NID.

    Args:
        where: name of the variable that has them.
        wanted: names of hosts.
        names: what the module lustre_info tells of them.
        host: name of the machine, for people.
    """
    for name in wanted:
        found = names.get(name, [])
        if not found:
            yield (
                f"{where} has the host {name}, which {host} finds no IPv4 address of; correct the name, or"
                " write the address."
            )
        elif len(found) > 1:
            yield (
                f"{where} has the host {name}, which has the addresses {' and '.join(found)}; write the"
                " one that is meant."
            )
        elif found[0].startswith("127."):
            yield (
                f"{where} has the host {name}, which is {found[0]} on {host}, an address that no other"
                " machine reaches; write the address, or correct /etc/hosts."
            )
