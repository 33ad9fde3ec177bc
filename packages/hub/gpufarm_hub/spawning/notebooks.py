# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks of all engines that run on this machine, for programs that must not disturb them.

``python -m gpufarm_hub.spawning.notebooks list`` prints their units, ``... stop`` ends them all, ``... stop
USER`` ends that user's default one, and ``... stop --engine NAME`` those of one engine; all three print the
units that were ended.
"""

from __future__ import annotations

import argparse
import sys

from . import engines
from .engine import EngineError


def running() -> list[str]:
    """Return the units of all notebooks that run.

    Raises:
        EngineError: an engine did not answer.
    """
    return [unit for engine in engines.in_use() for unit in engine.running()]


def reach() -> dict[str, frozenset[str]]:
    """Return what opens GPUs for each notebook that runs: paths of device nodes, or UUIDs; empty for none.

    Raises:
        EngineError: an engine did not answer.
    """
    return {unit: keys for engine in engines.in_use() for unit, keys in engine.reach().items()}


def stop(user: str = "", engine: str = "") -> list[str]:
    """End notebooks; their slices are free when the hub sees it.

    Args:
        user: whose default notebook is meant; empty for all notebooks.
        engine: name of the one whose notebooks are meant; empty for those of all.

    Returns:
        The units that were ended.

    Raises:
        EngineError: an engine did not answer, or a notebook still runs.
    """
    asked = [engines.called(engine)] if engine else engines.in_use()
    meant = {one.name_of(f"{user}/") for one in asked}
    ended = [unit for one in asked for unit in one.running() if not user or unit in meant]
    for unit in ended:
        engines.of(unit).stop(unit)
    return ended


def main() -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(prog="gpufarm_hub.spawning.notebooks")
    actions = parser.add_subparsers(dest="action", required=True)
    actions.add_parser("list")
    stopping = actions.add_parser("stop")
    stopping.add_argument("user", nargs="?", default="")
    stopping.add_argument("--engine", default="")
    options = parser.parse_args()
    try:
        units = running() if options.action == "list" else stop(options.user, options.engine)
    except EngineError as error:
        done = "listed" if options.action == "list" else "stopped"
        sys.exit(f"The notebooks of this machine cannot be {done}: {error}.")
    for unit in units:
        print(unit)


if __name__ == "__main__":
    main()
