"""Owners of partitions: kept with the layout, and checked before a removal."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.filter.mig_stored import mig_stored
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import restore
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.stored import divided, merged
from hypothesis import given
from hypothesis import strategies as st

MACHINE = ["GPU-1", "GPU-2", "GPU-3"]


def entry(gpu: str, *profiles: str, **more: Any) -> dict[str, Any]:
    return {"gpu": gpu, "mig_enabled": True, "partitions": [{"profile": name} for name in profiles], **more}


def test_whoever_partitions_a_gpu_owns_that() -> None:
    first = merged([], [entry("GPU-1", "3g.40gb")], MACHINE, "a playbook")
    second = merged(first, [entry("GPU-2", "1g.10gb")], MACHINE, "deployment x")
    assert [(one["gpu"], one["owner"]) for one in second] == [
        ("GPU-1", "a playbook"),
        ("GPU-2", "deployment x"),
    ]
    assert divided(second, "deployment x") == (["GPU-2"], [second[0]])
    third = merged(second, [entry("GPU-1", "7g.80gb")], MACHINE, "deployment x")
    assert divided(third, "a playbook") == ([], third), "it partitioned the GPU anew"


def test_asking_for_what_is_there_makes_nothing() -> None:
    stored = [entry("GPU-1", "3g.40gb", owner="a playbook")]
    assert merged(stored, [entry("GPU-1", "3g.40gb")], MACHINE, "deployment x") == stored


def test_what_was_stored_before_owners_were_goes_with_whoever_asks() -> None:
    stored = [entry("GPU-1", "3g.40gb")]
    assert divided(stored, "anybody") == (["GPU-1"], [])
    (adopted,) = merged(stored, stored, MACHINE, "a playbook")
    assert adopted["owner"] == "a playbook"


def test_gpus_without_mig_mode_or_no_longer_there_are_not_stored() -> None:
    stored = [entry("GPU-1", "3g.40gb", owner="x"), entry("GPU-9", "3g.40gb", owner="x")]
    assert merged(stored, [entry("GPU-1") | {"mig_enabled": False}], MACHINE, "y") == []


def test_the_filter_tells_a_role_all_that() -> None:
    assert mig_stored("", "x") == {"own": [], "others": [], "owners": "", "layout": []}
    stored = [entry("GPU-1", "3g.40gb", owner="b"), entry("GPU-2", "3g.40gb", owner="a")]
    told = mig_stored(json.dumps({"layout": stored}), "c", [entry("GPU-3", "1g.10gb")], MACHINE)
    assert told["owners"] == "a and b" and told["own"] == []
    assert told["layout"] == [*stored, entry("GPU-3", "1g.10gb", owner="c")]


OWNERS = st.sampled_from(["a playbook", "deployment x", "deployment y"])
REQUESTS = st.lists(
    st.tuples(OWNERS, st.sampled_from(MACHINE), st.sampled_from(["1g.10gb", "3g.40gb"])), max_size=12
)


@given(requests=REQUESTS)
def test_nobody_can_take_away_what_somebody_else_made_last(requests: list[tuple[str, str, str]]) -> None:
    stored: list[dict[str, Any]] = []
    made: dict[str, tuple[str, str]] = {}
    for owner, gpu, profile in requests:
        stored = merged(stored, [entry(gpu, profile)], MACHINE, owner)
        if made.get(gpu, ("", ""))[1] != profile:
            made[gpu] = (owner, profile)
    for owner in ("a playbook", "deployment x", "deployment y"):
        own, others = divided(stored, owner)
        assert own == sorted(gpu for gpu, (maker, _profile) in made.items() if maker == owner)
        assert sorted(own + [one["gpu"] for one in others]) == sorted(made)


@pytest.mark.parametrize(
    "text",
    ["{", "[]", "{}", '{"layout": 1}', '{"layout": [1]}', '{"layout": [{"gpu": 1, "partitions": []}]}'],
)
def test_a_damaged_file_is_told_with_the_next_step(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mig.json"
    file.write_text(text)
    sentence = "holds no layout of partitions.*: remove it, and run the role mig again"
    with pytest.raises(AnsibleFilterError, match=f"/etc/gpufarm/mig.json {sentence}"):
        mig_stored(text, "ada")
    monkeypatch.setattr(sys, "argv", ["gpufarm-mig", str(file)])
    assert restore.main() == 1
    assert re.match(f"{file} {sentence}", capsys.readouterr().err)


def test_a_file_that_is_not_there_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gpufarm-mig", "--check", str(tmp_path / "mig.json")])
    assert restore.main() == 1
    assert capsys.readouterr().err == f"{tmp_path}/mig.json cannot be read: No such file or directory.\n"
