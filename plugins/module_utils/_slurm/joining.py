# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of a machine that joins a Slurm cluster, as a node or for its users. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .machines_fit import other_releases


def problems(
    role: str, settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    """Yield what keeps a machine from joining, a sentence each.

    Args:
        role: name of the role.
        settings: variables of the role without its name, among them `controllers` and, unless the role reads
            it elsewhere, `controller_port`; also `found`, the controllers that the inventory has.
        machines: the machine and the first controller by their names in the inventory, as the module
            slurm_machine_info describes them, or with `msg`, why they cannot be read.
    """
    wanted, found = settings["controllers"], settings["found"]
    if len(found) < len(wanted) or not found:
        yield (
            f"{role}_controllers names {', '.join(wanted) or 'no machine'}, and the inventory has only"
            f" {', '.join(found) or 'others'} of them; give names or addresses that it has."
        )
    port = settings.get("controller_port", 1)
    if not 0 < port < 65536:
        yield f"{role}_controller_port is {port}, which is no port; give a number from 1 to 65535."
    read = {one: machine for one, machine in machines.items() if "hostname" in machine}
    for one in machines.keys() - read.keys():
        yield f"{one} cannot be read: {machines[one].get('msg') or 'no answer.'} Mend it first."
    if found:
        yield from other_releases(found[0], read)
