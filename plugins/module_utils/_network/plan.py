# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files and checks that the settings of the role network result in. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from . import files, request
from .machine import expected
from .machine import problems as problems_of

# Seconds. Switches that look for loops let traffic pass after 30 (IEEE 802.1D, 17.14); a machine that waits
# for long is unreachable for as long.
LEAST_WAIT, MOST_WAIT = 30, 900


def plan(settings: Mapping[str, Any], machine: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return what the role writes.

    Args:
        settings: the variables of the role without its name.
        machine: the result of the module `network_info` and the `name` of the machine; None if unknown.

    Returns:
        `problems`; if there are none, also `files` of systemd-networkd by name, what is `expected` of the
        machine then, and `bonds`: `name`, `members` and
        the `gateways` that are reached over it.
    """
    interfaces = [request.parse(entry) for entry in settings["interfaces"]]
    problems = request.problems(interfaces)
    if not interfaces:
        problems.append(
            "network_interfaces has no interface, so there is nothing to configure; declare some, or set "
            "network_state: absent to remove those of an earlier run."
        )
    wait = settings["confirm_seconds"]
    if not LEAST_WAIT <= wait <= MOST_WAIT:
        problems.append(
            f"network_confirm_seconds is {wait}, so a machine that is lost would come back too early or too "
            f"late; choose {LEAST_WAIT} to {MOST_WAIT}."
        )
    if machine is not None and not problems:
        problems = problems_of(interfaces, machine)
    if problems:
        return {"problems": problems}
    return {
        "problems": [],
        "files": files.render(interfaces),
        "expected": expected(interfaces),
        "bonds": [_bond(one, interfaces) for one in interfaces if one.kind == request.BOND],
    }


def _bond(bond: request.Interface, interfaces: Iterable[request.Interface]) -> dict[str, Any]:
    over = [one for one in interfaces if bond.name in (one.name, one.over)]
    gateways = dict.fromkeys(via for one in over for _to, via in one.routes)
    return {"name": bond.name, "members": list(bond.members), "gateways": list(gateways)}
