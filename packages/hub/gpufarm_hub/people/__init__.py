# SPDX-License-Identifier: GPL-3.0-or-later
"""Identities of users: logins, accounts and homes."""
