# SPDX-License-Identifier: GPL-3.0-or-later
"""Alembic calls this file; `gpufarm.serve.database` gives the connection, in a transaction."""

from __future__ import annotations

from alembic import context

from gpufarm.serve.tables import Table

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Table.metadata,
    render_as_batch=True,
)
context.run_migrations()
