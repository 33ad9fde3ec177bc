"""Layers: what many hosts would install alike, installed once over an image and mounted below each disk."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import yaml

from lab.errors import LabError
from lab.hosts import resolver
from lab.recipe import ENVIRONMENT, Recipe
from lab.rootfs import ISOLATED, build_once

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
BUILD = FOLDER / "build.sh"


def playbook(name: str) -> Path:
    """The playbook that makes a layer."""
    return FOLDER / name / "layer.yml"


def named(name: str) -> list[Path]:
    """The files of roles that a layer is made of, which its playbook lists."""
    (play,) = yaml.safe_load(playbook(name).read_text())
    return [ROOT / path for path in play["vars"]["made_of"]]


def key(name: str, below: Path) -> str:
    """Name of a layer in the cache: same content over the same image or layer, same name."""
    texts = [path.read_text() for path in (BUILD, playbook(name), *named(name))]
    content = json.dumps([below.name, texts])
    return f"{name}-{hashlib.sha256(content.encode()).hexdigest()[:16]}"


def ensure(
    recipe: Recipe, image: Path, names: Sequence[str], cache_dir: Path, say: Callable[[str], None]
) -> list[Path]:
    """Layers over an image, built if the cache does not hold them; each is made over those before it.

    :param recipe: what the image is made of.
    :param image: the image.
    :param names: names of layers.
    :returns: folders to mount, the uppermost first and the image last, never to be changed.
    :raises LabError: if a build fails, with the last lines that it said.
    """
    folders = [image]
    below = image
    for name in names:
        below = build_once(
            cache_dir / "layers" / key(name, below),
            f"the layer {name} of {recipe.suite}",
            partial(_build, name, recipe, tuple(folders)),
            say,
        )
        folders.insert(0, below / "upper")
    return folders


def _build(name: str, recipe: Recipe, lower: Sequence[Path], target: Path) -> None:
    for part in ("upper", "work", "root", "ansible"):
        (target / part).mkdir(parents=True)
    (target / "resolv.conf").write_text(resolver())
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": "/root",
        "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
        "ANSIBLE_HOME": str(target / "ansible"),
        **ENVIRONMENT,
        **recipe.environment,
    }
    command = [*ISOLATED, "sh", str(BUILD), str(target), ":".join(map(str, lower)), str(playbook(name))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        said = " / ".join(line for line in (done.stdout + done.stderr).splitlines()[-12:] if line.strip())
        raise LabError(f"the layer {name} of {recipe.suite} could not be built: {said}")
