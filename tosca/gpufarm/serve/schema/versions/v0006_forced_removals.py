# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a removal gives up machines that the pool lacks."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the column."""
    op.add_column("runs", sa.Column("force", sa.Boolean, nullable=False, server_default=sa.false()))
