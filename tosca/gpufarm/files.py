# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of the controller that roles read: the operator puts them into a folder, and inputs name them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from gpufarm.errors import BadInput

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,254}")


def path(store: Path, what: str, name: Any) -> str:
    """Find a file.

    Args:
        store: the folder that the operator fills.
        what: the input or property that names the file.
        name: the file's name.

    Returns:
        Its path, without symbolic links; nothing for an empty name.

    Raises:
        BadInput: it is no name, there is no such file, or it leads out of the folder.
    """
    if name == "":
        return ""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise BadInput(
            f'{what}: "{name}" is no name; put the file into {store} and give its name without a path'
        )
    found = (store / name).resolve()
    if not found.is_relative_to(store.resolve()):
        raise BadInput(f"{what}: {store / name} leads out of its folder; put the file itself there")
    if not found.is_file():
        raise BadInput(f"{what}: there is no file {store / name}; put it there, or give the name of another")
    return str(found)
