# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel itself: once its packages are loaded, the layer counts as one that a kernel can start in."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path

from .kernel import STARTING


def main() -> None:
    """Run the kernel."""
    from ipykernel import kernelapp  # what a user installed may break this

    with contextlib.suppress(OSError):
        (Path(sys.prefix) / STARTING.format(os.getpid())).unlink(missing_ok=True)
    kernelapp.launch_new_instance()


if __name__ == "__main__":
    main()
