# SPDX-License-Identifier: GPL-3.0-or-later
"""Web interface of the hub: pages, REST API, headers."""
