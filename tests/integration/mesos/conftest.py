# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real Mesos, and modules that run in the tests' own process. Where CI is set its absence is a failure."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args

from lab.mesos import real


class Ended(Exception):
    """A module ended, with its result."""


@pytest.fixture(scope="session", autouse=True)
def available() -> None:
    try:
        real.install()
    except real.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="module")
def mesos(tmp_path_factory: pytest.TempPathFactory) -> Iterator[real.Mesos]:
    """A master with two agents of 4 GPUs each, without authentication."""
    resources = f"{real.RESOURCES};gpus:4"
    with real.Mesos(tmp_path_factory.mktemp("mesos") / "work", 2, resources) as running:
        yield running


Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, mesos: real.Mesos) -> Run:
    """Run a module against Mesos and return its result; `failed` is in it when it failed."""

    def end(_module: Any, **result: Any) -> None:
        raise Ended(result)

    def fail(_module: Any, **result: Any) -> None:
        raise Ended({"failed": True, **result})

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", fail)

    def run_module(module: Any, check: bool = False, **arguments: Any) -> dict[str, Any]:
        words = {"urls": [mesos.url], "patience": 60, **arguments, "_ansible_check_mode": check}
        with patch_module_args(words), pytest.raises(Ended) as ended:
            module.main()
        return ended.value.args[0]

    return run_module


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"
