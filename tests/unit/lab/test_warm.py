"""The warm interpreter has loaded what Ansible sends, is built once for it, and is Python for all else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import base64
import io
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lab import warm


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.mark.parametrize("module", ["ping", "uri", "setup"])
def test_it_has_loaded_what_ansible_sends(tmp_path: Path, module: str):
    kept, interpreter = tmp_path / "sent", tmp_path / "python"
    interpreter.write_text(f'#!/bin/sh\ncat "$@" >{kept}\necho "{{}}"\n')
    interpreter.chmod(0o755)
    environment = {**os.environ, "ANSIBLE_HOME": str(tmp_path / "home"), "ANSIBLE_PIPELINING": "1"}
    python = f"ansible_python_interpreter={interpreter}"
    command = [
        Path(sys.executable).with_name("ansible"),
        "localhost",
        "-c",
        "local",
        "-m",
        module,
        "-e",
        python,
    ]
    command += ["-a", "url=http://localhost"] if module == "uri" else []
    subprocess.run(command, env=environment, check=False, capture_output=True)
    found = re.search(r"^ *zip_data=('.*'),$", kept.read_text(), re.MULTILINE)
    assert found
    archive = zipfile.ZipFile(io.BytesIO(base64.b64decode(ast.literal_eval(found.group(1)))))
    sent = {name: archive.read(name) for name in archive.namelist() if "/modules/" not in name}
    loaded = warm.module_code()
    assert len(sent) > 50
    assert {name: data for name, data in sent.items() if loaded.get(name) != data} == {}


def test_it_is_built_once_for_each_content(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = warm.install(cache)
    assert warm.install(cache) == first
    assert first.read_only and first.target == str(Path(warm.PYTHON).parent)
    daemon = tmp_path / "daemon.py"
    daemon.write_text("# another\n")
    monkeypatch.setattr(warm, "SOURCES", (warm.SOURCES[0], daemon))
    other = warm.install(cache)
    assert other.source != first.source
    monkeypatch.setattr(warm, "module_code", lambda: {"ansible/__init__.py": b"another"})
    assert warm.install(cache).source not in (first.source, other.source)
    assert sorted(cache.iterdir()) == sorted(
        {path for path in cache.glob("warm-*") if (path / "python3").exists()}
    )


def test_with_arguments_it_is_the_systems_python(cache: Path):
    program = warm.install(cache).source / "python3"
    done = subprocess.run(
        [program, "-c", "import sys; print(sys.executable, sys.argv); sys.exit(3)", "one", ""],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "/usr/bin/python3 ['-c', 'one', '']\n")
