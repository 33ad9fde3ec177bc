# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Python 2.7, which the extension was made for, from the packages of Debian 11.

They are unpacked, not installed, and run with the C library of this machine; of their other libraries only
those are used that newer systems have in other versions.
"""

from __future__ import annotations

from pathlib import Path

from lab.unpacked import own_libraries, unpack

SUITE = "bullseye"
PACKAGES = ("python2.7", "python-setuptools")
LIBRARIES = ("libcrypto.so.1.1", "libffi.so.7", "libssl.so.1.1")


def make(folder: Path) -> None:
    """Unpack it.

    :raises LabError: this machine's apt knows no mirror of Debian
    :raises OSError: mmdebstrap is missing
    :raises subprocess.CalledProcessError: the mirror lacks the packages
    """
    unpack(folder, SUITE, PACKAGES)
    own_libraries(folder, [next((folder / "usr/lib").glob(f"*/{name}")) for name in LIBRARIES])


def program(folder: Path) -> Path:
    """Path of the interpreter."""
    return folder / "usr/bin/python2.7"


def libraries(folder: Path) -> Path:
    """Value of ``LD_LIBRARY_PATH`` for all of the standard library."""
    return folder / "own"
