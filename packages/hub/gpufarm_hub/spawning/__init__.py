# SPDX-License-Identifier: GPL-3.0-or-later
"""How notebooks are started, by systemd and by Docker."""
