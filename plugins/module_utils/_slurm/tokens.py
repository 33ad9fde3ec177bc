# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of slurm.conf by which users get tokens (JSON Web Tokens) for slurmrestd. No I/O.

Source: slurm.conf(5) of Slurm 24.11, "AuthAltTypes" and "AuthAltParameters".
"""

from __future__ import annotations

from collections.abc import Iterator

TYPE = "auth/jwt"
# The role slurm_controller writes it for slurmctld.
KEY = "/etc/slurm/slurmctld-jwt.key"
# A year, as a token cannot be taken back.
MOST_HOURS = 8760
# The options, with the variables of the role slurm_controller that decide on them.
OWN = {"AuthAltParameters": "token_hours", "AuthAltTypes": "tokens"}


def options(hours: int) -> dict[str, str]:
    """Return the options by name.

    Args:
        hours: for how long users may have a token.
    """
    return {"AuthAltParameters": f"jwt_key={KEY},max_token_lifespan={hours * 3600}", "AuthAltTypes": TYPE}


def problems(variable: str, hours: int) -> Iterator[str]:
    """Yield a sentence if the hours, which a variable has, cannot be those of tokens."""
    if not 1 <= hours <= MOST_HOURS:
        yield f"{variable} is {hours}; give hours from 1 to {MOST_HOURS}."
