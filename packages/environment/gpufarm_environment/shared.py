# SPDX-License-Identifier: GPL-3.0-or-later
"""The shared environment that this Python belongs to: one of the machine, or the image of a container."""

from __future__ import annotations

import json
import os
import re
import site
import sysconfig
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Written by the role notebook_environments into the folder of the environment.
FILE = "gpufarm-environment.json"
# Pins the packages that a kernel is made of: one of a user's may not take their place.
CONSTRAINTS = "gpufarm-kernel.txt"
# The hub sets it in containers: the repository of the image, @, and the digest of the image.
IMAGE = "GPUFARM_IMAGE"


@dataclass(frozen=True)
class Shared:
    """A shared environment.

    Attributes:
        folder: of the environment; programs of ours are in its folder ``bin``.
        name: by which notebooks know its kernel.
        title: for people.
        version: beginning of the digest of its lock or of the image; another one is another layer.
        packages: folders of its packages.
        variables: for its kernels.
        dropped: names of variables of the notebook server that its kernels do not get.
    """

    folder: Path
    name: str
    title: str
    version: str
    packages: tuple[Path, ...]
    variables: Mapping[str, str]
    dropped: tuple[str, ...] = ()


def read() -> Shared:
    """Return the environment that holds this file, in lib/pythonX.Y/site-packages, or else the image.

    Raises:
        OSError, ValueError, KeyError: the folder is not one.
    """
    image = os.environ.get(IMAGE, "")
    return _of_image(image) if image else _of_machine()


def _of_machine() -> Shared:
    folder = Path(__file__).resolve().parents[4]
    told = json.loads((folder / FILE).read_text(encoding="utf-8"))
    index = (
        dict.fromkeys(("PIP_INDEX_URL", "UV_DEFAULT_INDEX"), told["index_url"]) if told["index_url"] else {}
    )
    return Shared(
        folder,
        str(told["name"]),
        str(told["title"]),
        str(told["version"]),
        (folder / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages",),
        {**index, **dict.fromkeys(("PIP_CONSTRAINT", "UV_CONSTRAINT"), str(folder / CONSTRAINTS))},
        ("PYTHONPATH", "PYTHONHOME"),  # of the notebook server, which has another Python
    )


def _of_image(image: str) -> Shared:
    """Return the image; the folder that holds this package is mounted into its containers."""
    folder = Path(__file__).resolve().parent
    repository, _at, digest = image.partition("@")
    name = re.sub(r"[^a-z0-9]+", "-", repository)[:100]
    packages = [Path(one) for one in site.getsitepackages() if Path(one).is_dir()]
    return Shared(
        folder / "image", name, repository, digest.rpartition(":")[2][:12], (*packages, folder.parent), {}
    )
