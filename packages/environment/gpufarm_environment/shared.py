# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared environment that this Python belongs to."""

from __future__ import annotations

import json
import sysconfig
from dataclasses import dataclass
from pathlib import Path

# Written by the role notebook_environments into the folder of the environment.
FILE = "gpufarm-environment.json"
# Pins the packages that a kernel is made of: one of a user's may not take their place.
CONSTRAINTS = "gpufarm-kernel.txt"


@dataclass(frozen=True)
class Shared:
    """A shared environment.

    Attributes:
        folder: of the environment.
        name: by which notebooks know its kernel.
        title: for people.
        version: beginning of the digest of its lock; another one is another folder.
        index_url: package index of the site; empty for the one that pip takes by itself.
    """

    folder: Path
    name: str
    title: str
    version: str
    index_url: str

    @property
    def packages(self) -> Path:
        """The folder of its packages."""
        return self.folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"

    @property
    def constraints(self) -> Path:
        """File with the versions of the packages that its kernel is made of."""
        return self.folder / CONSTRAINTS


def read() -> Shared:
    """Return the environment that holds this file, in lib/pythonX.Y/site-packages.

    Raises:
        OSError, ValueError, KeyError: the folder is not one.
    """
    folder = Path(__file__).resolve().parents[4]
    told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    names = ("name", "title", "version", "index_url")
    return Shared(folder, *(str(told[name]) for name in names))
