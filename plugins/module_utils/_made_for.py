# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For whom an app or a job was made, so that no other deployment changes or removes it. No I/O."""

from __future__ import annotations

from typing import Any

# Label of apps, and variable in the environment of jobs, which have no labels.
MADE_FOR = "GPUFARM_MADE_FOR"
# Options of the modules that make them.
OPTIONS: dict[str, dict[str, Any]] = {
    "made_for": {"type": "str", "default": ""},
    "take_over": {"type": "bool", "default": False},
}


def foreign(holder: str | None, params: dict[str, Any]) -> bool:
    """Tell whether something was made for somebody else.

    Args:
        holder: for whom it says it was made; empty if it does not say, None if it is not there.
        params: of the module: ``made_for`` and ``take_over``.

    Returns:
        True if it may be neither changed nor removed.
    """
    return holder not in (None, params["made_for"]) and not params["take_over"]


def refusal(thing: str) -> str:
    """Say why something is not changed.

    The sentence names nobody: users read it who may not know of the other deployment.

    Args:
        thing: such as ``app /ada/notebook``.

    Returns:
        A sentence for users.
    """
    return (
        f"The {thing} is there and was not made for this deployment; choose another name, or take it over by"
        " gpufarm_take_over."
    )
