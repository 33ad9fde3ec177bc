# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated ``libnvidia-ml.so.1`` with the rules of MIG, and a fake of the driver around it."""

from __future__ import annotations

from lab.nvmlsim.build import build
from lab.nvmlsim.install import install

__all__ = ["build", "install"]
