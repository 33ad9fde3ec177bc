# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Variables that look like those of a role and are none. No I/O."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable

# Facts that roles set for playbooks.
RESULT = "_result"


def misspelt(role: str, given: Iterable[str], known: Collection[str], roles: Iterable[str]) -> list[str]:
    """Return a sentence for each variable that begins with the name of a role and is none of its variables.

    Args:
        role: the role.
        given: names of all variables of a host.
        known: names of the variables of the role.
        roles: names of all roles. A variable belongs to the role with the longest name that it begins with:
            `marathon_app_urls` to `marathon_app`.
    """
    beginning = f"{role}_"
    longer = tuple(f"{other}_" for other in roles if other.startswith(beginning))
    words = {name[len(beginning) :]: name for name in sorted(known)}
    found = []
    for name in sorted(given):
        if not name.startswith(beginning) or name.startswith(longer) or name.endswith(RESULT):
            continue
        if name not in known:
            near = difflib.get_close_matches(name[len(beginning) :], words, n=1)
            step = (
                f"did you mean {words[near[0]]}?"
                if near
                else "remove it, or see the table in the role's README."
            )
            found.append(f"{name} is no variable of the role {role}; {step}")
    return found
