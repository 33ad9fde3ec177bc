# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of this collection that run on hosts by themselves: at boot, at logins, again and again.

Each is a launcher in `bin`. Their imports are one package for all of them, in a folder of `lib` that is
named after its content, to which a link leads. A launcher follows the link once, and the folder before stays,
so a program that starts while the package is replaced has all of the old one or all of the new one.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from ..._cdi.io import command as cdi_command
from ..._gateway.io import command as gateway_command
from ..._health.io import command as health_command
from ..._lmod.io import command as modules_command
from ..._metrics.io import command as metrics_command
from ..._metrics.io import mesos_command, slurm_command
from ..._mig.io import restore
from ..._network.io import command as network_command
from ..._nvml.io.session import GPU_PYTHON
from ..._scratch.io import command as scratch_command
from ..._settings.io import command as settings_command
from ..._shared_home.io import command as shared_home_command
from ..._staging.io import stage_command, submit_command
from ..._version import VERSION
from .files import replace_file

ROOT = Path("/opt/gpufarm")
PACKAGE = "gpufarm_host"
SYSTEM_PYTHON = "/usr/bin/python3"
# Which interpreter a program runs with, and the module whose `main` it is.
PROGRAMS: Mapping[str, tuple[str, ModuleType]] = {
    "gpufarm-cdi": (GPU_PYTHON, cdi_command),
    "gpufarm-gateway": (SYSTEM_PYTHON, gateway_command),
    "gpufarm-health": (GPU_PYTHON, health_command),
    "gpufarm-home": (SYSTEM_PYTHON, shared_home_command),
    "gpufarm-mesos-metrics": (SYSTEM_PYTHON, mesos_command),
    "gpufarm-metrics": (GPU_PYTHON, metrics_command),
    "gpufarm-mig": (GPU_PYTHON, restore),
    "gpufarm-modulepath": (SYSTEM_PYTHON, modules_command),
    "gpufarm-network": (SYSTEM_PYTHON, network_command),
    "gpufarm-scratch": (SYSTEM_PYTHON, scratch_command),
    "gpufarm-settings": (GPU_PYTHON, settings_command),
    "gpufarm-slurm-metrics": (SYSTEM_PYTHON, slurm_command),
    "gpufarm-stage": (SYSTEM_PYTHON, stage_command),
    "gpufarm-submit": (SYSTEM_PYTHON, submit_command),
}
# The package that this file is in, as it is called here.
_ABOVE = __name__.partition("._host.")[0]
_LAUNCHER = """\
#!{interpreter} -I
# Written by the collection gpufarm.cluster; changes are lost.
import os
import sys

sys.path.insert(0, os.path.realpath("{current}"))
from {package} import __version__
from {package}.{module} import main

if sys.argv[1:] == ["--version"]:
    print("{program}", __version__)
    sys.exit()
sys.exit(main())
"""


@dataclass(frozen=True)
class Change:
    """A file that differs: its path, and its content before and after, None where there is no file."""

    path: Path
    before: str | None
    after: str | None


def package() -> dict[str, str]:
    """Return the files of the package by their paths in it: all of module_utils that is imported here."""
    found = {"__init__.py": f'__version__ = "{VERSION}"\n'}
    for name, module in sorted(sys.modules.items()):
        if not name.startswith(f"{_ABOVE}."):
            continue
        path = _relative(module).replace(".", "/")
        # A file on the controller, and part of an archive on a host: each has a loader of its own.
        source = module.__spec__.loader.get_data(module.__file__)  # type: ignore[union-attr]
        found[f"{path}/__init__.py" if hasattr(module, "__path__") else f"{path}.py"] = source.decode()
    return found


def _relative(module: ModuleType) -> str:
    return module.__name__.removeprefix(f"{_ABOVE}.")


class Host:
    """Installed parts of the programs on this host.

    Args:
        root: the folder that holds them.
    """

    def __init__(self, root: Path) -> None:
        self.bin = root / "bin"
        self.lib = root / "lib"
        self.current = self.lib / "current"
        self.package = self.current / PACKAGE

    def launcher(self, program: str) -> str:
        """Return the text of a program's launcher."""
        interpreter, module = PROGRAMS[program]
        return _LAUNCHER.format(
            interpreter=interpreter,
            current=self.current,
            package=PACKAGE,
            module=_relative(module),
            program=program,
        )

    def missing(self, program: str) -> list[Change]:
        """Return what differs from a host with this program, whose package is that of this process.

        Raises:
            OSError: a file cannot be read.
        """
        path = self.bin / program
        changes = [Change(self.package / name, *texts) for name, texts in self._package_changes().items()]
        before = path.read_text(encoding="utf-8") if path.is_file() else None
        if before != self.launcher(program) or path.stat().st_mode & 0o777 != 0o755:
            changes.append(Change(path, before, self.launcher(program)))
        return changes

    def install(self, program: str) -> None:
        """Install the package and a program.

        Raises:
            OSError: a file cannot be written.
        """
        for folder in (self.bin, self.lib):
            folder.mkdir(mode=0o755, parents=True, exist_ok=True)
        if self._package_changes():
            self._install_package()
        replace_file(self.bin / program, self.launcher(program), 0o755)

    def left_over(self, program: str) -> list[Change]:
        """Return what differs from a host without this program, whose package the last one takes along.

        Raises:
            OSError: a file cannot be read.
        """
        files = [self.bin / program] if (self.bin / program).exists() else []
        if not self._others(program):
            files += sorted(self.package.rglob("*.py"))
        return [Change(path, path.read_text(encoding="utf-8"), None) for path in files]

    def remove(self, program: str) -> None:
        """Remove a program, and the package when it is the last one.

        Raises:
            OSError: a file cannot be removed.
        """
        (self.bin / program).unlink(missing_ok=True)
        if not self._others(program):
            self.current.unlink(missing_ok=True)
            for folder in self.lib.glob(f"{PACKAGE}-*"):
                shutil.rmtree(folder)
        for folder in (self.bin, self.lib, self.bin.parent):
            with contextlib.suppress(OSError):  # somebody else's things are in it, or it is not there
                folder.rmdir()

    def _others(self, program: str) -> bool:
        return any((self.bin / name).exists() for name in PROGRAMS if name != program)

    def _package_changes(self) -> dict[str, tuple[str | None, str | None]]:
        wanted = package()
        there = {
            str(path.relative_to(self.package)): path.read_text(encoding="utf-8")
            for path in self.package.rglob("*.py")
        }
        names = sorted(wanted.keys() | there.keys())
        return {
            name: (there.get(name), wanted.get(name)) for name in names if there.get(name) != wanted.get(name)
        }

    def _install_package(self) -> None:
        files = package()
        content = hashlib.sha256("".join(f"{name}\0{text}\0" for name, text in files.items()).encode())
        folder = self.lib / f"{PACKAGE}-{content.hexdigest()[:16]}"
        before = self.current.resolve()
        # Its folder goes with all that is in it, should the disk be full.
        with tempfile.TemporaryDirectory(prefix=f"{PACKAGE}-", dir=self.lib) as staging:
            new, link = Path(staging, "new"), Path(staging, "link")
            for name, text in files.items():
                path = new / PACKAGE / name
                path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            if folder.exists():  # damaged, as it differs
                shutil.rmtree(folder)
            new.replace(folder)
            link.symlink_to(folder.name)
            link.replace(self.current)
        for other in self.lib.glob(f"{PACKAGE}-*"):
            if other not in (folder, before):
                shutil.rmtree(other)
