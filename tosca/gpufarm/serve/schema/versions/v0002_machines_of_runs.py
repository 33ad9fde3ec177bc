# SPDX-License-Identifier: GPL-3.0-or-later
"""The number of machines that a deployment holds when an update is done."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("runs", sa.Column("machines", sa.Integer, nullable=True))
