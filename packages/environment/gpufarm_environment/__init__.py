# SPDX-License-Identifier: GPL-3.0-or-later
"""A shared, read-only Python environment, and over it a layer for the packages of each user."""
