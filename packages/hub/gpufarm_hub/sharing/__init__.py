# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU slices: who holds which, who waits, when they are given back."""
