"""Modules of Ansible are compiled once for all hosts of the bench, instead of for every task.

Ansible sends a module as an archive of sources, and Python compiles an archive's content anew whenever it is
imported. On a real host nobody notices; many hosts on few processors spend a third of their time on it.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
from pathlib import Path

from lab.hosts import Bind

GUEST = Path(__file__).with_name("guest.py")
FOLDER = "/var/cache/lab-bytecode"


def install(root: Path, cache_dir: Path) -> Bind:
    """Let the Pythons of a host that is not running yet, virtual environments included, use the shared code.

    It is done in sitecustomize.py, as that belongs to the standard library, which virtual environments share.

    Args:
        root: the mounted root of the host.
        cache_dir: folder of the bench's caches.

    Returns:
        Bind mounts that the host needs at boot.
    """
    source = cache_dir / "bytecode"
    source.mkdir(parents=True, exist_ok=True)
    text = f'\n{GUEST.read_text()}\n\n_remember_bytecode("{FOLDER}")\n'
    for customize in sorted((root / "etc").glob("python3.*/sitecustomize.py")):
        if "_remember_bytecode" not in customize.read_text():
            with customize.open("a") as stream:
                stream.write(text)
    return Bind(source, FOLDER, read_only=False)


def install_copy(root: Path, cache_dir: Path) -> None:
    """Give a host that nothing can be bound into, as a virtual machine, what has been compiled until now.

    Args:
        root: the mounted root of the host, which keeps what it compiles itself.
        cache_dir: folder of the bench's caches.
    """
    source = install(root, cache_dir).source
    being_written = shutil.ignore_patterns("*.*")  # see guest.py
    shutil.copytree(source, root / FOLDER.lstrip("/"), ignore=being_written, dirs_exist_ok=True)
