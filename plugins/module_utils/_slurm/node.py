# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems and rules of PAM that result from the settings of the role slurm_node. No I/O."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import joining, logins


def plan(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `problems`; without any also what `logins.plan` returns.

    Args:
        settings: variables of the role without its name; also `name`, that of the machine in the inventory,
            `found`, the controllers that the inventory has, and what `logins.problems` takes.
        machines: this machine and the first controller, as `joining.problems` takes them.
    """
    problems = [
        *joining.problems("slurm_node", settings, machines),
        *_gpus(settings, machines),
        *logins.problems(settings),
    ]
    return {"problems": problems} if problems else {"problems": [], **logins.plan(settings)}


def _gpus(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    own = machines.get(settings["name"], {})
    if own.get("devices") and settings["source"] == "distribution" and _lacks_plugin(own):
        yield (
            f"{settings['name']} has GPUs, and apt offers no slurm-wlm-nvml-plugin, by which Slurm finds"
            " them; add the component contrib to its sources."
        )


def _lacks_plugin(machine: Mapping[str, Any]) -> bool:
    # Without any package of Slurm, the lists of apt are empty so far.
    return bool(machine["offered_release"]) and not machine["nvml_plugin"]
