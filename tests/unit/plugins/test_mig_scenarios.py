"""Changes of partitions as they come on real machines: how they end, and with how many calls that write.

The numbers are part of the promise: each write ends a slice or makes one, and none is made for nothing. A
small slice takes two calls, one for each instance, and a change of MIG mode one.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pynvml
import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import parse_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io import apply
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.plan import Plan, plan_flavor
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import GpuError
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io import session
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.io.guarded import Calls, Guarded
from ansible_collections.gpufarm.cluster.plugins.modules import mig_partition
from simulated_machine import Machine

Make = Callable[..., Machine]
Event = Callable[[Machine], None]
CREATE_COMPUTE = "nvmlGpuInstanceCreateComputeInstanceWithPlacement"
DESTROY = "nvmlGpuInstanceDestroy"


@dataclass(frozen=True)
class Scenario:
    """A machine, what happens to it, a request, and how that ends.

    Attributes:
        before: requests that are carried out first.
        events: what happens then.
        flavor: the request.
        slices: profiles of all slices of the GPUs afterwards, as they are listed.
        writes: calls that change something, of the request alone.
        refused: words of the message; empty for a request that succeeds.
        gpus: selectors of the request.
    """

    name: str
    flavor: str
    slices: Sequence[str]
    writes: int
    models: Sequence[str] = ("a100-80gb",)
    before: Sequence[str] = ()
    events: Sequence[Event] = ()
    refused: str = ""
    gpus: Sequence[str] = ("all",)


def use(index: int) -> Event:
    """A program computes on a slice."""

    def event(machine: Machine) -> None:
        machine.control("process-start", slices()[index][1], "4242", "1")

    return event


def run_simgpu(*words: object) -> Event:
    """Something that simgpu plays."""

    def event(machine: Machine) -> None:
        machine.simgpu(*words)

    return event


def switch_on(_machine: Machine) -> None:
    """MIG mode is on, and there are no partitions."""
    with session.session():
        pynvml.nvmlDeviceSetMigMode(pynvml.nvmlDeviceGetHandleByIndex(0), 1)


def orphan(profile: int) -> Event:
    """Another program was killed between the two calls that make a slice."""

    def event(_machine: Machine) -> None:
        with session.session():
            gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
            pynvml.nvmlDeviceCreateGpuInstance(gpu, profile)

    return event


def killed(flavor: str, nth: int) -> Event:
    """A run that asks for a flavor is killed before one of its calls that write."""

    def event(machine: Machine) -> None:
        machine.simgpu("fault", "add", "write", "kill", "--nth", nth)
        with session.session() as nvml:
            plans = [plan_flavor(gpu, parse_flavor(flavor)) for gpu in nvml.survey().gpus]
        with pytest.raises(GpuError):
            Guarded().change(lambda calls: _apply(calls, plans), "")
        machine.simgpu("fault", "clear")

    return event


def _apply(calls: Calls, plans: list[Plan]) -> apply.Outcome:
    with session.session(calls) as nvml:
        return apply.apply(nvml, plans)


def slices() -> list[tuple[str, str]]:
    """Return profile and UUID of each slice, by GPU and place."""
    with session.session() as nvml:
        return [
            (one.profile.name, compute.uuid)
            for gpu in nvml.survey().gpus
            for one in sorted(gpu.instances, key=lambda instance: instance.placement.start)
            for compute in one.compute_instances
        ]


def fail(call: str, nth: int) -> Event:
    """A call answers once that something unknown went wrong."""
    return run_simgpu("fault", "add", call, 999, "--nth", nth)


SEVEN = ("1g.10gb",) * 7
SCENARIOS = (
    Scenario("seven small slices of a new GPU", "7x 1g.10gb", SEVEN, 15),
    Scenario("the same again", "7x 1g.10gb", SEVEN, 0, before=["7x 1g.10gb"]),
    Scenario("large slices for small ones", "2x 3g.40gb", ("3g.40gb",) * 2, 18, before=["7x 1g.10gb"]),
    Scenario(
        "one kind changes, the other stays",
        "1x 3g.40gb, 4x 1g.10gb",
        (*SEVEN[:4], "3g.40gb"),
        12,
        before=["1x 3g.40gb, 2x 2g.20gb"],
    ),
    Scenario("one slice more", "4x 1g.10gb", SEVEN[:4], 2, before=["3x 1g.10gb"]),
    Scenario("one slice less", "2x 1g.10gb", SEVEN[:2], 2, before=["3x 1g.10gb"]),
    Scenario(
        "parts of an instance, which stays", "3x 1c.3g.40gb", ("3g.40gb",) * 3, 4, before=["1x 3g.40gb"]
    ),
    Scenario("no slices and no MIG mode", "disabled", (), 15, before=["7x 1g.10gb"]),
    Scenario("two GPUs at once", "1x 7g.80gb", ("7g.80gb",) * 2, 6, models=("a100-80gb", "a100-80gb")),
    Scenario(
        "small ones first, where the driver's own places leave no room",
        "2x 1g.10gb, 1x 2g.20gb, 1x 3g.40gb",
        ("2g.20gb", "1g.10gb", "1g.10gb", "3g.40gb"),
        9,
    ),
    Scenario("the one with media engines", "1x 1g.10gb+me, 6x 1g.10gb", (*SEVEN[:6], "1g.10gb+me"), 15),
    Scenario("double memory", "4x 1g.20gb", ("1g.20gb",) * 4, 9),
    Scenario(
        "around a slice in use",
        "1x 3g.40gb, 1x 1g.10gb",
        ("3g.40gb", "1g.10gb"),
        14,
        before=["7x 1g.10gb"],
        events=[use(6)],
    ),
    Scenario(
        "over a slice in use",
        "1x 7g.80gb",
        SEVEN,
        0,
        before=["7x 1g.10gb"],
        events=[use(3)],
        refused="is used by",
    ),
    Scenario(
        "a program on the whole GPU",
        "7x 1g.10gb",
        (),
        0,
        events=[run_simgpu("process", "start", "--gpu", "0", "--pid", "4242")],
        refused="is used by",
    ),
    Scenario("more than there are", "8x 1g.10gb", (), 0, refused="cannot hold"),
    Scenario("no room for the last", "2x 3g.40gb, 1x 1g.10gb", (), 0, refused="cannot hold"),
    Scenario("a GPU without MIG", "7x 1g.10gb", (), 0, models=("t4",), refused="cannot be partitioned"),
    Scenario("a profile of another GPU", "7x 1g.5gb", (), 0, refused="1g.5gb"),
    Scenario(
        "a fault while slices are made",
        "7x 1g.10gb",
        ("3g.40gb",) * 2,
        19,
        before=["2x 3g.40gb"],
        events=[fail(CREATE_COMPUTE, 3)],
        refused="put back",
    ),
    Scenario(
        "a fault while slices are ended",
        "2x 3g.40gb",
        SEVEN,
        15,
        before=["7x 1g.10gb"],
        events=[fail(DESTROY, 4)],
        refused="put back",
    ),
    Scenario(
        "after a run that was killed in the middle",
        "7x 1g.10gb",
        SEVEN,
        11,
        events=[killed("7x 1g.10gb", 5)],
    ),
    Scenario(
        "half a slice of another program",
        "7x 1g.10gb",
        SEVEN,
        13,
        events=[switch_on, orphan(19)],
    ),
    Scenario(
        "half a slice in the way",
        "1x 7g.80gb",
        ("7g.80gb",),
        3,
        events=[switch_on, orphan(19)],
    ),
    Scenario(
        "a GPU that a virtual machine was given, whose mode waits for a reboot",
        "7x 1g.10gb",
        (),
        1,
        events=[run_simgpu("set", "0", "passthrough=1")],
    ),
    Scenario(
        "beside a lost GPU",
        "7x 1g.10gb",
        SEVEN,
        15,
        models=("a100-80gb", "a100-80gb"),
        events=[run_simgpu("set", "1", "lost=1")],
        gpus=("0",),
    ),
    Scenario(
        "all GPUs, of which one is lost",
        "7x 1g.10gb",
        (),
        0,
        models=("a100-80gb", "a100-80gb"),
        events=[run_simgpu("set", "1", "lost=1")],
        refused="GPU is lost",
    ),
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """Run the module; returns its result."""
    monkeypatch.setattr(mig_partition, "FOLDER", tmp_path / "run")

    def run_module(flavor: str, gpus: Sequence[str]) -> dict[str, Any]:
        with patch_module_args({"flavor": flavor, "gpus": list(gpus)}), pytest.raises(SystemExit):
            mig_partition.main()
        result: dict[str, Any] = json.loads(capsys.readouterr().out)
        return result

    return run_module


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_change_ends_as_promised(scenario: Scenario, make_machine: Make, run: Any) -> None:
    machine = make_machine(*scenario.models)
    for flavor in scenario.before:
        assert "msg" not in run(flavor, ["all"])
    for event in scenario.events:
        event(machine)
    former = len(machine.writes())
    result = run(scenario.flavor, scenario.gpus)
    assert scenario.refused in result.get("msg", "")
    assert bool(result.get("failed")) is bool(scenario.refused)
    assert [name for name, _uuid in slices()] == list(scenario.slices)
    assert len(machine.writes()) - former == scenario.writes
