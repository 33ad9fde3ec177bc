"""A warm interpreter for modules of Ansible on hosts of the bench.

Two thirds of what a module call costs is that Python loads Ansible's own code. Here a daemon on the host has
loaded it and forks for each call. The interpreter is a small program, at `PYTHON` on every
container; inventories that want it name it as `ansible_python_interpreter`.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import hashlib
import shutil
import zipfile
from pathlib import Path

import ansible.module_utils
from ansible import release

from lab.hosts import Bind
from lab.system import fill_once, run

HERE = Path(__file__).parent
SOURCES = (HERE / "interpreter.c", HERE / "daemon.py")
FLAGS = ("-std=gnu11", "-O2", "-static", "-Wall", "-Wextra", "-Werror")
FOLDER = "/run/lab-warm"
PYTHON = f"{FOLDER}/python3"


def module_code() -> dict[str, bytes]:
    """Return Ansible's code for modules as Ansible sends it: path in the archive -> source.

    The packages above it have a text of their own there (recursive_finder in
    ansible/executor/module_common.py).
    """
    root = Path(ansible.module_utils.__file__).parent
    code = {
        f"ansible/module_utils/{path.relative_to(root)}": path.read_bytes()
        for path in sorted(root.rglob("*.py"))
    }
    package = b"from pkgutil import extend_path\n__path__=extend_path(__path__,__name__)\n"
    code["ansible/module_utils/__init__.py"] = package
    about = f'__version__="{release.__version__}"\n__author__="{release.__author__}"\n'
    code["ansible/__init__.py"] = package + about.encode()
    return code


def install(cache_dir: Path) -> Bind:
    """Have the interpreter ready for hosts, built unless the cache has it.

    Args:
        cache_dir: folder of the bench's caches. Parallel builds use separate folders; the first wins.

    Returns:
        Bind mounts that a host needs at boot.

    Raises:
        LabError: the compiler failed.
    """
    code = module_code()
    content = hashlib.sha256("".join(FLAGS).encode())
    for name, data in [*code.items(), *((path.name, path.read_bytes()) for path in SOURCES)]:
        content.update(f"{name} {len(data)}\n".encode() + data)
    folder = cache_dir / f"warm-{content.hexdigest()[:16]}"
    fill_once(folder, lambda scratch: _build(code, scratch))
    return Bind(folder, FOLDER)


def _build(code: dict[str, bytes], folder: Path) -> None:
    source, daemon = SOURCES
    run(["gcc", *FLAGS, "-o", folder / Path(PYTHON).name, source])
    shutil.copy(daemon, folder)
    with zipfile.ZipFile(folder / "ansible.zip", "w") as archive:
        for name, data in code.items():
            archive.writestr(name, data)
