# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are made once, hidden, and returned."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils import basic
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import secret_files


class Ended(Exception):
    """The module ended, with a result."""


def run(monkeypatch: pytest.MonkeyPatch, check: bool = False, **arguments: Any) -> dict[str, Any]:
    def end(_module: Any, **result: Any) -> None:
        raise Ended(result)

    monkeypatch.setattr(basic.AnsibleModule, "exit_json", end)
    monkeypatch.setattr(basic.AnsibleModule, "fail_json", end)
    with patch_module_args({**arguments, "_ansible_check_mode": check}), pytest.raises(Ended) as ended:
        secret_files.main()
    return ended.value.args[0]


def test_secrets_are_made_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    request = {"folder": str(tmp_path / "secrets"), "names": ["a", "b"]}
    first = run(monkeypatch, **request)
    assert first["changed"] and len(set(first["secrets"].values())) == 2
    for name, secret in first["secrets"].items():
        path = tmp_path / "secrets" / name
        assert re.fullmatch("[A-Za-z0-9_-]{43}", secret) and path.read_text() == secret
        assert path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "secrets").stat().st_mode & 0o777 == 0o700
    again = run(monkeypatch, **request)
    assert not again["changed"] and again["secrets"] == first["secrets"]
    assert sorted(path.name for path in (tmp_path / "secrets").iterdir()) == ["a", "b"]


def test_check_mode_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = run(monkeypatch, check=True, folder=str(tmp_path / "secrets"), names=["a"])
    assert found["changed"] and found["secrets"] == {"a": ""}
    assert not (tmp_path / "secrets").exists()


def test_a_secret_that_others_can_read_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("known\n")
    (tmp_path / "a").chmod(0o644)
    found = run(monkeypatch, folder=str(tmp_path), names=["a"])
    assert found["changed"] and found["secrets"] == {"a": "known"}
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"names": ["gone"], "create": False}, "gone is missing; run the role that makes it first"),
        ({"names": ["empty"]}, "empty is empty"),
        ({"names": ["../a"]}, "is no plain name"),
    ],
)
def test_what_cannot_be_had_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any], words: str
) -> None:
    (tmp_path / "empty").touch()
    assert words in run(monkeypatch, folder=str(tmp_path), **arguments)["msg"]
