# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems that result from the settings of the role slurm_login. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import joining


def plan(settings: Mapping[str, Any], machines: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the `problems`.

    Args:
        settings: variables of the role without its name; also `name`, that of the machine in the inventory,
            `found`, the controllers that the inventory has, and `beside`, other daemons of Slurm there.
        machines: this machine and the first controller, as `joining.problems` takes them.
    """
    others = [
        f"{settings['name']} runs {daemon}, so its users can submit jobs already; take it out of the group"
        " slurm_login."
        for daemon in settings["beside"]
    ]
    return {"problems": [*joining.problems("slurm_login", settings, machines), *others]}
