# SPDX-License-Identifier: GPL-3.0-or-later
"""Who the users are: logins, accounts and homes."""
