# SPDX-License-Identifier: GPL-3.0-or-later
"""Start the kernel of an image in the layer of the user, or look after that layer.

usage: python -I run.py kernel -f FILE
       python -I run.py command WORD ...    (as gpufarm-environment)

The Python of the image's kernel runs it; one that is too old for layers starts the kernel as the image does.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

OLDEST = (3, 11)  # has the option -P


def main() -> None:
    """Become the kernel, or run the command."""
    what, *words = sys.argv[1:]
    if sys.version_info >= OLDEST:
        # After all packages of the image.
        sys.path.append(str(Path(__file__).resolve().parents[2]))
        os.environ["GPUFARM_IMAGE_PYTHON"] = sys.executable
        sys.argv = [what, *words]
        from gpufarm_environment import command, kernel

        sys.exit(kernel.main() if what == "kernel" else command.main())
    if what == "kernel":
        os.execv(sys.executable, [sys.executable, "-m", "ipykernel_launcher", *words])  # noqa: S606
    sys.exit("Packages can be added over images with Python 3.11 or later; this one has an older Python.")


if __name__ == "__main__":
    main()
