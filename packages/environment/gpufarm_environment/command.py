# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-environment: what a user has over a shared environment."""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

from . import shared
from .kernel import environment
from .layer import Layer

# A line that export writes. Others, such as options of pip, could make pip read files or ask other servers.
LINE = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?==[A-Za-z0-9][A-Za-z0-9.!+_-]*", re.ASCII)


class ImportRefusedError(Exception):
    """A file cannot be imported; the text is for the user."""


def main() -> int:
    """Run a command.

    Returns:
        0 if it worked, else 1.
    """
    common = shared.read()
    parser = argparse.ArgumentParser(
        prog="gpufarm-environment",
        description=f"Your packages over the environment {common.title}. In a notebook, begin with an !.",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    commands.add_parser("list", help="show the packages that you installed")
    commands.add_parser("export", help="print them in the form that import takes, and pip as well")
    taken = commands.add_parser("import", help="install what a file of export names")
    taken.add_argument("file", type=Path, metavar="FILE")
    commands.add_parser("reset", help="remove all of them; restart the kernel afterwards")
    arguments = parser.parse_args()
    layer = Layer(common, Path.home())
    try:
        return _run(layer, arguments)
    except ImportRefusedError as error:
        print(error, file=sys.stderr)
        return 1
    except OSError as error:
        print(f"{error.filename or layer.folder} cannot be used: {error.strerror}.", file=sys.stderr)
        return 1


def _run(layer: Layer, arguments: argparse.Namespace) -> int:
    if arguments.command == "reset":
        layer.remove()
        layer.prepare()
        print("Your packages are removed. Restart the kernel.")
        return 0
    layer.prepare()
    if arguments.command == "import":
        words = [str(layer.python), "-P", "-m", "pip", "install", "--no-input", *_read(arguments.file)]
        variables = environment(layer, layer.python, os.environ)
        return int(subprocess.run(words, env=variables, check=False).returncode != 0)
    found = sorted(layer.installed().items(), key=lambda one: one[0].lower())
    if arguments.command == "export":
        print("".join(f"{name}=={version}\n" for name, version in found), end="")
    else:
        width = max((len(name) for name, _version in found), default=0)
        print(
            "\n".join(f"{name:{width}}  {version}" for name, version in found) or "You have installed none."
        )
    return 0


def _read(file: Path) -> list[str]:
    """Return the packages that a file names; comments are left out.

    Raises:
        ImportRefusedError: it has a line of another kind, or names no package.
        OSError: it cannot be read.
    """
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()
    found = [line.partition("#")[0].strip() for line in lines]
    for number, line in enumerate(found, 1):
        if line and not LINE.fullmatch(line):
            raise ImportRefusedError(
                f"Line {number} is {line[:60]!r}, but export writes only NAME==VERSION; nothing was "
                "installed. Remove the line, and install what it names with pip."
            )
    if not any(found):
        raise ImportRefusedError("The file names no package; give one that export has written.")
    return [line for line in found if line]


if __name__ == "__main__":
    raise SystemExit(main())
