# SPDX-License-Identifier: GPL-3.0-or-later
"""Find the Python of an image's own kernel, and have it run `run.py`.

usage: python -I start.py kernel -f FILE
       python -I start.py command WORD ...    (as gpufarm-environment)

The Python of the notebook server in the image runs it; that may be older than 3.11.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from string import Template
from typing import Any

from jupyter_core.paths import jupyter_path

HERE = Path(__file__).resolve().parent
NAME = "python3"  # of the kernel whose place ours takes
LAUNCHERS = ("ipykernel", "ipykernel_launcher")


def own_kernel() -> dict[str, Any]:
    """Return the description of the image's own kernel, as Jupyter finds it without ours."""
    for folder in map(Path, jupyter_path("kernels")):
        file = folder / NAME / "kernel.json"
        if folder.resolve() != HERE / "kernels" and file.is_file():
            found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            return found
    return {"argv": ["python3", "-m", LAUNCHERS[1], "-f", "{connection_file}"]}


def main() -> None:
    """Become the kernel, or the command.

    Another kernel than IPython's, and one of a Python in the home, starts as it is.
    """
    what, *words = sys.argv[1:]
    kernel = own_kernel()
    python, *rest = kernel["argv"]
    # As in Jupyter Client: the Python of the notebook server.
    python = sys.executable if python.startswith("python") else python
    variables = {
        name: Template(text).safe_substitute(os.environ) for name, text in kernel.get("env", {}).items()
    }
    if {*LAUNCHERS} & {*rest} and Path.home() not in Path(python).parents:
        command = [python, "-I", str(HERE / "run.py"), what, *words]
    elif what == "kernel":
        command = [python, *(word.replace("{connection_file}", words[-1]) for word in rest)]
    else:
        sys.exit("The kernel of this image is none over which packages can be added.")
    os.execvpe(command[0], command, {**os.environ, **variables})  # noqa: S606


if __name__ == "__main__":
    main()
