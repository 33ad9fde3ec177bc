# SPDX-License-Identifier: GPL-3.0-or-later
"""Install again what a user had over the former version of an environment.

usage: python -P -m gpufarm_environment.carry VERSION    (with the Python of the new layer)
"""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
import time
from importlib import metadata
from pathlib import Path

from . import notice, shared
from .layer import Layer

TIMEOUT = 600  # seconds for all of them
RESULT = "carried.json"  # without it, the next kernel goes on
LOCK = "carrying.lock"


def missing(wanted: dict[str, str]) -> dict[str, str]:
    """Return which packages neither the layer nor the environment has in any version."""
    found = {(one.metadata["Name"] or "").lower().replace("_", "-") for one in metadata.distributions()}
    return {name: version for name, version in wanted.items() if name.lower().replace("_", "-") not in found}


def install(python: Path, packages: dict[str, str], end: float) -> bool:
    """Install packages in their versions, and return whether that worked.

    Args:
        python: of the layer.
        packages: versions by names.
        end: time at which it is given up (monotonic seconds).
    """
    words = [str(python), "-P", "-m", "pip", "install", "--quiet", "--no-input"]
    words += [f"{name}=={version}" for name, version in sorted(packages.items())]
    left = max(end - time.monotonic(), 0)
    try:
        return subprocess.run(words, stdin=subprocess.DEVNULL, timeout=left, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def carry(layer: Layer, former: Layer) -> str:
    """Install what the former layer has; return a sentence for the user, empty if nothing was to be done."""
    wanted = missing(former.installed())
    end = time.monotonic() + TIMEOUT
    if wanted and not install(layer.python, wanted, end):
        for name, version in missing(wanted).items():  # one that cannot be had keeps no other away
            install(layer.python, {name: version}, end)
    left = missing(wanted)
    title = layer.shared.title
    told = {"from": former.folder.name, "missing": left}
    (layer.folder / RESULT).write_text(json.dumps(told), encoding="utf-8")
    if left:
        return (
            f"The environment {title} has a new version, over which these packages of yours could not be"
            f" installed: {', '.join(sorted(left))}. Install them again in the versions that you need."
        )
    restart = "restart the kernel to see your packages"
    return f"The environment {title} has a new version; {restart}." if wanted else ""


def main() -> None:
    """Install them, and tell the user. The first of several kernels that start at once does it."""
    common = shared.read()
    layer = Layer(common, Path.home())
    with (layer.folder / LOCK).open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return
        if not (layer.folder / RESULT).exists():
            notice.tell(common.name, "packages", carry(layer, layer.over(sys.argv[1])))


if __name__ == "__main__":
    main()
