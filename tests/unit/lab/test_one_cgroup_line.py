"""A program sees control groups of version 2 only, and all other files as they are."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[3] / "lab" / "one_cgroup_line.c"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("library") / "one_cgroup_line.so"
    subprocess.run(
        ["cc", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-O2", "-o", built, SOURCE], check=True
    )
    return built


def seen(library: Path, *words: str) -> str:
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    return subprocess.run(words, env=environment, capture_output=True, text=True, check=True).stdout


def test_there_is_one_line_of_version_2(library: Path) -> None:
    unified = [line for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
    if not unified:
        pytest.skip("this machine has no version 2")
    for process in ("self", "1"):
        (line,) = seen(library, "cat", f"/proc/{process}/cgroup").splitlines()
        assert line.startswith("0::/")


def test_other_files_are_read_and_written_as_they_are(library: Path, tmp_path: Path) -> None:
    file = tmp_path / "cgroup"
    seen(library, "sh", "-c", f"umask 027; printf '9:x:/\\n0::/y\\n' >{file}")
    assert seen(library, "cat", str(file)) == "9:x:/\n0::/y\n"
    assert file.stat().st_mode & 0o777 == 0o640
