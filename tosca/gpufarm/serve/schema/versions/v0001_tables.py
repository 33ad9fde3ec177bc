# SPDX-License-Identifier: GPL-3.0-or-later
"""The first tables."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_COUNT = sa.BigInteger().with_variant(sa.Integer, "sqlite")
_RUNNING = sa.text("state = 'running'")


def upgrade() -> None:
    """Make the tables."""
    op.create_table(
        "deployments",
        sa.Column("uuid", sa.String(36), nullable=False),
        sa.Column("issuer", sa.String(512), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("user_group", sa.String(256), nullable=False),
        sa.Column("status", sa.String(32), nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("template", sa.String(128), nullable=False),
        sa.Column("text", sa.Text, nullable=False),
        sa.Column("parameters", sa.JSON, nullable=False),
        sa.Column("secrets", sa.Text, nullable=False),
        sa.Column("machines", sa.Integer, nullable=False),
        sa.Column("outputs", sa.JSON, nullable=False),
        sa.Column("resources", sa.JSON, nullable=False),
        sa.Column("callback", sa.Text, nullable=False),
        sa.Column("timeout", sa.Integer, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("updated", sa.Double, nullable=False),
        sa.PrimaryKeyConstraint("uuid", name="pk_deployments"),
    )
    op.create_index("ix_deployments_owner", "deployments", ["issuer", "subject", "created"])
    op.create_table(
        "runs",
        sa.Column("id", _COUNT, nullable=False),
        sa.Column("deployment", sa.String(36), nullable=False),
        sa.Column("kind", sa.String(8), nullable=False),
        sa.Column("state", sa.String(12), nullable=False),
        sa.Column("cancel", sa.Boolean, nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(128), nullable=False),
        sa.Column("lease", sa.Double, nullable=False),
        sa.Column("created", sa.Double, nullable=False),
        sa.Column("began", sa.Double, nullable=False),
        sa.Column("ended", sa.Double, nullable=False),
        sa.Column("log", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.ForeignKeyConstraint(["deployment"], ["deployments.uuid"], name="fk_runs_deployment_deployments"),
    )
    op.create_index(
        "ix_runs_one_at_a_time",
        "runs",
        ["deployment"],
        unique=True,
        sqlite_where=_RUNNING,
        postgresql_where=_RUNNING,
    )
    op.create_index("ix_runs_state", "runs", ["state"])
    op.create_table(
        "callbacks",
        sa.Column("id", _COUNT, nullable=False),
        sa.Column("deployment", sa.String(36), nullable=False),
        sa.Column("url", sa.Text, nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
        sa.Column("failure", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_callbacks"),
        sa.ForeignKeyConstraint(
            ["deployment"], ["deployments.uuid"], name="fk_callbacks_deployment_deployments"
        ),
    )
    op.create_index("ix_callbacks_due", "callbacks", ["state", "due"])
    op.create_table(
        "audit",
        sa.Column("id", _COUNT, nullable=False),
        sa.Column("time", sa.Double, nullable=False),
        sa.Column("issuer", sa.String(512), nullable=False),
        sa.Column("subject", sa.String(255), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("deployment", sa.String(36), nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
    )
    op.create_index("ix_audit_time", "audit", ["time"])
    op.create_index("ix_audit_deployment", "audit", ["deployment"])
