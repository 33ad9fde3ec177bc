# SPDX-License-Identifier: GPL-3.0-or-later
"""Browsers that are signed in to the pages."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the table."""
    op.create_table(
        "logins",
        sa.Column("id", sa.String(64), nullable=False),
        sa.Column("issuer", sa.String(512), nullable=False),
        sa.Column("claims", sa.JSON, nullable=False),
        sa.Column("ends", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_logins"),
    )
    op.create_index("ix_logins_ends", "logins", ["ends"])
