# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Problems of the settings of the role slurm_accounts. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import accounts, reservations


def plan(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``problems``, what is wrong with what is declared, one sentence each.

    Args:
        settings: the variables of the role without ``slurm_accounts_``.
    """
    wrong = accounts.problems(settings["cluster"], settings["accounts"], settings["qos"])
    return {"problems": [*wrong, *reservations.problems(settings["reservations"])]}
