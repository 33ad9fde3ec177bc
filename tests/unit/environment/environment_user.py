# SPDX-License-Identifier: GPL-3.0-or-later
"""A shared environment with a stub of a kernel, and the home of a user."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[3] / "packages" / "environment" / "gpufarm_environment"
LIBRARY = Path("lib") / f"python{sysconfig.get_python_version()}" / "site-packages"
# In place of ipykernel: it tells what a kernel would find, and ends.
KERNEL = """
import json, os, sys
class IPKernelApp:
    @classmethod
    def instance(cls):
        return cls()
    def initialize(self):
        import debugpy_of_kernel
    def start(self):
        import numbers_of_all
        try:
            import mine
            mine = mine.VERSION
        except ImportError:
            mine = None
        names = (
            "PATH", "VIRTUAL_ENV", "PIP_CONSTRAINT", "UV_CONSTRAINT", "PIP_INDEX_URL", "PYTHONPATH",
            "IPYTHONDIR", "PIP_USER",
        )
        print(json.dumps({
            "prefix": sys.prefix, "argv": sys.argv[1:], "numbers": numbers_of_all.VERSION, "mine": mine,
            "variables": {name: os.environ.get(name) for name in names},
        }))
"""
LAUNCHER = """
from ipykernel.kernelapp import IPKernelApp
kernel = IPKernelApp.instance()
kernel.initialize()
kernel.start()
"""


def wheel(folder: Path, name: str, version: str) -> Path:
    """Make a package with one module, which tells its version."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(f"{name}.py", f'VERSION = "{version}"\n')
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return file


@dataclass
class User:
    """A user of a shared environment."""

    shared: Path
    home: Path
    runtime: Path

    def run(self, *words: object, **variables: str) -> subprocess.CompletedProcess[str]:
        known = {"HOME": str(self.home), "JUPYTER_RUNTIME_DIR": str(self.runtime), "PATH": "/usr/bin:/bin"}
        return subprocess.run(
            [str(word) for word in words],
            env={**known, **variables},
            cwd=self.home,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def start(self, **variables: str) -> dict[str, Any]:
        """Start a kernel as Jupyter does; return what it finds."""
        done = self.run(
            self.shared / "bin/python",
            "-I",
            "-m",
            "gpufarm_environment.kernel",
            "-f",
            "connection",
            **variables,
        )
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    def command(self, *words: object) -> subprocess.CompletedProcess[str]:
        return self.run(self.shared / "bin/python", "-P", "-m", "gpufarm_environment.command", *words)

    @property
    def notice(self) -> str:
        files = sorted(self.runtime.glob("gpufarm-environment-scientific-*.txt"))
        return " ".join(file.read_text() for file in files)

    @property
    def layer(self) -> Path:
        [found] = (self.home / ".local/share/gpufarm/environments/scientific").iterdir()
        return found


def make_shared(folder: Path, version: str) -> Path:
    """Make a shared environment."""
    packages = make_python(folder)
    shutil.copytree(SOURCE, packages / SOURCE.name, ignore=shutil.ignore_patterns("__pycache__"))
    told = {"name": "scientific", "title": "Scientific", "version": version, "index_url": ""}
    (folder / "gpufarm-environment.json").write_text(json.dumps(told))
    (folder / "gpufarm-kernel.txt").write_text("ipykernel==7.0\n")
    return folder


def make_python(folder: Path) -> Path:
    """Make a Python with a kernel, and return the folder of its packages; numbers_of_all stands for these."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    packages = folder / LIBRARY
    (packages / "ipykernel").mkdir()
    (packages / "ipykernel/__init__.py").touch()
    (packages / "debugpy_of_kernel.py").touch()
    (packages / "ipykernel/kernelapp.py").write_text(KERNEL)
    (packages / "ipykernel_launcher.py").write_text(LAUNCHER)
    (packages / "ipykernel-7.0.dist-info").mkdir()
    (packages / "ipykernel-7.0.dist-info/METADATA").write_text(
        "Metadata-Version: 2.1\nName: ipykernel\nVersion: 7.0\n"
    )
    with zipfile.ZipFile(wheel(folder / "wheels", "numbers_of_all", "1.0")) as archive:
        archive.extractall(packages)
    return packages
