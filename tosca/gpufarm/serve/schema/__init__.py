# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions of the tables, which alembic applies."""
