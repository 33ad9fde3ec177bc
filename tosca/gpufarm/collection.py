# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the collection gpufarm.cluster is: the checkout that this program stands in, or an installed one."""

from __future__ import annotations

import json
import os
from pathlib import Path

from gpufarm.errors import GpufarmError

CHECKOUT = Path(__file__).resolve().parents[2]
# The role paas_service installs the collection beside this package.
_BESIDE = Path(__file__).resolve().parents[1]
# Where Ansible looks beside ANSIBLE_COLLECTIONS_PATH (COLLECTIONS_PATHS in ansible's base.yml).
_STANDARD = ("~/.ansible/collections", "/usr/share/ansible/collections")
_NAME = Path("ansible_collections") / "gpufarm" / "cluster"


def search_path() -> list[str]:
    """Return the folders in which Ansible has to look for collections, first match first."""
    given = os.environ.get("ANSIBLE_COLLECTIONS_PATH", "").split(":")
    own = [path for path in (CHECKOUT / ".work" / "collections", _BESIDE) if (path / _NAME).exists()]
    return [*map(str, own), *(path for path in given if path), *_STANDARD]


def root() -> Path:
    """Return the folder of the collection.

    Raises:
        GpufarmError: it is not installed, or in another version than this program.
    """
    import importlib.metadata  # slow, and commands that only look at the state need none of it

    if (CHECKOUT / "galaxy.yml").is_file():
        return CHECKOUT
    folders = [Path(path).expanduser() / _NAME for path in search_path()]
    found = next((folder for folder in folders if (folder / "MANIFEST.json").is_file()), None)
    own = importlib.metadata.version("gpufarm")
    install = f"ansible-galaxy collection install gpufarm-cluster-{own}.tar.gz"
    if found is None:
        raise GpufarmError(
            f"the collection gpufarm.cluster is not installed; run '{install}' with the file of the release, "
            "or name the folder that it is in with ANSIBLE_COLLECTIONS_PATH"
        )
    version = version_in(found)
    if version != own:
        raise GpufarmError(
            f"{found} has version {version} of gpufarm.cluster, and this program is version {own}; "
            f"run '{install} --force', or install gpufarm {version}"
        )
    return found


def place(path: Path) -> Path:
    """Tell where a file of an installed collection belongs in the one that this program uses.

    Args:
        path: as it was remembered.

    Returns:
        The path in this collection, which may lack the file; the path itself if it is of no collection.

    Raises:
        GpufarmError: the collection is not installed.
    """
    parts, name = path.parts, _NAME.parts
    for end in range(len(parts) - 1, len(name) - 1, -1):
        if parts[end - len(name) : end] == name:
            return root().joinpath(*parts[end:])
    return path


def here(path: Path) -> Path:
    """Find a file of an installed collection in the one that this program uses.

    Releases may have a folder each, which goes when the next one is there.

    Args:
        path: as it was remembered.

    Returns:
        The file of the same name in this collection; the path itself if it is of no collection, or has gone.

    Raises:
        GpufarmError: the collection is not installed.
    """
    found = place(path)
    return found.resolve() if found != path and found.is_file() else path


def has(path: Path) -> bool:
    """Tell whether a file is one of this collection.

    Args:
        path: of the file.

    Raises:
        GpufarmError: the collection is not installed.
    """
    return path.resolve().is_relative_to(root().resolve() / "tosca")


def version_in(folder: Path) -> str:
    """Return the version of an installed collection."""
    return str(json.loads((folder / "MANIFEST.json").read_text())["collection_info"]["version"])
