# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hub shows: pages, REST API, headers."""
