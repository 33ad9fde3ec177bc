"""The image cache: built once, by one builder at a time; an interrupted build never counts.

mmdebstrap is replaced by a script that makes the folders a real run leaves behind (mmdebstrap(1), format
"directory") and writes down that it ran.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from lab import rootfs
from lab.errors import LabError
from lab.patience import PATIENCE
from lab.recipe import Recipe

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="images are built in namespaces: needs root")

RECIPE = Recipe("bookworm", ("systemd",), "http://mirror.example/debian", "")
DOUBLE = """\
#!/bin/sh
for word; do case $word in */rootfs/*) target=$word;; esac; done
mkdir -p "$target/etc/systemd/system" "$target/etc/ssh" "$target/etc/apt" "$target/var/lib/apt/lists"
echo secret > "$target/etc/ssh/ssh_host_ed25519_key"
cat > "$target/etc/apt/sources.list"
echo run >> {log}
{then}
"""
BUILDER = """\
import sys
from pathlib import Path
from lab import rootfs
from lab.recipe import Recipe
rootfs.ensure(Recipe("bookworm", ("systemd",), "http://mirror.example/debian", ""), Path(sys.argv[1]), print)
"""


class Builder:
    """mmdebstrap of this test, and builders that call it from processes of their own."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.log, self.program, self.cache = tmp_path / "log", tmp_path / "bin/mmdebstrap", tmp_path / "cache"
        self.program.parent.mkdir()
        monkeypatch.setenv("PATH", f"{self.program.parent}:/usr/bin:/bin")
        monkeypatch.setattr(rootfs, "BUILD_MEBIBYTES", 1)

    def then(self, command: str) -> None:
        self.program.write_text(DOUBLE.format(log=self.log, then=command))
        self.program.chmod(0o755)

    def start(self) -> subprocess.Popen[bytes]:
        return subprocess.Popen([sys.executable, "-c", BUILDER, str(self.cache)], stdout=subprocess.DEVNULL)

    @property
    def runs(self) -> int:
        return self.log.read_text().count("run\n") if self.log.exists() else 0

    @property
    def images(self) -> list[str]:
        return [path.name for path in (self.cache / "rootfs").glob("*") if path.suffix != ".lock"]


@pytest.fixture
def builder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builder:
    return Builder(tmp_path, monkeypatch)


def test_an_image_is_built_once_and_holds_no_identity(builder: Builder):
    builder.then("exit 0")
    image = rootfs.ensure(RECIPE, builder.cache, print)
    assert rootfs.ensure(RECIPE, builder.cache, print) == image
    assert builder.runs == 1
    assert (image / "etc/apt/sources.list").read_text() == RECIPE.sources
    assert (image / "etc/systemd/system/apt-daily.timer").readlink() == Path("/dev/null")
    assert list((image / "etc/ssh").iterdir()) == []
    assert (image / "etc/machine-id").read_text() == ""


def test_two_builders_wait_for_one_another(builder: Builder):
    builder.then("sleep 0.5")
    both = [builder.start(), builder.start()]
    assert [process.wait(PATIENCE) for process in both] == [0, 0]
    assert builder.runs == 1
    assert builder.images == [RECIPE.name]


def test_a_killed_build_never_counts(builder: Builder):
    builder.then("sleep 3; touch $target/late")
    first = builder.start()
    deadline = time.monotonic() + PATIENCE
    while not builder.runs and time.monotonic() < deadline:
        time.sleep(0.05)
    first.kill()
    first.wait()
    assert builder.images == [f"{RECIPE.name}.partial"]
    builder.then("exit 0")
    image = rootfs.ensure(RECIPE, builder.cache, print)
    assert builder.runs == 2
    assert builder.images == [RECIPE.name]
    time.sleep(3)
    assert not (image / "late").exists()  # the killed builder took mmdebstrap with it


def test_a_failed_build_says_why_and_leaves_nothing(builder: Builder):
    builder.then("echo 'E: Unable to locate package systemd' >&2; exit 1")
    with pytest.raises(
        LabError, match=r"could not build bookworm from http://mirror\.example/debian: E: Unable"
    ):
        rootfs.ensure(RECIPE, builder.cache, print)
    assert builder.images == []


def test_a_full_disk_is_told_before_the_build(builder: Builder, monkeypatch: pytest.MonkeyPatch):
    builder.then("exit 0")
    monkeypatch.setattr(rootfs, "BUILD_MEBIBYTES", 1 << 40)
    with pytest.raises(LabError, match=r"MiB free, building the bookworm image needs"):
        rootfs.ensure(RECIPE, builder.cache, print)
    assert builder.runs == 0
