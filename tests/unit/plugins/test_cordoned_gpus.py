"""Modules and the program at boot leave cordoned GPUs and slices as they are, and tell of them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.cordon import cordon
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder as cordons
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import holders, restore
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import Gpu
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from ansible_collections.gpufarm.cluster.plugins.modules import gpu_info, gpu_validate, mig_partition
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]
SINCE = "2026-11-25T10:00:00Z"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a module and return its answer."""
    monkeypatch.setattr(cordons, "FOLDER", tmp_path / "cordons")
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(holders, "HOLDERS", tmp_path / "none")
    monkeypatch.setattr(restore, "locked", contextlib.nullcontext)
    for module in (gpu_info, gpu_validate, mig_partition):
        monkeypatch.setattr(module, "use_gpu_python", lambda: None)

    def run_module(module: ModuleType, **arguments: Any) -> dict[str, Any]:
        with patch_module_args(arguments), pytest.raises(SystemExit):
            module.main()
        answer: dict[str, Any] = json.loads(capsys.readouterr().out)
        return answer

    return run_module


def gpus() -> tuple[Gpu, ...]:
    with session.session() as nvml:
        return nvml.gpus()


def cordon_it(uuid: str) -> None:
    cordons.write(cordon(uuid, "ticket 7", SINCE, "administrator"))


def words(uuid: str) -> str:
    return (
        f"{uuid} is cordoned by administrator since {SINCE} (ticket 7); 'gpufarm-health uncordon {uuid}' ends"
        " the cordon"
    )


def test_a_cordoned_gpu_is_not_partitioned(make_machine: Make, run: Run) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    first, second = (one.uuid for one in gpus())
    cordon_it(first)
    refused = run(mig_partition, flavor="7x 1g.10gb")
    assert refused["failed"] and f"not changed, as {words(first)}: run that command" in refused["msg"]
    assert machine.writes() == []
    assert run(mig_partition, flavor="7x 1g.10gb", gpus=[second])["changed"]
    cordons.remove(first)
    assert run(mig_partition, flavor="7x 1g.10gb")["changed"]
    cordon_it(first)
    assert not run(mig_partition, flavor="7x 1g.10gb")["changed"]
    assert run(mig_partition, flavor="disabled", keep_held=False)["failed"]


def test_a_cordoned_slice_is_kept(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb")
    slices = run(mig_partition, flavor="7x 1g.10gb")["slices"]
    kept = slices[3]["uuid"]
    cordon_it(kept)
    refused = run(mig_partition, flavor="disabled", keep_held=False)
    assert refused["failed"] and f"is used by a cordon, as {words(kept)}" in refused["msg"]
    left = run(mig_partition, flavor="1x 3g.40gb, 1x 1g.10gb", keep_held=False)["slices"]
    assert slices[3] in left and len(left) == 2


def test_boot_leaves_a_cordoned_gpu_and_partitions_the_others(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb", "a100-80gb")
    first, second = (one.uuid for one in gpus())
    cordon_it(first)
    partitions = [{"profile": "7g.80gb", "start": 0}]
    problems = restore.restore([{"gpu": uuid, "partitions": partitions} for uuid in (first, second)])
    assert len(problems) == 1 and words(first) in problems[0]
    bare, partitioned = gpus()
    assert not bare.mig_enabled and len(partitioned.instances) == 1


def test_the_facts_tell_of_cordons(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb", "a100-80gb")
    slices = run(mig_partition, flavor="2x 3g.40gb")["slices"]
    first, second = (one.uuid for one in gpus())
    cordon_it(first)
    alone = next(one["uuid"] for one in slices if one["gpu"] == second)
    cordon_it(alone)
    told = run(gpu_info)
    assert [(one["cordoned"], one["cordon"]) for one in told["gpus"]] == [(True, words(first)), (False, "")]
    free = {one["uuid"] for one in told["slices"] if not one["cordoned"]}
    assert free == {one["uuid"] for one in slices if one["gpu"] == second} - {alone}


def test_a_declaration_without_cordons_is_checked(make_machine: Make, run: Run) -> None:
    make_machine("a100-80gb", "a100-80gb")
    assert not run(gpu_validate, cordoned=False).get("failed")
    assert run(gpu_validate, cordoned=True)["failed"]
    first = gpus()[0].uuid
    cordon_it(first)
    refused = run(gpu_validate, cordoned=False)
    assert refused["failed"] and f"{words(first)}, none declared" in refused["msg"]
    assert [check["ok"] for check in refused["checks"]] == [False, True]
    assert not run(gpu_validate, count=2).get("failed")


def test_a_folder_that_cannot_be_read_is_an_error_of_each_module(
    make_machine: Make, run: Run, tmp_path: Path
) -> None:
    make_machine("a100-80gb")
    (tmp_path / "cordons").write_text("")
    for module, arguments in (
        (gpu_info, {}),
        (gpu_validate, {"cordoned": False}),
        (mig_partition, {"flavor": "7x 1g.10gb"}),
    ):
        refused = run(module, **arguments)
        assert refused["failed"] and "which tells which GPUs are cordoned, cannot be read" in refused["msg"]
