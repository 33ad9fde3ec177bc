"""Records of machines for people: who made what, and what differs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.filter.machine_record_table import machine_record_table
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.entry import Entry
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.store import Store
from ansible_collections.gpufarm.cluster.plugins.module_utils._record.io.things import states
from ansible_collections.gpufarm.cluster.plugins.modules import machine_record_info


def read(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    monkeypatch.setattr(machine_record_info, "Store", lambda: Store(folder))
    with patch_module_args({"_ansible_remote_tmp": str(folder)}), pytest.raises(SystemExit):
        machine_record_info.main()
    return json.loads(capsys.readouterr().out)["records"]


def test_a_table_says_who_made_what_and_what_differs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file, store = tmp_path / "web.conf", Store(tmp_path / "record")
    file.write_text("port 80")
    made = states({"paths": [str(file)]})
    at = "2026-11-25T10:11:12+00:00"
    store.replace("web", {"ada": Entry(made=made, complete=True, at=at), "bob": Entry(owns=False)})
    store.replace("mig", {"a playbook": Entry(complete=True, at=at)})
    (tmp_path / "record" / "hub.json").write_text("{")
    file.write_text("port 81")
    records = read(tmp_path / "record", monkeypatch, capsys)
    table = machine_record_table({"gpu2": [], "gpu1": records})
    assert table[0] == "machine  role  owner           applied           state"
    assert [line.split("  ")[0] for line in table[1:]] == ["gpu1"] * 4 + ["gpu2"]
    told = "\n".join(table)
    assert "hub   unknown                           the record is lost: it is no record" in told
    assert "mig   a playbook      2026-11-25 10:11  as recorded" in told
    assert f"web   ada             2026-11-25 10:11  paths {file}: {made['paths'][str(file)]} -> -rw" in told
    assert "web   bob (verifies)                    the run did not end" in told
    assert table[-1].endswith("no record")
