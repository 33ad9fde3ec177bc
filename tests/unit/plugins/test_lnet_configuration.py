# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module says what it lacks before it asks LNet."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.modules import lnet_configuration


def check(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """Run the module in check mode on a machine where LNet does not run."""
    arguments = {
        "networks": [{"name": "tcp", "interfaces": ["eth0"]}],
        "_ansible_check_mode": True,
        "_ansible_remote_tmp": str(tmp_path),
    }
    with patch_module_args(arguments), pytest.raises(SystemExit):
        lnet_configuration.main()
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


@pytest.mark.parametrize("program", ["/usr/sbin/lnetctl", None])
def test_yaml_is_only_needed_to_read_what_lnetctl_says(
    program: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lnet_configuration, "YAML_PROBLEM", "No module named 'yaml'")
    monkeypatch.setattr(shutil, "which", lambda _name, path="": program)
    result = check(tmp_path, capsys)
    if program:
        assert "PyYAML" in result["msg"]
    else:
        assert result["changed"], "packages of Lustre bring it, and a check on a new machine has none"


TABLE = """\
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 21 0:50 / /srv/ost0 rw,relatime shared:2 - {kind} {source} ro,svname=data-OST0000
"""


@pytest.mark.parametrize(
    ("kind", "source", "counts"),
    [
        ("lustre", "10.0.0.1@tcp:/data", True),
        ("fuse.lustre", "10.0.0.1@tcp:/data", True),
        ("lustre", "/dev/sdb", True),
        ("lustre_tgt", "/dev/mapper/ost0", True),
        ("ext4", "/dev/sdb", False),
    ],
)
def test_file_systems_and_targets_that_are_mounted_use_the_network(
    monkeypatch: pytest.MonkeyPatch, kind: str, source: str, counts: bool
) -> None:
    text = TABLE.format(kind=kind, source=source)
    monkeypatch.setattr(Path, "read_text", lambda _path, **_how: text)
    assert lnet_configuration.mounted() == (["/srv/ost0"] if counts else [])
