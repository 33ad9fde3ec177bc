"""The package index has wheels of all packages in the locks of environments, for each distribution."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

LOCKS = sorted((Path(__file__).parents[2] / "roles/notebook_environments/files").glob("*.lock"))
# The Python and the C library of Debian 12, Ubuntu 24.04 and Debian 13.
MACHINES = [("3.11", "2_36"), ("3.12", "2_39"), ("3.13", "2_40")]


@pytest.mark.parametrize(("python", "libc"), MACHINES)
@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_each_package_has_a_wheel_that_runs_there(lock: Path, python: str, libc: str, tmp_path: Path) -> None:
    """uv compares tags and hashes with the lock; nothing is fetched but descriptions of packages."""
    command = ["uv", "pip", "install", "--dry-run", "--require-hashes", "--only-binary", ":all:"]
    command += ["--python-version", python, "--python-platform", f"x86_64-manylinux_{libc}"]
    done = subprocess.run(
        [*command, "--target", tmp_path, "--requirement", lock], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Would install" in done.stderr
