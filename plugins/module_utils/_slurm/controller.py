# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan that results from the settings of the role slurm_controller. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import configuration, gres, machines_fit, settings_fit


def plan(
    settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]] | None = None, current: str = ""
) -> dict[str, Any]:
    """Return `problems` and, as soon as machines are known, what the configuration is made of.

    These are `options` by name, `hosts`, `nodes` and `partitions` as lines, `constrained` for cgroup.conf,
    `container` for job_container.conf, `gres` of each node, `regrouped`, the nodes whose GPUs or slices
    change, `removed`, those that go, and `needs_empty_nodes`, whether jobs that run could not go on.

    Args:
        settings: variables of the role without its name; also `controllers` and `members`, the machines that
            `hosts` and `nodes` name, and their `addresses`.
        machines: by their names in the inventory, as the module slurm_machine_info describes them, or with
            `msg`, why they cannot be read.
        current: the slurm.conf that the role wrote before; empty if there is none.
    """
    settings = {**settings, "partitions": _by_names(settings["partitions"], settings["addresses"])}
    problems = [*settings_fit.problems(settings)]
    if problems or machines is None:
        return {"problems": problems}
    problems = [*machines_fit.problems(settings, machines)]
    if problems:
        return {"problems": problems}
    offered = {name: gres.offered(machines[name]["devices"]) for name in settings["members"]}
    problems = [*machines_fit.unexpected(settings["gres"], offered)]
    if problems:
        return {"problems": problems}
    names = {name: machines[name]["hostname"] for name in offered}
    lines = {names[name]: gres.line(types) for name, types in offered.items()}
    members, addresses = [machines[name] for name in offered], settings["addresses"]
    return {
        "problems": [],
        "options": configuration.options(
            settings,
            {kind for types in offered.values() for kind in types},
            min(configuration.usable_memory(one) // one["cpus"] for one in members),
        ),
        "hosts": [f"{machines[name]['hostname']}({addresses[name]})" for name in settings["controllers"]],
        "nodes": [
            configuration.node(machines[name], addresses[name], lines[names[name]]) for name in offered
        ],
        "partitions": [
            configuration.partition(one, [names[name] for name in one.get("nodes") or []])
            for one in settings["partitions"]
        ],
        "constrained": {
            option: "yes" if kind in settings["constrain"] else "no"
            for kind, option in configuration.CONSTRAIN.items()
        },
        "container": configuration.line(configuration.CONTAINER),
        "gres": lines,
        "regrouped": configuration.regrouped(configuration.gres(current), lines),
        "removed": configuration.removed(configuration.gres(current), lines),
        "needs_empty_nodes": configuration.needs_empty_nodes(current),
    }


def _by_names(partitions: list[Mapping[str, Any]], addresses: Mapping[str, str]) -> list[Mapping[str, Any]]:
    """Partitions whose nodes have their names in the inventory, as an orchestrator knows addresses."""
    names = {address: name for name, address in addresses.items()}
    return [
        {**one, "nodes": [names.get(node, node) for node in one.get("nodes") or []]} for one in partitions
    ]
