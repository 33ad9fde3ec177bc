# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scenarios of Mesos install fakes, or the real programs that a site has."""

from __future__ import annotations

import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab.mesos.fake import package

FAKES = Path(package.__file__).parent
pytestmark = pytest.mark.skipif(shutil.which("dpkg-deb") is None, reason="dpkg is not installed")


def listed(deb: Path) -> dict[str, str]:
    """Return the texts of the programs in a package."""
    root = deb.with_suffix(".root")
    subprocess.run(["dpkg-deb", "--extract", deb, root], check=True)
    return {one: (root / "usr/sbin" / one).read_text() for one in package.PROGRAMS}


def field(deb: Path, name: str) -> str:
    done = subprocess.run(["dpkg-deb", "--field", deb, name], check=True, capture_output=True, text=True)
    return done.stdout.strip()


def real(folder: Path) -> Path:
    """Make a folder with programs as a site has them."""
    folder.mkdir(parents=True)
    for name in package.PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho real {name}\n")
        (folder / name).chmod(0o755)
    return folder


def test_the_fakes_are_packed_where_nothing_else_is_given(tmp_path: Path) -> None:
    package.make_package(FAKES, tmp_path / "mesos.deb", "1.11.0")
    assert all("mesos-fake" in text for text in listed(tmp_path / "mesos.deb").values())
    assert field(tmp_path / "mesos.deb", "Depends") == package.NEEDS


@pytest.mark.parametrize("place", ["programs", "tree/sbin"])
def test_programs_of_a_folder_take_the_place_of_the_fakes(place: str, tmp_path: Path) -> None:
    folder = real(tmp_path / place)
    source = folder.parent if folder.name == "sbin" else folder
    package.make_package(source, tmp_path / "mesos.deb", "1.11.1")
    assert listed(tmp_path / "mesos.deb") == {one: (folder / one).read_text() for one in package.PROGRAMS}
    assert field(tmp_path / "mesos.deb", "Version") == "1.11.1"
    package.make_archive(source, tmp_path / "mesos.tar.gz")
    with tarfile.open(tmp_path / "mesos.tar.gz") as archive:
        assert {f"sbin/{one}" for one in package.PROGRAMS} <= set(archive.getnames())


@pytest.mark.parametrize("prefix", ["usr", "usr/local"])
def test_programs_of_a_package_take_the_place_of_the_fakes(prefix: str, tmp_path: Path) -> None:
    folder = real(tmp_path / "root" / prefix / "sbin")
    control = tmp_path / "root/DEBIAN/control"
    control.parent.mkdir()
    control.write_text(
        "Package: mesos\nVersion: 1.11.0-2\nArchitecture: all\nDepends: libcurl4\n"
        "Maintainer: none <none@example.org>\nDescription: real\n"
    )
    subprocess.run(["dpkg-deb", "--build", tmp_path / "root", tmp_path / "given.deb"], check=True)
    package.make_package(tmp_path / "given.deb", tmp_path / "mesos.deb", "1.11.0")
    assert listed(tmp_path / "mesos.deb") == {one: (folder / one).read_text() for one in package.PROGRAMS}
    assert field(tmp_path / "mesos.deb", "Depends") == "libcurl4"
