# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of a file system become what is declared, with no more calls of lctl than that takes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io import timed
from ansible_collections.gpufarm.cluster.plugins.modules import lustre_settings

Run = Callable[..., tuple[dict[str, Any], list[list[str]]]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module where a file system has one pool; return its result and what lctl was told."""
    told: list[list[str]] = []
    said = {"home": "Pools from home:\nhome.fast\n", "home.fast": "Pool: home.fast\nhome-OST0000_UUID\n"}

    def lctl(words: list[str], _seconds: float) -> timed.Answer:
        if words[1] != "pool_list":
            told.append(words[1:])
        broken = words[-1] == "home-OST0009"
        return timed.Answer(int(broken), said.get(words[2], ""), "no such OST" if broken else "")

    monkeypatch.setattr(timed, "run", lctl)
    monkeypatch.setattr(shutil, "which", lambda _name, path="": "/usr/sbin/lctl")

    def call(pools: dict[str, list[str]], check: bool = False) -> tuple[dict[str, Any], list[list[str]]]:
        told.clear()
        arguments = {"pools": pools, "_ansible_check_mode": check, "_ansible_remote_tmp": str(tmp_path)}
        with patch_module_args(arguments), pytest.raises(SystemExit):
            lustre_settings.main()
        return json.loads(capsys.readouterr().out), list(told)

    return call


def test_pools_as_declared_stay(run: Run) -> None:
    result, told = run({"home.fast": ["home-OST0000"]})
    assert (result["changed"], result["done"], told) == (False, [], [])


def test_what_is_missing_is_added(run: Run) -> None:
    wanted = {"home.fast": ["home-OST0000", "home-OST0001"], "home.slow": ["home-OST0002"]}
    commands = [
        ["pool_add", "home.fast", "home-OST0001"],
        ["pool_new", "home.slow"],
        ["pool_add", "home.slow", "home-OST0002"],
    ]
    for check in (True, False):
        result, told = run(wanted, check=check)
        assert result["changed"] and result["done"] == [" ".join(command) for command in commands]
        assert told == ([] if check else commands)


def test_a_command_that_fails_is_told(run: Run) -> None:
    result, _ = run({"home.fast": ["home-OST0009"]})
    assert result["failed"]
    assert result["msg"] == "'lctl pool_add home.fast home-OST0009' failed: no such OST"
