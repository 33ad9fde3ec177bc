"""Programs on hosts: what they import comes along, is replaced as a whole, and goes with the last of them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.programs import PROGRAMS
from ansible_collections.gpufarm.cluster.plugins.module_utils._version import VERSION
from ansible_collections.gpufarm.cluster.plugins.modules import host_program

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(host_program, "ROOT", tmp_path / "gpufarm")
    return tmp_path / "gpufarm"


@pytest.fixture
def run(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(name: str, state: str = "present", check: bool = False) -> dict[str, Any]:
        arguments = {
            "name": name,
            "state": state,
            "_ansible_check_mode": check,
            "_ansible_remote_tmp": str(tmp_path),
        }
        capsys.readouterr()
        before = os.umask(0o077)
        try:
            with patch_module_args(arguments), pytest.raises(SystemExit):
                host_program.main()
        finally:
            os.umask(before)
        return json.loads(capsys.readouterr().out)

    return call


def package(root: Path) -> Path:
    return (root / "lib/current").resolve() / "gpufarm_host"


def become_former(root: Path) -> None:
    """Make the package one of an earlier version, with a module that this one has not."""
    folder = (root / "lib/current").resolve()
    former = folder.with_name(f"gpufarm_host-{uuid.uuid4().hex[:16]}")
    folder.rename(former)
    (former / "gpufarm_host/former.py").touch()
    (root / "lib/current").unlink()
    (root / "lib/current").symlink_to(former.name)


def files(root: Path) -> set[str]:
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() or path.is_symlink()}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_has_all_that_it_imports_and_needs_no_ansible(run: Run, root: Path, name: str) -> None:
    result = run(name)
    assert result["changed"] and result["path"] == str(root / "bin" / name)
    launcher = (root / "bin" / name).read_text()
    assert launcher.startswith(f"#!{PROGRAMS[name][0]} -I\n")
    code = launcher.replace(
        "sys.exit(main())", "print(main.__module__, sys.modules[main.__module__].__file__)"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True, cwd="/"
    )
    module, path = done.stdout.split()
    assert module.startswith("gpufarm_host.") and path.startswith(str(root))


def test_the_command_for_homes_needs_no_more_than_the_systems_python(run: Run, root: Path) -> None:
    run("gpufarm-home")
    done = subprocess.run([root / "bin/gpufarm-home", "--help"], capture_output=True, text=True, check=True)
    assert "usage: gpufarm-home" in done.stdout


def test_a_program_tells_its_version(run: Run, root: Path) -> None:
    run("gpufarm-gateway")
    command = [root / "bin/gpufarm-gateway", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == f"gpufarm-gateway {VERSION}\n"


def test_everybody_may_run_and_nobody_else_may_change_it(run: Run, root: Path) -> None:
    run("gpufarm-home")
    modes = {path: path.stat().st_mode & 0o777 for path in root.rglob("*") if not path.is_symlink()}
    assert modes.pop(root / "bin/gpufarm-home") == 0o755
    assert all(mode == (0o755 if path.is_dir() else 0o644) for path, mode in modes.items())
    (root / "bin/gpufarm-home").chmod(0o777)
    assert run("gpufarm-home")["changed"]
    assert (root / "bin/gpufarm-home").stat().st_mode & 0o777 == 0o755


def test_a_second_run_changes_nothing_and_check_mode_never_does(run: Run, root: Path) -> None:
    told = run("gpufarm-mig", check=True)
    assert told["changed"] and not root.exists()
    assert str(root / "bin/gpufarm-mig") in [one["after_header"] for one in told["diff"]]
    run("gpufarm-mig")
    before = files(root)
    assert not run("gpufarm-mig")["changed"]
    assert run("gpufarm-mig", "absent", check=True)["changed"]
    assert files(root) == before


@pytest.mark.parametrize("damage", ["changed", "missing", "too much"])
def test_what_differs_is_replaced_as_a_whole(run: Run, root: Path, damage: str) -> None:
    run("gpufarm-home")
    before = files(root)
    timed = package(root) / "_host/io/timed.py"
    if damage == "changed":
        timed.write_text("raise SystemExit\n")
    elif damage == "missing":
        timed.unlink()
    else:
        timed.with_name("former.py").touch()
    assert run("gpufarm-home", check=True)["changed"]
    assert run("gpufarm-home")["changed"]
    assert files(root) == before
    assert not run("gpufarm-home")["changed"]


def test_a_program_that_starts_meanwhile_has_the_package_that_it_began_with(run: Run, root: Path) -> None:
    run("gpufarm-home")
    become_former(root)
    code = (root / "bin/gpufarm-home").read_text().partition("from gpufarm_host")[0]
    code += "import gpufarm_host\ninput()\nimport gpufarm_host.former\n"
    with subprocess.Popen([sys.executable, "-I", "-S", "-u", "-c", code], stdin=subprocess.PIPE) as program:
        stopped = f"/proc/{program.pid}/syscall"
        while not Path(stopped).read_text().startswith("0 0x0 "):  # read(2) from its standard input
            time.sleep(0.01)
        run("gpufarm-home")
        program.communicate(b"\n")
    assert program.returncode == 0
    assert not (package(root) / "former.py").exists()


def test_no_more_than_the_package_and_the_one_before_stay(run: Run, root: Path) -> None:
    for _ in range(3):
        run("gpufarm-home")
        become_former(root)
    run("gpufarm-home")
    assert len(list((root / "lib").glob("gpufarm_host-*"))) == 2


@pytest.mark.parametrize("step", [1, 20, 40])
def test_a_full_disk_is_said_and_leaves_what_was_there(
    run: Run, root: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    run("gpufarm-home")
    become_former(root)
    before = files(root)
    written = Path.write_text
    steps = iter(range(1, 1000))

    def write(path: Path, *arguments: Any, **options: Any) -> int:
        if next(steps) >= step:
            raise OSError(errno.ENOSPC, "No space left on device")
        return written(path, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", write)
        assert run("gpufarm-home")["msg"] == f"{root} cannot be changed: No space left on device."
    assert files(root) == before
    assert run("gpufarm-home")["changed"]


def test_the_last_program_takes_the_package_along(run: Run, root: Path) -> None:
    run("gpufarm-home")
    run("gpufarm-mig")
    assert run("gpufarm-mig", "absent")["changed"]
    assert not run("gpufarm-mig", "absent")["changed"]
    assert not run("gpufarm-home")["changed"]
    assert run("gpufarm-home", "absent")["changed"]
    assert not root.exists()


def test_what_else_is_there_stays(run: Run, root: Path) -> None:
    for other in ("gpu/python", "bin/other", "lib/other"):
        (root / other).parent.mkdir(parents=True, exist_ok=True)
        (root / other).touch()
    run("gpufarm-home")
    run("gpufarm-home", "absent")
    assert files(root) == {"gpu/python", "bin/other", "lib/other"}


def test_what_is_in_the_way_is_said(run: Run, root: Path) -> None:
    root.write_text("a file\n")
    assert run("gpufarm-home")["msg"] == f"{root}/bin cannot be changed: Not a directory."
