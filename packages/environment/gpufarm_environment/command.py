# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-environment: what a user has over a shared environment."""

from __future__ import annotations

import argparse
import subprocess
import sys
from pathlib import Path

from . import shared
from .layer import Layer


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
        words = [str(layer.python), "-P", "-m", "pip", "install", "--requirement", str(arguments.file)]
        return int(subprocess.run(words, check=False).returncode != 0)
    found = sorted(layer.installed().items(), key=lambda one: one[0].lower())
    if arguments.command == "export":
        print("".join(f"{name}=={version}\n" for name, version in found), end="")
    else:
        width = max((len(name) for name, _version in found), default=0)
        print(
            "\n".join(f"{name:{width}}  {version}" for name, version in found) or "You have installed none."
        )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
