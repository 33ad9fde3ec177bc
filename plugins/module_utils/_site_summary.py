# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a run that set up a site: addresses, users, slices, next step. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any


def summary(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return some lines about the hubs and slices of a site; empty if there are neither.

    Args:
        results: for each host the results of the roles `jupyterhub` and `mig`, by their names, where a role
            was run.
    """
    lines = []
    for host, found in results.items():
        hub, slices = found.get("jupyterhub"), found.get("mig", {}).get("slices")
        if hub:
            lines += [f"{host}: hub {hub['endpoint']}", f"  users: members of {_listed(hub['groups'])}"]
        elif slices:
            lines.append(f"{host}:")
        if slices:
            lines.append(f"  slices: {_slices(slices)}")
        if hub:
            lines += [f"  next: {step}" for step in _next(host, hub)]
    return "\n".join(lines)


def _slices(slices: Iterable[Mapping[str, str]]) -> str:
    counts = Counter(one["profile"] for one in slices)
    return ", ".join(f"{count}x {profile}" for profile, count in counts.items())


def _next(host: str, hub: Mapping[str, Any]) -> Iterable[str]:
    if hub["ca_certificate"]:
        yield f"import /etc/jupyterhub/tls/ca.crt of {host} into browsers, which do not know its authority"
    yield f"open {hub['endpoint']}, log in and start a notebook"


def _listed(groups: Iterable[str]) -> str:
    return ", ".join(groups) or "no group, only the owner"
