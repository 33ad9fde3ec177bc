# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Machines of the inventory that a server asks, and servers that may ask a machine. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from .receivers import ADDRESS


def problems(settings: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    """Check `machines`, `servers` and `hub_machines`, and the names in `targets` and `hubs`.

    Args:
        settings: the role's variables without ``monitoring_``.
        found: what the inventory knows. ``name`` is that of this machine, ``machines``, ``servers`` and
            ``hub_machines`` the names of those that the settings of the same names mean, and ``addresses``
            the host and port of each of ``machines``.

    Returns:
        Sentences.
    """
    wanted_of = {
        "machines": [*chain.from_iterable(settings["machines"])],
        "servers": settings["servers"],
        "hub_machines": [*chain.from_iterable(settings["hub_machines"])],
    }
    for variable, wanted in wanted_of.items():
        known = found[variable]
        if len(known) < len(wanted):
            yield (
                f"monitoring_{variable} names {', '.join(wanted)}, and the inventory has only"
                f" {', '.join(known) or 'others'} of them; give names or addresses that it has."
            )
    asked = {name: [*found[name]] for name in ("machines", "hub_machines")}
    asked |= {name: [one["name"] for one in settings[name]] for name in ("targets", "hubs")}
    for variable, names in asked.items():
        # Prometheus would not start, as two of its jobs would have one name.
        if found["name"] in names:
            yield (
                f"monitoring_{variable} names {found['name']}, which is this machine; leave it out, as a"
                " server asks its own parts and its own hub anyway."
            )
    for variable, other in (("machines", "targets"), ("hub_machines", "hubs")):
        named = Counter([*asked[variable], *asked[other]])
        for name in dict.fromkeys(asked[variable]):
            if named[name] > 1:
                yield (
                    f"The machine {name} is named twice in monitoring_{variable} and monitoring_{other}; name"
                    " each once."
                )
    for name, address in found["addresses"].items():
        if not ADDRESS.fullmatch(address):
            yield (
                f"'{address}', the address of {name} in monitoring_machines, is none of a host and a port;"
                " set ansible_host and monitoring_node_port of that machine."
            )


def targets(
    settings: Mapping[str, Any], found: Mapping[str, Any], certificates: Mapping[str, str]
) -> list[dict[str, str]]:
    """Return what the server asks on other machines, as entries of `targets`.

    Args:
        settings: as `problems` takes them.
        found: as `problems` takes it.
        certificates: of machines, by name; one without a certificate is left out, as nobody could tell it
            from another.
    """
    of_machines = [
        {"name": name, "address": found["addresses"][name], "certificate": certificates[name]}
        for name in found["machines"]
        if certificates.get(name)
    ]
    return [*settings["targets"], *of_machines]
