#!/usr/bin/python
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible module: a Python virtual environment that holds exactly what a lock file says."""

from __future__ import annotations

DOCUMENTATION = r"""
module: python_environment
short_description: Keep a Python virtual environment equal to a lock file
version_added: 0.1.0
description:
  - Creates a virtual environment and makes it hold exactly the packages of a lock file with hashes.
  - Installs C(uv), which the lock pins, with C(pip) in hash-checking mode, then C(uv) installs the others.
    Packages that the lock does not name are removed; C(pip), C(setuptools) and C(wheel) as they came with the
    environment stay.
  - Only wheels are installed, as building a package would fetch build tools that no hash vouches for.
    Projects that are given as sources are built by C(uv) itself, which fetches nothing.
  - A run without a change reads the names of the installed packages and starts neither C(pip) nor C(uv).
  - An interrupted run is finished by the next one. A new minor version of the interpreter, as after an
    upgrade of the distribution, rebuilds the environment. Other files below O(path) are left alone.
requirements:
  - the system's Python 3.9 or later with the module C(venv) (on Debian, package C(python3-venv))
extends_documentation_fragment:
  - gpufarm.cluster.attributes.changing_module
attributes:
  diff_mode:
    support: full
    description: Returns the packages before and after.
options:
  path:
    description:
      - Directory of the environment. It must not exist, be empty, or have been made by this module.
    type: path
    required: true
  lock_file:
    description:
      - Lock file on the target, in the format that C(uv pip compile --generate-hashes) writes.
      - Exactly one of O(lock_file) and O(requirements) is needed.
    type: path
  requirements:
    description:
      - The text of the lock file. Use this rather than O(lock_file) where check mode must work before the
        file is there.
    type: str
  index_url:
    description:
      - Package index to install from. If empty, the one that C(pip) is configured for on the target.
    type: str
    default: ""
  projects:
    description:
      - Python projects to install from their sources, as P(gpufarm.cluster.python_project#lookup) returns
        them. The lock pins what they depend on, and their build backend is C(uv_build).
      - A project that is dropped from the list is removed.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: The name of the package.
        type: str
        required: true
      version:
        description: Its version.
        type: str
        required: true
      files:
        description: The text of each file by its path below the folder of the project.
        type: dict
        required: true
  python:
    description:
      - Interpreter that the environment is made for.
    type: path
    default: /usr/bin/python3
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Install the Python packages that the GPU modules need
  gpufarm.cluster.python_environment:
    path: /opt/gpufarm/gpu
    requirements: "{{ lookup('ansible.builtin.file', 'gpu.lock') }}"

- name: Install from a mirror
  gpufarm.cluster.python_environment:
    path: /opt/jupyterhub
    lock_file: /etc/jupyterhub/hub.lock
    index_url: https://mirror.example.org/pypi/simple
"""

RETURN = r"""
path:
  description: Directory of the environment.
  returned: success
  type: str
  sample: /opt/gpufarm/gpu
python:
  description: The environment's interpreter.
  returned: success
  type: str
  sample: /opt/gpufarm/gpu/bin/python
packages:
  description:
    - Versions of the installed packages by name, without those that came with the environment.
    - In check mode, those found before the change.
  returned: success
  type: dict
  sample:
    nvidia-ml-py: 13.615.71
    uv: 0.13.8
"""

import base64
import csv
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import NoReturn

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.gpufarm.cluster.plugins.module_utils import _python_environment as environment
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import (
    replace_file,
    temporary_file,
)

RECORD = ".python_environment.json"
# Folders of `python -m venv` and wheels in an environment (sysconfig scheme "venv", wheels' own data).
PARTS = ("bin", "etc", "include", "lib", "lib64", "pyvenv.cfg", "share")
UNREACHABLE = (
    "Check that this machine reaches its package index and the index has these files, or set index_url."
)


class Environment:
    """The environment on disk, and the programs that change it."""

    def __init__(self, module: AnsibleModule) -> None:
        self.module = module
        self.path = Path(module.params["path"])
        self.python = self.path / "bin" / "python"
        self.record_file = self.path / RECORD
        self.sources = {
            environment.project(one["name"], one["version"], one["files"]): one["files"]
            for one in module.params["projects"]
        }

    def fail(self, message: str) -> NoReturn:
        """End the module with a message."""
        self.module.fail_json(msg=message)
        raise AssertionError("fail_json returned")

    def lock(self) -> tuple[environment.Requirement, ...]:
        """Return what the lock file says."""
        try:
            return environment.parse_lock(self.lock_text())
        except environment.LockError as error:
            self.fail(str(error))

    def lock_text(self) -> str:
        """Return the text of the lock file, from wherever it was given."""
        if self.module.params["requirements"] is not None:
            return self.module.params["requirements"]
        lock_file = self.module.params["lock_file"]
        try:
            return Path(lock_file).read_text(encoding="utf-8")
        except OSError as error:
            self.fail(f"The lock file {lock_file} cannot be read: {error.strerror}.")

    def system_python(self) -> str:
        """Return the version, such as 3.11, of the interpreter that the environment is for."""
        python = self.module.params["python"]
        if not os.access(python, os.X_OK):
            self.fail(
                f"There is no Python interpreter at {python}: install python3 or set the option 'python'."
            )
        code = "import sys; print('%d.%d' % sys.version_info[:2])"
        return self._run([python, "-c", code], f"{python} does not run", "Reinstall it.").strip()

    def record(self) -> environment.Record | None:
        """Return what the last run left; fails for a directory that belongs to somebody else."""
        if self.record_file.exists():
            return environment.parse_record(self.record_file.read_text(encoding="utf-8"))
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            self.fail(
                f"{self.path} is in use and was not made by this module: remove it or choose another path."
            )
        return None

    def installed(self) -> tuple[tuple[str, str], ...]:
        """Return (name, version) of the packages that are there, none when the environment does not exist."""
        found = self.path.glob("lib/python3*/site-packages/*.dist-info")
        return environment.installed_packages([path.name for path in found])

    def torn(self) -> frozenset[str]:
        """Return the names of projects of which an installed file is not as it was installed."""
        found = self.path.glob("lib/python3*/site-packages/*.dist-info/RECORD")
        names = {one.name: one for one in self.sources}
        return frozenset(
            name
            for record in found
            for name, _version in environment.installed_packages([record.parent.name])
            if name in names and not _whole(record)
        )

    def create(self, python: str) -> None:
        """Build the environment anew, with nothing but pip in it."""
        self._write_record(environment.Record(python, "", (), (), created=False, complete=False))
        for part in PARTS:
            target = self.path / part
            if target.is_dir() and not target.is_symlink():
                shutil.rmtree(target)
            else:
                target.unlink(missing_ok=True)
        command = [self.module.params["python"], "-m", "venv", str(self.path)]
        self._run(
            command, f"The environment {self.path} could not be created", "On Debian, install python3-venv."
        )

    def apply(
        self, requirements: tuple[environment.Requirement, ...], python: str, todo: environment.Plan
    ) -> None:
        """Make the packages equal to the lock, look whether they are, and write that down."""
        lines = tuple(requirement.text for requirement in requirements)
        record = environment.Record(
            python, environment.digest(requirements), lines, (), created=True, complete=False
        )
        if todo.synchronize:
            self._write_record(record)
            self._synchronize(requirements, todo.reinstall)
        else:
            kept = tuple(one for one in self.sources if one not in todo.projects)
            whole = dataclasses.replace(record, installed=self.installed(), complete=True)
            self._write_record(dataclasses.replace(whole, projects=kept))
        for project in todo.projects:
            self._install(project)
        installed, projects = self.installed(), tuple(self.sources)
        problems = environment.difference(requirements, projects, installed)
        if problems:
            self.fail(f"{self.path} differs from its lock after the installation: {'; '.join(problems)}.")
        # uv leaves it behind, writable for every user of the machine.
        (self.path / ".lock").unlink(missing_ok=True)
        self._write_record(dataclasses.replace(record, installed=installed, complete=True, projects=projects))

    def _synchronize(self, requirements: tuple[environment.Requirement, ...], reinstall: bool) -> None:
        index = self._index_variables()
        uv = {
            (requirement.name, requirement.version)
            for requirement in requirements
            if requirement.name == "uv"
        }
        if reinstall or not uv & set(self.installed()):
            self._install_uv(requirements, index)
        self._uv_sync(reinstall, index)

    def _install_uv(self, requirements: tuple[environment.Requirement, ...], index: dict[str, str]) -> None:
        command = [str(self.python), "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir"]
        command += ["--no-deps", "--force-reinstall", "--require-hashes", "--only-binary", ":all:"]
        command += ["--requirement", temporary_file(self.module, environment.render_uv(requirements))]
        self._run(command, f"uv could not be installed in {self.path}", UNREACHABLE, index)

    def _uv_sync(self, reinstall: bool, index: dict[str, str]) -> None:
        command = [str(self.path / "bin" / "uv"), "pip", "sync", "--python", str(self.python)]
        command += ["--require-hashes", "--no-build", "--no-cache", "--no-config", "--system-certs"]
        command += ["--compile-bytecode", "--quiet"] + (["--reinstall"] if reinstall else [])
        command.append(temporary_file(self.module, self.lock_text()))
        self._run(command, f"The packages of {self.path} could not be installed", UNREACHABLE, index)

    def _install(self, project: environment.Project) -> None:
        command = [str(self.path / "bin" / "uv"), "pip", "install", "--python", str(self.python)]
        command += ["--no-deps", "--no-index", "--offline", "--no-cache", "--no-config", "--reinstall"]
        command += ["--compile-bytecode", "--quiet"]
        with tempfile.TemporaryDirectory(dir=self.module.tmpdir) as folder:
            for name, text in self.sources[project].items():
                file = Path(folder) / name
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, encoding="utf-8")
            problem = f"{project.name} could not be installed in {self.path}"
            self._run([*command, folder], problem, "Install the collection again.")

    def _index_variables(self) -> dict[str, str]:
        """Name the index in the environment, where other users of the machine cannot read it as in argv."""
        index = self.module.params["index_url"] or os.environ.get("PIP_INDEX_URL", "")
        if not index:
            command = [str(self.python), "-m", "pip", "config", "get", "global.index-url"]
            rc, out, _err = self.module.run_command(command)
            index = out.strip() if rc == 0 else ""
        return {"PIP_INDEX_URL": index, "UV_DEFAULT_INDEX": index} if index else {}

    def _write_record(self, record: environment.Record) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        text = json.dumps(dataclasses.asdict(record), indent=1)
        replace_file(self.module, self.record_file, text, 0o644)

    def _run(
        self, command: list[str], problem: str, advice: str, variables: dict[str, str] | None = None
    ) -> str:
        """Run a program and return its output; when it fails, end the module with the last lines it said."""
        rc, out, err = self.module.run_command(command, environ_update=variables)
        if rc != 0:
            said = [line.strip() for line in (err.strip() or out).splitlines() if line.strip()]
            self.module.fail_json(msg=f"{problem}: {'; '.join(said[-3:])}. {advice}", rc=rc, stderr=err)
        return out


def _whole(record: Path) -> bool:
    """Tell whether the files of a package have the digests of its record.

    That is ``RECORD`` in the PyPA specification "Recording installed projects".
    """
    try:
        with record.open(encoding="utf-8", newline="") as lines:
            return all(
                digest == _digest(record.parents[1] / name)
                for name, digest, _size in csv.reader(lines)
                if digest
            )
    except (OSError, ValueError):
        return False


def _digest(file: Path) -> str:
    found = base64.urlsafe_b64encode(hashlib.sha256(file.read_bytes()).digest())
    return "sha256=" + found.decode().rstrip("=")


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "path": {"type": "path", "required": True},
            "lock_file": {"type": "path"},
            "requirements": {"type": "str"},
            "index_url": {"type": "str", "default": ""},
            "projects": {
                "type": "list",
                "elements": "dict",
                "default": [],
                "options": {
                    "name": {"type": "str", "required": True},
                    "version": {"type": "str", "required": True},
                    "files": {"type": "dict", "required": True},
                },
            },
            "python": {"type": "path", "default": "/usr/bin/python3"},
        },
        mutually_exclusive=[("lock_file", "requirements")],
        required_one_of=[("lock_file", "requirements")],
        supports_check_mode=True,
    )
    # Users other than root run programs of this environment, whatever the umask of the login was.
    os.umask(0o022)
    target = Environment(module)
    requirements = target.lock()
    python = target.system_python()
    todo = environment.plan(
        requirements, tuple(target.sources), python, target.record(), target.installed(), target.torn()
    )
    if todo.changed and not module.check_mode:
        if todo.create:
            target.create(python)
        target.apply(requirements, python, todo)
    result = {
        "changed": todo.changed,
        "path": str(target.path),
        "python": str(target.python),
        "packages": dict(target.installed()),
    }
    if todo.changed:
        result["diff"] = {
            "before_header": str(target.path),
            "after_header": str(target.path),
            "before": "".join(line + "\n" for line in todo.before),
            "after": "".join(line + "\n" for line in todo.after),
        }
    module.exit_json(**result)


if __name__ == "__main__":
    main()
