"""`scripts/setup` with real apt and dpkg, whose folders and locks are below the folder of the test."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/setup"
PACKAGE = "gpufarm-test"
CONTROL = f"""\
Package: {PACKAGE}
Version: 1
Architecture: all
Maintainer: Nobody <nobody@example.org>
Description: empty
"""
# apt.conf(5); without root, dpkg neither changes owners nor its root
CONFIGURATION = """\
Dir "{root}";
Dir::State::status "{root}/var/lib/dpkg/status";
APT::Sandbox::User "";
DPkg::Options {{ "--root={root}"; "--log={root}/dpkg.log"; "--force-not-root"; }};
"""
FOLDERS = (
    "etc/apt/apt.conf.d",
    "etc/apt/preferences.d",
    "var/cache/apt/archives/partial",
    "var/lib/apt/lists/partial",
    "var/lib/dpkg/info",
    "var/lib/dpkg/updates",
    "var/log/apt",
)


class Machine:
    """A machine without the package that a checkout on it needs.

    Args:
        root: an empty folder.
    """

    def __init__(self, root: Path) -> None:
        self.root, self.checkout = root, root / "checkout"
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)
        (root / "var/lib/dpkg/status").touch()
        (root / "apt.conf").write_text(CONFIGURATION.format(root=root))
        # a user who is not root installs with sudo
        (root / "sudo").write_text('#!/bin/sh\nexec "$@"\n')
        (root / "sudo").chmod(0o755)
        self._repository()
        self._checkout()

    def _repository(self) -> None:
        """A source of apt with the package (deb822, sources.list(5))."""
        (self.root / "package/DEBIAN").mkdir(parents=True)
        (self.root / "package/DEBIAN/control").write_text(CONTROL)
        archive = self.root / "package.deb"
        build = ["dpkg-deb", "--root-owner-group", "--build", self.root / "package", archive]
        subprocess.run(build, check=True, capture_output=True)
        content = archive.read_bytes()
        sums = f"Size: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}"
        (self.root / "Packages").write_text(f"{CONTROL}Filename: {archive.name}\n{sums}\n")
        (self.root / "etc/apt/sources.list").write_text(f"deb [trusted=yes] copy:{self.root} ./\n")

    def _checkout(self) -> None:
        """A checkout whose Python packages are there already."""
        for file in ("requirements/controller.lock", ".venv/controller.lock"):
            (self.checkout / file).parent.mkdir(parents=True)
            (self.checkout / file).touch()
        (self.checkout / "scripts").mkdir()
        shutil.copy(SCRIPT, self.checkout / "scripts/setup")
        text, count = re.subn(r"^packages=\(.*\)$", f"packages=({PACKAGE})", SCRIPT.read_text(), flags=re.M)
        assert count == 1
        (self.checkout / "scripts/setup").write_text(text)

    def setup(self) -> subprocess.Popen[str]:
        """Start the script; standard output and error are one."""
        return subprocess.Popen(
            [self.checkout / "scripts/setup"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={
                **os.environ,
                "PATH": f"{self.root}:{os.environ['PATH']}:/usr/sbin:/sbin",
                "APT_CONFIG": str(self.root / "apt.conf"),
                "DPKG_ADMINDIR": str(self.root / "var/lib/dpkg"),
            },
        )

    @contextmanager
    def locked(self, lock: str) -> Iterator[None]:
        """Hold a lock as apt does (fcntl(2))."""
        with (self.root / lock).open("w") as stream:
            fcntl.lockf(stream, fcntl.LOCK_EX)
            yield

    def installed(self) -> bool:
        status = (self.root / "var/lib/dpkg/status").read_text()
        return f"Package: {PACKAGE}\nStatus: install ok installed" in status


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_packages_are_installed(machine: Machine):
    run = machine.setup()
    output, _ = run.communicate()
    assert (run.returncode, output) == (0, f"setup: installing {PACKAGE}\n")
    assert machine.installed()


@pytest.mark.parametrize(
    "lock",
    [
        "var/lib/apt/lists/lock",
        "var/lib/dpkg/lock-frontend",
        "var/lib/dpkg/lock",
        "var/cache/apt/archives/lock",
    ],
)
def test_another_program_that_holds_a_lock_of_apt_is_waited_for_and_named(machine: Machine, lock: str):
    with machine.locked(lock):
        run = machine.setup()
        assert run.stdout
        assert run.stdout.readline() == f"setup: installing {PACKAGE}\n"
        said = run.stdout.readline()
        assert said.startswith("setup: waiting for another package manager: Could not get lock ")
        assert str(machine.root / lock) in said and f"held by process {os.getpid()} " in said
        assert run.poll() is None
    output, _ = run.communicate()
    assert (run.returncode, output) == (0, "")
    assert machine.installed()


def test_what_else_apt_complains_of_is_told_at_once(machine: Machine):
    (machine.root / "package.deb").write_text("damaged")
    run = machine.setup()
    output, _ = run.communicate()
    assert run.returncode
    assert "E: " in output and "waiting" not in output
    assert not machine.installed()
