# SPDX-License-Identifier: GPL-3.0-or-later
"""The layer of a user: a virtual environment in the home that also sees the packages of a shared one.

It is kept for each version of the shared environment, so a new version does not break what is there. Its
Python is the one that the shared environment was made with.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import sysconfig
import uuid
from collections.abc import Iterator
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from .shared import Shared

FOLDER = Path(".local/share/gpufarm/environments")
LINK = "gpufarm-environment.pth"
PIP = '#!/bin/sh\nexec "$(dirname "$0")/python" -m pip "$@"\n'


class Layer:
    """The layer of one user over one environment."""

    def __init__(self, shared: Shared, home: Path) -> None:
        self.shared = shared
        self._home = home
        self.all_versions = home / FOLDER / shared.name
        self.folder = self.all_versions / shared.version

    @property
    def python(self) -> Path:
        """The interpreter."""
        return self.folder / "bin" / "python"

    @property
    def packages(self) -> Path:
        """The folder of the user's packages."""
        return self.folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"

    def prepare(self) -> None:
        """Make what is missing or was changed; packages stay.

        Raises:
            OSError: the home takes no files, as it is full or not writable.
        """
        base = Path(getattr(sys, "_base_executable", sys.executable))
        texts = {
            self.folder / "pyvenv.cfg": f"home = {base.parent}\ninclude-system-site-packages = false\n",
            self.packages / LINK: "".join(
                f"import site; site.addsitedir({str(one)!r})\n" for one in self.shared.packages
            ),
            self.folder / "bin" / "pip": PIP,
        }
        for path, text in texts.items():
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
            if not path.is_file() or path.read_text(encoding="utf-8", errors="replace") != text:
                with _replacing(path) as new:
                    new.write_text(text, encoding="utf-8")
        (self.folder / "bin" / "pip").chmod(0o755)
        if not self.python.is_symlink() or self.python.readlink() != base:
            with _replacing(self.python) as new:
                new.symlink_to(base)

    def installed(self) -> dict[str, str]:
        """Return the versions of the user's own packages by name."""
        # A former version of the environment may have had another Python.
        folders = self.folder.glob("lib/python*/site-packages")
        found = metadata.distributions(path=[str(one) for one in folders])
        return dict(filter(None, map(_name_and_version, found)))

    def former(self) -> Iterator[Layer]:
        """Yield the layers over other versions of the environment that have packages, the latest first."""
        others = [one for one in _folders(self.all_versions) if one != self.folder]
        for folder in sorted(others, key=lambda one: one.stat().st_mtime, reverse=True):
            other = self.over(folder.name)
            if other.installed():
                yield other

    def over(self, version: str) -> Layer:
        """Return the layer over another version of the environment."""
        return Layer(replace(self.shared, version=version), self._home)

    def remove(self) -> None:
        """Remove the layer and those over other versions.

        Raises:
            OSError: not all of it could be removed.
        """
        if self.all_versions.exists():
            shutil.rmtree(self.all_versions)


def _name_and_version(package: metadata.Distribution) -> tuple[str, str] | None:
    try:
        return (package.metadata["Name"], package.version) if package.metadata["Name"] else None
    except (OSError, ValueError, KeyError, TypeError):  # half of an installation, or not what it should be
        return None


def _folders(path: Path) -> list[Path]:
    return [one for one in path.iterdir() if one.is_dir() and not one.is_symlink()] if path.is_dir() else []


@contextlib.contextmanager
def _replacing(path: Path) -> Iterator[Path]:
    """Give a path to make a file at, which then takes the place of another one.

    Other kernels of the user do the same at this moment, also on other machines that have the home.
    """
    new = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        yield new
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
