# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of a user's packages knows the shared environments of the notebook server, and no other kernel."""

from __future__ import annotations

import asyncio
import json
import runpy
import sys
import time
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "packages" / "notebook" / "gpufarm_notices"


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    found: dict[str, Any] = {}
    monkeypatch.setitem(sys.modules, "<run_path>", sys)  # dataclasses look their module up
    found.update(runpy.run_path(str(PACKAGE / "environments.py"), run_name="<run_path>"))
    return found


def kernel(folder: Path, name: str, argv: list[str] | None, title: object = "Title") -> None:
    file = folder / "kernels" / name / "kernel.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"argv": argv, "display_name": title}) if argv else "nonsense")


def test_only_kernels_of_shared_environments_count(tmp_path: Path, module: dict[str, Any]) -> None:
    ours = ["-I", "-m", "gpufarm_environment.kernel", "-f", "{connection_file}"]
    kernel(tmp_path / "two", "pytorch", ["/opt/two/bin/python", *ours], "PyTorch")
    kernel(tmp_path / "one", "scientific", ["/opt/one/bin/python", *ours], "Scientific Python")
    kernel(tmp_path / "one", "mine", ["/home/ada/bin/python", "-m", "ipykernel_launcher"])
    kernel(tmp_path / "one", "broken", None)
    path = f"{tmp_path}/two::{tmp_path}/one:{tmp_path}/missing"
    found = [(one.name, one.title, one.program[0]) for one in module["environments"](path)]
    assert found == [
        ("pytorch", "PyTorch", "/opt/two/bin/python"),
        ("scientific", "Scientific Python", "/opt/one/bin/python"),
    ]


def test_the_kernel_of_an_image_counts(module: dict[str, Any]) -> None:
    image = PACKAGE.parents[1] / "environment" / "gpufarm_environment" / "image"
    [found] = module["environments"](str(image))
    python, isolated, program, what = found.program
    assert (found.name, python, isolated, what) == ("python3", sys.executable, "-I", "command")
    assert Path(program).resolve() == image / "start.py"


def test_a_command_of_the_environment_is_run(tmp_path: Path, module: dict[str, Any]) -> None:
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "$@"\nexit 3\n')
    python.chmod(0o755)
    shared = module["Shared"]("one", "One", (str(python), "-I"))
    worked, said = asyncio.run(module["run"](shared, "import", "a b; c"))
    assert (worked, said) == (False, "-I import a b; c\n")


def state_of(pid: str) -> str:
    """Return the state of a process, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2]
    except OSError:
        return ""


def test_nothing_of_a_command_that_takes_too_long_goes_on(
    tmp_path: Path, module: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pip is a child of the command, and would change the packages beside the next one."""
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nsleep 60 & echo $! > {tmp_path}/child\nwait\n")
    python.chmod(0o755)
    monkeypatch.setitem(module["run"].__globals__, "TIMEOUT", 2)
    worked, said = asyncio.run(module["run"](module["Shared"]("one", "One", (str(python),)), "import"))
    assert not worked
    assert "was ended" in said
    child = (tmp_path / "child").read_text().strip()
    # A process that was killed is there until it has run once more, which a busy machine delays.
    until = time.monotonic() + 60
    while (state := state_of(child)) not in ("", "Z"):
        assert time.monotonic() < until, state
        time.sleep(0.01)
