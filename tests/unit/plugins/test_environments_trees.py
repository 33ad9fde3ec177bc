"""Mounted software trees as kernels: what starts them, how they are tried, and what is refused."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._environments.plan import plan

MACHINE = {
    "python": "3.11",
    "processor": "x86_64",
    "driver": "",
    "free": 1 << 40,
    "versions": [],
    "unsafe": "",
}
# Tells what it was called with, as the Python of a tree would be.
PYTHON = """#!/bin/sh
echo "$VIEW|$#|$*|$PYTHONPATH"
"""
SETUP = """
export VIEW="{view}$#"
export PATH="$(dirname "$BASH_SOURCE")/bin:$PATH"
"""


def made(**entry: Any) -> dict[str, Any]:
    entries = [{"name": "lcg", "title": "LCG 105", **entry}]
    found: dict[str, Any] = plan(
        {
            "names": "",
            "more": entries,
            "default": "",
            "folder": "/opt/e",
            "pip_index_url": "",
            "shipped": {},
        },
        MACHINE,
    )
    return found


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "a tree"
    (folder / "bin").mkdir(parents=True)
    (folder / "setup.sh").write_text(SETUP)
    (folder / "bin/python").write_text(PYTHON)
    (folder / "bin/python").chmod(0o755)
    return folder


def start(told: dict[str, Any], tmp_path: Path) -> str:
    script = tmp_path / "start.sh"
    script.write_text(told["files"]["kernels/lcg/kernels/lcg/start.sh"])
    kernel = json.loads(told["files"]["kernels/lcg/kernels/lcg/kernel.json"])
    assert kernel["argv"][-2:] == ["/etc/gpufarm/kernels/lcg/kernels/lcg/start.sh", "{connection_file}"]
    argv = [*kernel["argv"][:-2], str(script), "/run/a file.json"]
    server = {**os.environ, "PYTHONPATH": "/opt/jupyterhub", "PATH": "/opt/jupyterhub/bin:/usr/bin:/bin"}
    return subprocess.run(argv, env=server, capture_output=True, text=True, check=True).stdout.strip()


def test_a_kernel_begins_with_the_setup_of_its_tree(tree: Path, tmp_path: Path) -> None:
    [told] = made(setup=f'source "{tree}/setup.sh"')["trees"]
    # Braces stay, as they are no fields of Jupyter. The setup sees neither arguments nor the server's Python.
    assert start(told, tmp_path) == "{view}0|4|-m ipykernel_launcher -f /run/a file.json|"
    assert told["title"] == "LCG 105"


def test_the_python_of_a_tree_needs_no_setup(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tree)
    [told] = made(python=f"{tmp_path}/link/bin/python")["trees"]
    assert start(told, tmp_path).startswith("|4|-m ipykernel_launcher")


def test_a_tree_is_tried_as_it_is_started(tree: Path) -> None:
    [told] = made(setup=f'source "{tree}/setup.sh"')["trees"]
    done = subprocess.run(told["probe"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "{view}0|2|-c import ipykernel.kernelapp|"
    [told] = made(setup=f"source {tree.parent}/missing/setup.sh", python="python-of-a-tree")["trees"]
    done = subprocess.run(told["probe"], capture_output=True, text=True, check=False)
    assert done.returncode != 0 and "python-of-a-tree: not found" in done.stderr


def test_the_hub_offers_it_like_others() -> None:
    [told] = json.loads(made(setup="true", groups=["cms"])["index"])["environments"]
    path = "/etc/gpufarm/kernels/lcg"
    assert told == {"name": "lcg", "title": "LCG 105", "groups": ["cms"], "path": path, "cuda": ""}


@pytest.mark.parametrize(
    ("entry", "sentence"),
    [
        (
            {"setup": "true", "lock": "x"},
            "has a lock, and a setup or python of a mounted tree; give one of both",
        ),
        (
            {"python": "/cvmfs/x; reboot"},
            "The python of the environment lcg is '/cvmfs/x; reboot'; give a path",
        ),
        ({"setup": "a\x00b"}, "holds a zero byte"),
        ({"setup": "true", "title": "\n\x1b[1m"}, "The title of the environment lcg cannot be shown"),
        ({}, "is none of those that this role has"),
    ],
)
def test_what_is_refused(entry: dict[str, Any], sentence: str) -> None:
    [problem] = made(**entry)["problems"]
    assert sentence in problem
