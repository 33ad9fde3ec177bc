# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns states of older versions of gpufarm into that of this one. Pure."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

# Version of the state. Raise it when older programs would lose or misread something, and add a migration.
FORMAT = 4


class Newer(Exception):
    """The state is of a newer version of gpufarm."""


def _with_id(content: dict[str, Any]) -> dict[str, Any]:
    """Give the deployment an id: always the same one, as a state may be read often before it is written."""
    made = uuid.uuid5(uuid.NAMESPACE_OID, f"gpufarm deployment {content['name']} of {content['created']}")
    return {"id": str(made), **content}


def _with_defaults(content: dict[str, Any]) -> dict[str, Any]:
    return {"defaults": {}, **content}


def _with_freed(content: dict[str, Any]) -> dict[str, Any]:
    return {"freed": {}, **content}


# By version: the function that makes the next version of it.
_STEPS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {
    1: _with_id,
    2: _with_defaults,
    3: _with_freed,
}


def migrated(content: Any) -> dict[str, Any]:
    """Bring a state up to date.

    Args:
        content: as it was written, of any version.

    Returns:
        As this version writes it, without the version.

    Raises:
        Newer: it is of a newer version.
        ValueError: it is no state at all.
    """
    version = content.get("format") if isinstance(content, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < min(_STEPS):
        raise ValueError("it is no state of a deployment")
    if version > FORMAT:
        raise Newer(
            f"has format {version}, of a newer gpufarm; this one reads formats up to {FORMAT}, "
            "so install the newer one"
        )
    found = {key: value for key, value in content.items() if key != "format"}
    for older in range(version, FORMAT):
        found = _STEPS[older](found)
    return found
