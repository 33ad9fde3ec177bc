"""Archives of modules outlive a run of Ansible, but never the sources that they were made of."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

PLUGIN = Path(__file__).parents[3] / "molecule/shared/callback_plugins/packed_modules.py"


@pytest.fixture
def plugin() -> ModuleType:
    spec = importlib.util.spec_from_file_location("packed_modules", PLUGIN)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def begin(plugin: ModuleType, tmp_path: Path) -> Callable[[str], Any]:
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/thing.py").write_text("print('one')\n")
    (tmp_path / "lock").write_text("ansible==1\n")

    def begin(run: str) -> Any:
        sources = [tmp_path / "lock", tmp_path / "modules"]
        modules = plugin.PackedModules(tmp_path / "kept", sources, tmp_path / run)
        modules.fetch()
        return modules

    return begin


def test_the_next_run_has_what_this_one_packed(begin: Callable[[str], Any]):
    first = begin("first")
    (first.run / "thing").write_text("packed")
    (first.run / "thing.lock").touch()
    (first.run / "other-part").touch()
    first.keep()
    second = begin("second")
    assert [path.name for path in second.run.iterdir()] == ["thing"]
    assert (second.run / "thing").read_text() == "packed"


def test_what_changes_a_module_changes_the_archives(begin: Callable[[str], Any], tmp_path: Path):
    first = begin("first")
    (first.run / "thing").write_text("packed")
    first.keep()
    for number, (name, text) in enumerate(
        [("modules/thing.py", "print('two')\n"), ("modules/new.py", ""), ("lock", "ansible==2\n")]
    ):
        before = (tmp_path / name).read_text() if (tmp_path / name).exists() else None
        (tmp_path / name).write_text(text)
        assert list(begin(f"changed{number}").run.iterdir()) == [], name
        if before is None:
            (tmp_path / name).unlink()
        else:
            (tmp_path / name).write_text(before)
    assert len(list(begin("as before").run.iterdir())) == 1


def test_nothing_is_kept_of_sources_that_changed_meanwhile(begin: Callable[[str], Any], tmp_path: Path):
    run = begin("run")
    (run.run / "thing").write_text("packed of other sources")
    (tmp_path / "modules/thing.py").write_text("print('two')\n")
    run.keep()
    assert list(begin("after").run.iterdir()) == []
    (tmp_path / "modules/thing.py").write_text("print('one')\n")
    assert list(begin("before").run.iterdir()) == []


def test_states_without_a_run_are_forgotten(plugin: ModuleType, begin: Callable[[str], Any], tmp_path: Path):
    old = begin("old")
    (tmp_path / "lock").write_text("ansible==2\n")
    new = begin("new")
    past = time.time() - plugin.FORGET_AFTER - 60
    os.utime(old.kept, (past, past))
    os.utime(new.kept, (past, past))
    begin("newer")
    assert new.kept.exists() and not old.kept.exists()


def test_ansible_takes_the_archives(tmp_path: Path):
    """Two archives change places: a module that then answers as the other was not packed anew."""
    callbacks = tmp_path / "molecule/shared/callback_plugins"
    callbacks.mkdir(parents=True)
    shutil.copy(PLUGIN, callbacks)
    (tmp_path / "plugins/modules").mkdir(parents=True)
    (tmp_path / "plugins/module_utils").mkdir()
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements/controller.lock").touch()
    playbook = tmp_path / "play.yml"
    playbook.write_text(
        "- hosts: localhost\n  connection: local\n  gather_facts: false\n  tasks:\n"
        "    - ansible.builtin.ping:\n    - ansible.builtin.getent: {database: passwd, key: root}\n"
    )
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_CALLBACK_PLUGINS": str(callbacks),
        "ANSIBLE_CALLBACKS_ENABLED": "packed_modules",
    }

    def play() -> subprocess.CompletedProcess[str]:
        command = ["ansible-playbook", "-v", str(playbook)]
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    first = play()
    assert first.returncode == 0, first.stdout + first.stderr
    ping, getent = sorted((tmp_path / ".work/packed-modules").glob("*/ansible.modules.[pg]*"), reverse=True)
    assert "ping" in ping.name and "getent" in getent.name
    assert play().stdout == first.stdout
    data = ping.read_bytes(), getent.read_bytes()
    ping.write_bytes(data[1])
    getent.write_bytes(data[0])
    assert play().returncode != 0
