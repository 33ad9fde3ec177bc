"""Partitions that somebody holds and no program uses at the moment are kept, as long as a unit runs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import holders as mig_holders
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.holders import (
    Holder,
    holding,
    parse,
    read,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.modules import mig_partition
from hypothesis import given
from hypothesis import strategies as some
from simulated_machine import Machine

Make = Callable[..., Machine]
Run = Callable[..., dict[str, Any]]
NOTEBOOK = "jupyterhub-notebook-alice.service"


def written(*entries: dict[str, Any], service: str = "jupyterhub.service") -> str:
    return json.dumps({"service": service, "holders": entries})


def test_an_entry_depends_on_the_service_and_on_its_unit() -> None:
    text = written({"who": "a", "slices": ["x"]}, {"who": "b", "unit": NOTEBOOK, "slices": ["y", "z"]})
    assert parse(text) == [
        Holder("a", ("jupyterhub.service",), ("x",)),
        Holder("b", ("jupyterhub.service", NOTEBOOK), ("y", "z")),
    ]


def test_each_unit_is_asked_about_once() -> None:
    asked: list[str] = []

    def runs(unit: str) -> bool:
        asked.append(unit)
        return unit == "up"

    holders = [Holder("a", ("down", "up"), ()), Holder("b", ("down",), ()), Holder("c", ("up",), ())]
    assert [one.who for one in holding(holders, runs, bool)] == ["a", "c"]
    assert asked == ["down", "up"]


values = some.recursive(
    some.none() | some.booleans() | some.integers() | some.text(max_size=5),
    lambda inner: (
        some.lists(inner, max_size=3)
        | some.dictionaries(
            some.sampled_from(["service", "holders", "who", "unit", "slices", "cgroup"]), inner, max_size=4
        )
    ),
)


@given(values)
def test_nothing_but_value_errors(value: object) -> None:
    with contextlib.suppress(ValueError):
        assert all(isinstance(word, str) for one in parse(json.dumps(value)) for word in one.slices)


def test_a_file_that_cannot_be_read_is_an_error_that_names_it(tmp_path: Path) -> None:
    assert read(tmp_path / "nowhere") == []
    (tmp_path / "hub.json").write_text('{"holders": [')
    with pytest.raises(GpuError, match=r"hub\.json, which tells who holds partitions, cannot be read"):
        read(tmp_path)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the module on a machine where one notebook runs; returns its result."""
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")
    monkeypatch.setattr(mig_holders, "state", lambda unit: "active" if unit == NOTEBOOK else "inactive")

    def run_module(**arguments: Any) -> dict[str, Any]:
        with patch_module_args(arguments), pytest.raises(SystemExit):
            mig_partition.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.fixture
def hold(tmp_path: Path) -> Callable[..., None]:
    """Write down who holds what."""
    folder = tmp_path / "run" / "holders.d"
    folder.mkdir(parents=True)

    def write(who: str, unit: str, *slices: str) -> None:
        (folder / "hub.json").write_text(written({"who": who, "unit": unit, "slices": slices}))

    return write


def test_a_held_slice_is_kept_until_its_unit_ends(
    make_machine: Make, run: Run, hold: Callable[..., None]
) -> None:
    machine = make_machine("a100-80gb")
    slices = run(flavor="7x 1g.10gb")["slices"]
    hold("the notebook of alice", NOTEBOOK, slices[2]["uuid"], "MIG-of-yesterday")
    before = machine.state
    for request in ({"flavor": "2x 3g.40gb"}, {"layout": []}, {"flavor": "disabled"}):
        said = run(**request)["msg"]
        assert "the partition 1g.10gb at 2 is used by the notebook of alice" in said and "PID" not in said
    assert machine.state == before
    kept = run(flavor="1x 3g.40gb, 1x 1g.10gb")["slices"]
    assert slices[2] in kept and len(kept) == 2
    hold("the notebook of alice", "jupyterhub-notebook-gone.service", slices[2]["uuid"])
    assert len(run(flavor="2x 3g.40gb")["slices"]) == 2


def test_a_batch_job_that_has_opened_no_gpu_keeps_its_slice(
    make_machine: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-80gb")
    slices = run(flavor="7x 1g.10gb")["slices"]
    folder = tmp_path / "run" / "holders.d"
    folder.mkdir(parents=True)
    job = {"who": "the batch job 4711 of alice", "slices": [slices[3]["uuid"]]}
    (folder / "slurmd.json").write_text(written(job, service="slurmd.service"))
    monkeypatch.setattr(
        mig_holders, "state", lambda unit: "active" if unit == "slurmd.service" else "inactive"
    )
    assert "is used by the batch job 4711 of alice" in run(flavor="2x 3g.40gb")["msg"]
    assert slices[3] in run(flavor="1x 3g.40gb, 1x 1g.10gb")["slices"]


def test_a_batch_job_keeps_its_slice_while_its_control_group_is_there(
    make_machine: Make, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_machine("a100-80gb")
    slices = run(flavor="7x 1g.10gb")["slices"]
    folder, groups = tmp_path / "run" / "holders.d", tmp_path / "cgroup"
    folder.mkdir(parents=True)
    monkeypatch.setattr(mig_holders, "CGROUPS", groups)
    job = {"who": "the batch job 7 of alice", "cgroup": "system.slice/n1.scope/job_7"}
    elsewhere = {"who": "the batch job 8 of alice", "cgroup": "system.slice/../../run"}
    (folder / "slurm-7.json").write_text(
        written(
            {**job, "slices": [slices[3]["uuid"]]},
            {**elsewhere, "slices": [slices[4]["uuid"]]},
            service="slurmd.service",
        )
    )
    group = groups / job["cgroup"]
    group.mkdir(parents=True)
    said = run(flavor="2x 3g.40gb")["msg"]
    assert "the batch job 7 of alice" in said and "job 8" not in said
    group.rmdir()
    assert len(run(flavor="2x 3g.40gb")["slices"]) == 2


def test_who_says_so_takes_it_from_its_holder(
    make_machine: Make, run: Run, hold: Callable[..., None]
) -> None:
    machine = make_machine("a100-80gb")
    slices = run(flavor="7x 1g.10gb")["slices"]
    hold("the notebook of alice", NOTEBOOK, slices[0]["uuid"])
    machine.control("process-start", slices[5]["uuid"], "4242", "1")
    said = run(flavor="2x 3g.40gb", keep_held=False)["msg"]
    assert "(PID 4242)" in said and "alice" not in said
    machine.control("process-stop", "4242")
    assert len(run(flavor="2x 3g.40gb", keep_held=False)["slices"]) == 2


def test_a_whole_gpu_that_is_held_keeps_its_mode(
    make_machine: Make, run: Run, hold: Callable[..., None]
) -> None:
    make_machine("a100-80gb")
    hold("the notebook of alice", NOTEBOOK, run(flavor="None")["machine"][0])
    said = run(flavor="2x 3g.40gb")["msg"]
    assert "cannot be switched on while it is used by the notebook of alice: stop that" in said
