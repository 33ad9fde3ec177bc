# SPDX-License-Identifier: GPL-3.0-or-later
"""How long tokens of the hub's API live."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

COOKIES = 14 * 24 * 3600  # seconds that a login at a notebook lives: JupyterHub's own default


def configure(c: Any, hours: float, database: Path) -> None:
    """Configure how long tokens live, and shorten those that there are.

    Args:
        c: the hub's configuration object.
        hours: at most, and by default.
        database: the hub's, while no hub uses it; it need not be there yet.
    """
    lifetime = round(3600 * hours)
    limit(database, lifetime)
    c.JupyterHub.token_expires_in_max_seconds = lifetime
    c.JupyterHub.oauth_token_expires_in = min(lifetime, COOKIES)


def limit(database: Path, lifetime: int) -> None:
    """End users' tokens in time: JupyterHub's own limit is for new tokens only.

    Tokens of notebooks end with the notebook.

    Args:
        database: the hub's, while no hub uses it; it need not be there yet.
        lifetime: seconds from now on.

    Raises:
        sqlite3.Error: it cannot be changed.
    """
    if not database.exists():
        return
    end = (datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=lifetime)).isoformat(
        " ", "microseconds"
    )
    connection = sqlite3.connect(database)
    with closing(connection), connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'api_tokens'").fetchone():
            connection.execute(
                "UPDATE api_tokens SET expires_at = ? WHERE (expires_at IS NULL OR expires_at > ?) "
                "AND user_id IS NOT NULL AND coalesce(note, '') NOT LIKE 'Server at %'",
                (end, end),
            )
