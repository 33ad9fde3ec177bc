# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the machines of a cluster, of which the role slurm_controller makes one. No I/O."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from . import gres

# A name of a host in the sense of RFC 1123; brackets and commas are Slurm's own (slurm.conf(5), "NodeName").
HOST_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?")

VARIABLE = "slurm_controller_gres"


def problems(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield why machines cannot be a cluster; the arguments are those of `controller.plan`."""
    controllers, members = settings["controllers"], settings["members"]
    hosts: dict[str, str] = {}
    read = {}
    for name in dict.fromkeys([*controllers, *members]):
        machine = machines.get(name, {})
        if "hostname" not in machine:
            yield (
                f"{name} of the cluster cannot be read: {machine.get('msg') or 'no answer.'} Mend it, or"
                " leave it out."
            )
            continue
        read[name] = machine
        host = machine["hostname"]
        if not HOST_NAME.fullmatch(host):
            yield f"{name} calls itself {host!r}, which cannot be a name in Slurm; give it another host name."
        if host in hosts:
            yield f"{name} and {hosts[host]} both call themselves {host}; give each a host name of its own."
        hosts[host] = name
        if name in members:
            try:
                gres.offered(machine["devices"])
            except gres.Ambiguous as error:
                yield f"{name}: {error}"
    yield from other_releases(controllers[0], read)


def other_releases(first: str, machines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield which machines have another release than the first controller; each has or will have one."""
    releases = {name: one["installed_release"] or one["offered_release"] for name, one in machines.items()}
    for name, found in releases.items():
        if found and releases.get(first) and found != releases[first]:
            yield (
                f"{name} has Slurm {found} and the controller {first} has {releases[first]}, which do not"
                " understand each other; use machines with the same release of the distribution."
            )


def unexpected(
    wanted: Mapping[str, Mapping[str, int]], offered: Mapping[str, Mapping[str, int]]
) -> Iterator[str]:
    """Yield which nodes have other GPUs than a site expects of them; both are by type and by node."""
    for name, types in wanted.items():
        if name not in offered:
            yield f"{VARIABLE} names {name}, and slurm_controller_nodes does not; correct one of them."
        elif not isinstance(types, Mapping):
            yield f"{VARIABLE} has {types!r} for {name}; give counts by type, such as 1g.10gb: 7."
        elif dict(types) != dict(offered[name]):
            yield (
                f"{VARIABLE} expects {gres.line(types) or 'no GPU'} of {name}, which has"
                f" {gres.line(offered[name]) or 'no GPU'}; partition them with the role mig, or correct it."
            )
