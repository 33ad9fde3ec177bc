# SPDX-License-Identifier: GPL-3.0-or-later
"""How notebooks are started: the engines, and what they have in common."""
