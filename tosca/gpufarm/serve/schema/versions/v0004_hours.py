# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours that users held resources, and the machines that tell them."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

_HOLDER = (("deployment", 36), ("issuer", 512), ("template", 128))
_HOURS = ("slice_hours", "gpu_hours", "cpu_hours", "memory_gib_hours")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "uses",
        sa.Column("key", sa.String(64), nullable=False),
        sa.Column("month", sa.String(7), nullable=False),
        *(
            sa.Column(name, sa.Text, nullable=False)
            for name in ("login", "account", "source", "profile", "machine")
        ),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in _HOLDER),
        sa.Column("project", sa.String(256), nullable=False),
        *(sa.Column(name, sa.Double, nullable=False) for name in _HOURS),
        sa.PrimaryKeyConstraint("key", name="pk_uses"),
    )
    op.create_index("ix_uses_login", "uses", ["login", "month"])
    op.create_index("ix_uses_month", "uses", ["month"])
    op.create_table(
        "sources",
        sa.Column("machine", sa.Text, nullable=False),
        *(sa.Column(name, sa.String(length), nullable=False) for name, length in _HOLDER),
        sa.Column("asked", sa.Double, nullable=False),
        sa.Column("answered", sa.Double, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("machine", name="pk_sources"),
    )
