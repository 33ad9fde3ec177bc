# SPDX-License-Identifier: GPL-3.0-or-later
"""Pages of the service itself, for sites without the dashboard."""
