# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel itself: once it is ready, the layer counts as one that a kernel can start in."""

from __future__ import annotations

import sys
from pathlib import Path

from . import marks


def main() -> None:
    """Run the kernel."""
    from ipykernel.kernelapp import IPKernelApp  # what a user installed may break this

    kernel = IPKernelApp.instance()
    kernel.initialize()
    marks.clear(Path(sys.prefix))
    kernel.start()


if __name__ == "__main__":
    main()
