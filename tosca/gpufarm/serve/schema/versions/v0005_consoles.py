# SPDX-License-Identifier: GPL-3.0-or-later
"""Output of tasks, and the readings of it."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "consoles",
        sa.Column("deployment", sa.String(36), nullable=False),
        *(sa.Column(name, sa.Double, nullable=False) for name in ("asked", "begun", "read")),
        sa.Column("failure", sa.Text, nullable=False),
        sa.ForeignKeyConstraint(
            ["deployment"], ["deployments.uuid"], name="fk_consoles_deployment_deployments"
        ),
        sa.PrimaryKeyConstraint("deployment", name="pk_consoles"),
    )
    op.create_index("ix_consoles_asked", "consoles", ["asked"])
    op.create_table(
        "tasks",
        sa.Column("deployment", sa.String(36), nullable=False),
        sa.Column("key", sa.String(64), nullable=False),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("id", "node", "machine", "state", "reason")),
        *(sa.Column(name, sa.Double, nullable=False) for name in ("begun", "ended", "read")),
        *(sa.Column(name, sa.Text, nullable=False) for name in ("stdout", "stderr", "unread")),
        sa.Column("cut", sa.JSON, nullable=False),
        sa.ForeignKeyConstraint(["deployment"], ["deployments.uuid"], name="fk_tasks_deployment_deployments"),
        sa.PrimaryKeyConstraint("deployment", "key", name="pk_tasks"),
    )
