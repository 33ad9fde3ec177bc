# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps the routes of a gateway (HAProxy) as the apps of a Marathon ask for them."""
