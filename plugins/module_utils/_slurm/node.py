# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems that result from the settings of the role slurm_node. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from .machines_fit import other_releases


def plan(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `problems`.

    Args:
        settings: variables of the role without its name; also `name`, that of the machine in the inventory,
            and `found`, the controllers that the inventory has.
        machines: this machine and the first controller by their names in the inventory, as the module
            slurm_machine_info describes them, or with `msg`, why they cannot be read.
    """
    return {"problems": [*_problems(settings, machines)]}


def _problems(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    wanted, found, name = settings["controllers"], settings["found"], settings["name"]
    if len(found) < len(wanted) or not found:
        yield (
            f"slurm_node_controllers names {', '.join(wanted) or 'no machine'}, and the inventory has only"
            f" {', '.join(found) or 'others'} of them; give names or addresses that it has."
        )
    if not 0 < settings["controller_port"] < 65536:
        port = settings["controller_port"]
        yield f"slurm_node_controller_port is {port}, which is no port; give a number from 1 to 65535."
    read = {one: machine for one, machine in machines.items() if "hostname" in machine}
    for one in machines.keys() - read.keys():
        yield f"{one} cannot be read: {machines[one].get('msg') or 'no answer.'} Mend it first."
    own = read.get(name)
    if own and own["devices"] and settings["source"] == "distribution" and _lacks_plugin(own):
        yield (
            f"{name} has GPUs, and apt offers no slurm-wlm-nvml-plugin, by which Slurm finds them; add the"
            " component contrib to its sources."
        )
    if found:
        yield from other_releases(found[0], read)


def _lacks_plugin(machine: Mapping[str, Any]) -> bool:
    # Without any package of Slurm, the lists of apt are empty so far.
    return bool(machine["offered_release"]) and not machine["nvml_plugin"]
