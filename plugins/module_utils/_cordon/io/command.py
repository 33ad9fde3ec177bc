# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Subcommands of gpufarm-health by which an administrator cordons GPUs. None of them asks the driver."""

from __future__ import annotations

import argparse
import sys
import time

from .. import cordon
from . import folder


def add(parser: argparse.ArgumentParser) -> None:
    """Add the subcommands to a parser, as `command` of its options."""
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    one = commands.add_parser("cordon", help="give a GPU or slice to nobody")
    one.add_argument("gpu", metavar="GPU", help="UUID of the GPU or slice, as nvidia-smi -L shows it")
    one.add_argument("--reason", required=True, help="the reason, for the next administrator")
    one = commands.add_parser("uncordon", help="end the cordon of a GPU or slice")
    one.add_argument("gpu", metavar="GPU", help="UUID of the GPU or slice, as cordons shows it")
    commands.add_parser("cordons", help="list the cordons")


def run(options: argparse.Namespace) -> int:
    """Run a subcommand and return its exit status.

    Raises:
        GpuError: when its argument is wrong.
        OSError: the folder cannot be written.
    """
    if options.command == "cordon":
        made = cordon.cordon(options.gpu, options.reason, now(), cordon.ADMINISTRATOR)
        folder.write(made)
        sys.stdout.write(f"{made}.\n")
    elif options.command == "uncordon":
        sys.stdout.write(f"The cordon of {folder.remove(options.gpu).gpu} is ended.\n")
    else:
        lines = [f"{one}." for one in folder.read().values()] or ["Nothing is cordoned on this machine."]
        sys.stdout.write("\n".join(lines) + "\n")
    return 0


def now() -> str:
    """Return the time as cordons write it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
