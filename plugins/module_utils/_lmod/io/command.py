# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-modulepath: print the trees of modules that a user has at a login.

With ``--found`` it prints what the machine has that modules are made of, for the record of the machine.
"""

from __future__ import annotations

import json
import os
import pwd
import stat
import sys
from functools import partial
from pathlib import Path

from ..._host.io.patience import answers
from . import machine

SETTINGS = Path("/etc/gpufarm/environment_modules.json")
# Modules of a user, below the home.
OWN = "modulefiles"
# Seconds that all file systems together have; a login waits so long at most when one hangs.
PATIENCE = 2.0
# The record of the machine waits longer, twice.
RECORD_PATIENCE = 10.0


def is_tree(path: str, owner: int | None = None) -> bool:
    """Tell whether a path is a folder, and of this owner if one is given."""
    try:
        seen = Path(path).stat()
    except OSError:
        return False
    return stat.S_ISDIR(seen.st_mode) and owner in (None, seen.st_uid)


def main() -> int:
    """Print the trees that are there, as MODULEPATH has them; return the exit status.

    Not of a home of somebody else, which a variable could name: who loads modules runs them.
    """
    user = os.getuid()
    if sys.argv[1:] == ["--found"]:
        return _found()
    try:
        trees = json.loads(SETTINGS.read_text(encoding="utf-8"))["trees"]
        home = pwd.getpwuid(user).pw_dir
    except (OSError, ValueError, KeyError):
        # A machine without the settings, or a user without an account: Lmod has its own trees.
        return 1
    own = f"{home}/{OWN}"
    asked = {own: partial(is_tree, own, user), **{tree: partial(is_tree, tree) for tree in trees}}
    there = answers(asked, PATIENCE)
    for path in asked.keys() - there.keys():
        sys.stderr.write(f"module: {path} does not answer; its modules are left out.\n")
    sys.stdout.write(":".join(path for path in asked if there.get(path) and ":" not in path) + "\n")
    return 0


def _found() -> int:
    try:
        asked = json.loads(SETTINGS.read_text(encoding="utf-8"))
        folder = Path(asked["trees"][0])
        there = machine.found(folder, [], asked["prefixes"], asked["toolkits"], RECORD_PATIENCE)
    except (OSError, ValueError, LookupError, TypeError) as error:
        sys.stderr.write(f"gpufarm-modulepath: {SETTINGS}: {error}\n")
        return 1
    sys.stdout.write(json.dumps(there, sort_keys=True) + "\n")
    return 0
