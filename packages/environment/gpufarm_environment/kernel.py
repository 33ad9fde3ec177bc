# SPDX-License-Identifier: GPL-3.0-or-later
"""Start a kernel in the layer of a user: ``python -I -m gpufarm_environment.kernel -f FILE``.

A kernel starts whatever is wrong with the layer. Then it has the packages of the shared environment only,
and the user is told why.
"""

from __future__ import annotations

import contextlib
import errno
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from . import marks, notice, shared
from .carry import RESULT
from .layer import Layer

# A start may also end as the notebook is stopped or killed for its memory; JupyterLab starts a kernel again.
FAILURES = 2
FULL = (errno.EDQUOT, errno.ENOSPC)


def environment(layer: Layer, python: Path, known: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables of a kernel: programs and pip are those of its Python.

    Args:
        python: the interpreter of the kernel, of the layer or of the shared environment.
        known: variables of the notebook server.
    """
    common = layer.shared
    folders = [
        str(python.parent),
        str(common.folder / "bin"),
        known.get("PATH", "/usr/local/bin:/usr/bin:/bin"),
    ]
    return {
        **{name: value for name, value in known.items() if name not in common.dropped},
        **common.variables,
        "PATH": ":".join(dict.fromkeys(folders)),
        "VIRTUAL_ENV": str(python.parents[1]),
        "PIP_USER": "0",  # some images set it, and pip refuses it in a layer
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "GPUFARM_ENVIRONMENT": common.name,
    }


def problem_of(layer: Layer) -> str:
    """Prepare the layer; return in a sentence why it cannot be used, empty if it can."""
    without = f"The kernel {layer.shared.title} started without the packages that you installed"
    reset = "'!gpufarm-environment reset' in a cell removes them"
    try:
        layer.prepare()
        if len(marks.failed(layer.folder)) >= FAILURES:
            marks.clear(layer.folder)
            return (
                f"{without}, as it did not start with them the last times; {reset}, or remove the package"
                " that breaks it."
            )
    except OSError as error:
        if error.errno in FULL:
            return f"{without}, as your home is full; delete files that you do not need, and start it again."
        return f"{without}, as {layer.folder} cannot be used ({error.strerror}); {reset}."
    return ""


def carry(layer: Layer, variables: Mapping[str, str]) -> None:
    """Let packages over the former version of the environment be installed again, in the background."""
    former = None if (layer.folder / RESULT).exists() else next(layer.former(), None)
    if former is None:
        return
    words = [str(layer.python), "-P", "-m", "gpufarm_environment.carry", former.folder.name]
    subprocess.Popen(
        words,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    """Become the kernel."""
    common = shared.read()
    layer = Layer(common, Path.home())
    problem = problem_of(layer)
    python = Path(sys.executable) if problem else layer.python
    variables = environment(layer, python, os.environ)
    notice.tell(common.name, "start", problem)
    marked = not problem and marks.make(layer.folder)
    if not marked:
        # The home may be full, and start files of IPython may be what is wrong.
        variables["IPYTHONDIR"] = tempfile.mkdtemp(prefix="ipython-")
    if not problem:
        with contextlib.suppress(Exception):  # whatever is in the former layers, the kernel starts
            carry(layer, variables)
    module = "ipykernel_launcher" if problem else "gpufarm_environment.started"
    # -P: a file of the user that has the name of a module does not keep the kernel from its start.
    os.execve(python, [str(python), "-P", "-m", module, *sys.argv[1:]], variables)  # noqa: S606


if __name__ == "__main__":
    main()
