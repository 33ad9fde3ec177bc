"""Files that modules replace: whole, with their permissions from the first moment, and only after a check."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._host.io.module_files import replace_file


@pytest.fixture
def module(tmp_path: Path) -> AnsibleModule:
    with patch_module_args({"_ansible_remote_tmp": str(tmp_path)}):
        return AnsibleModule(argument_spec={})


def test_a_secret_is_never_open_to_others(
    module: AnsibleModule, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, modes, change = tmp_path / "secret", set(), os.chmod

    def observed(file: str | bytes | Path, mode: int, **how: bool) -> None:
        change(file, mode, **how)
        if path.exists():
            modes.add(stat.S_IMODE(path.stat().st_mode))

    monkeypatch.setattr(os, "chmod", observed)
    for content in ("first", "second"):
        replace_file(module, path, content, 0o600)
        assert path.read_text() == content
    assert modes == {0o600}


def test_a_file_that_fails_its_check_replaces_nothing(module: AnsibleModule, tmp_path: Path) -> None:
    path = tmp_path / "sudoers"
    replace_file(module, path, "former", 0o440)

    def refuse(file: str) -> None:
        assert Path(file).read_text() == "wrong"
        raise ValueError

    with pytest.raises(ValueError):
        replace_file(module, path, "wrong", 0o440, refuse)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("former", 0o440)
