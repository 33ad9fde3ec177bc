# SPDX-License-Identifier: GPL-3.0-or-later
"""How long tokens of the hub's API live."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

LIFETIME = 30 * 24 * 3600  # seconds; at most, and by default


def limit(database: Path) -> None:
    """Give users' tokens without an end one: JupyterHub's own limit is for new tokens only.

    Tokens of notebooks end with the notebook.

    Args:
        database: the hub's, while no hub uses it; it need not be there yet.

    Raises:
        sqlite3.Error: it cannot be changed.
    """
    if not database.exists():
        return
    end = datetime.now(UTC).replace(tzinfo=None) + timedelta(seconds=LIFETIME)
    connection = sqlite3.connect(database)
    with closing(connection), connection:
        if connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'api_tokens'").fetchone():
            connection.execute(
                "UPDATE api_tokens SET expires_at = ? WHERE expires_at IS NULL AND user_id IS NOT NULL "
                "AND coalesce(note, '') NOT LIKE 'Server at %'",
                (end.isoformat(" ", "microseconds"),),
            )
