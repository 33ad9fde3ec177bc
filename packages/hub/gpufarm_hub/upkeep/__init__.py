# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the hub's units and administrators: certificates, backups, keys, the proxy."""
