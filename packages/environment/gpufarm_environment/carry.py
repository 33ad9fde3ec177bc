# SPDX-License-Identifier: GPL-3.0-or-later
"""Install again what a user had over the former version of an environment.

usage: python -P -m gpufarm_environment.carry VERSION    (with the Python of the new layer)
"""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from . import notice, shared
from .layer import Layer

TIMEOUT = 600  # seconds for all of them
RESULT = "carried.json"


def missing(wanted: dict[str, str]) -> dict[str, str]:
    """Return which packages neither the layer nor the environment has in any version."""
    found = {(one.metadata["Name"] or "").lower().replace("_", "-") for one in metadata.distributions()}
    return {name: version for name, version in wanted.items() if name.lower().replace("_", "-") not in found}


def install(python: Path, packages: dict[str, str]) -> bool:
    """Install packages in their versions; return whether that worked."""
    words = [str(python), "-P", "-m", "pip", "install", "--quiet", "--no-input"]
    words += [f"{name}=={version}" for name, version in sorted(packages.items())]
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, timeout=TIMEOUT, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def main() -> None:
    """Install them, and tell the user."""
    common = shared.read()
    layer = Layer(common, Path.home())
    wanted = missing(layer.over(sys.argv[1]).installed())
    done = not wanted or install(layer.python, wanted)
    left = {} if done else missing(wanted)
    (layer.folder / RESULT).write_text(json.dumps({"from": sys.argv[1], "missing": left}), encoding="utf-8")
    names = ", ".join(sorted(left))
    sentence = (
        f"The environment {common.title} has a new version, over which these packages of yours could not be"
        f" installed: {names}. Install them again in the versions that you need."
        if left
        else f"The environment {common.title} has a new version; restart the kernel to see your packages."
    )
    notice.tell(common.name, sentence if wanted else "")


if __name__ == "__main__":
    main()
