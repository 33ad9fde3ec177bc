# SPDX-License-Identifier: GPL-3.0-or-later
"""What the hub's units and its administrators run: certificates, backups, keys, the proxy."""
