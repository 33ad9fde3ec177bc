"""Checks that compare equal GPUs, or programs on one GPU."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.baseline import Baseline
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import Settings
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.kernel_log import Event, parse_message
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import evaluate
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.rules import Reading
from health_readings import UUID, findings_of, gpu, machine

DOWN = {"nvlinks": {str(link): False for link in range(12)}}
MIG = {"mig": {"current": True, "pending": True}}


def status_of_links(*gpus: Reading) -> list[str]:
    """Return the status of the NVLinks of each GPU."""
    findings = evaluate(machine(*gpus), Settings(), Baseline())
    return [one.status for one in findings if one.check == "nvlink_state"]


def joined(index: int, ends: Collection[int | str], up: int = 12) -> Reading:
    """Return a GPU with so many of twelve NVLinks up, which lead to GPUs or to other devices."""
    peers = [end if isinstance(end, str) else f"0000:0{end}:00.0" for end in ends]
    values = {"nvlinks": {str(link): link < up for link in range(12)}, "nvlink_peers": peers}
    return replace(gpu(**values), index=index, uuid=f"GPU-{index}", pci_address=f"0000:0{index}:00.0")


def alone(index: int) -> Reading:
    """Return a GPU with no NVLink up."""
    return joined(index, (), up=0)


def test_a_gpu_beside_bridges_needs_none() -> None:
    assert status_of_links(joined(0, [1]), joined(1, [0]), alone(2)) == ["ok"] * 3
    # One bridge where a card has room for three; the cards of the pair get their warning.
    assert status_of_links(joined(0, [1], 4), joined(1, [0], 4), alone(2)) == ["warning", "warning", "ok"]
    pairs = [joined(index, [index ^ 1]) for index in range(6)]
    assert status_of_links(*pairs, alone(6), alone(7)) == ["ok"] * 8


def test_a_gpu_beside_four_that_a_bridge_joins_needs_none() -> None:
    four = [joined(index, set(range(4)) - {index}) for index in range(4)]
    assert status_of_links(*four, alone(4)) == ["ok"] * 5
    # If one of the four loses all of its links, each of the others loses those that lead to it.
    rest = [joined(index, set(range(3)) - {index}, up=8) for index in range(3)]
    assert status_of_links(*rest, alone(3)) == ["warning"] * 4


@pytest.mark.parametrize("count", [3, 7])
def test_a_gpu_of_a_board_with_switches_needs_its_links(count: int) -> None:
    others = [joined(index, ["0000:c4:00.0", "0000:c5:00.0"]) for index in range(count)]
    assert status_of_links(*others, alone(count)) == ["ok"] * count + ["warning"]
    assert status_of_links(joined(0, ["0000:c4:00.0"]), alone(1)) == ["ok", "warning"]


def test_where_the_other_ends_are_not_told_a_gpu_without_links_is_looked_at() -> None:
    untold = replace(joined(0, ()), values={"nvlinks": {"0": True}})
    assert status_of_links(untold, alone(1)) == ["ok", "warning"]


def links(first: dict[str, Any], second: dict[str, Any], name: str = "NVIDIA A100") -> dict[str, str]:
    """Return the status of the NVLinks of two GPUs by their UUIDs."""
    other = replace(gpu(**second), index=1, uuid="GPU-2", pci_address="0000:08:00.0", name=name)
    findings = evaluate(machine(gpu(**first), other), Settings(), Baseline())
    return {one.gpu: one.status for one in findings if one.check == "nvlink_state"}


def test_all_links_down_on_one_of_two_equal_gpus() -> None:
    assert links(DOWN, {}) == {UUID: "warning", "GPU-2": "ok"}
    assert links(DOWN, DOWN) == {UUID: "ok", "GPU-2": "ok"}
    assert links({}, {}) == {UUID: "ok", "GPU-2": "ok"}


def test_gpus_of_another_model_or_mode_are_not_compared() -> None:
    assert links(DOWN, {}, name="NVIDIA H100") == {UUID: "ok", "GPU-2": "ok"}
    assert links({**DOWN, **MIG}, {}) == {UUID: "ok", "GPU-2": "ok"}


def graphics_exceptions(*programs: str, address: str = "0000:07:00") -> list[Event]:
    lines = [f"NVRM: Xid (PCI:{address}): 13, {program} Graphics SM Warp Exception" for program in programs]
    events = [parse_message(line, 1) for line in lines]
    return [event for event in events if event is not None]


@pytest.mark.parametrize(
    ("programs", "status"),
    [
        ([f"pid={n}, name=python," for n in range(4)], "warning"),
        (["pid='7', name=a,", "pid=8,", "pid=9,", "pid=10,"], "warning"),
        ([f"pid={n}, name=python," for n in range(3)], "ok"),
        (["pid=7, name=python,"] * 9, "ok"),
        (["pid='<unknown>', name=<unknown>,"] * 9, "ok"),
        ([], "ok"),
    ],
)
def test_many_programs_with_graphics_errors_on_one_gpu(programs: list[str], status: str) -> None:
    found = findings_of(machine(gpu(), events=graphics_exceptions(*programs)))["graphics_errors"]
    assert found.status == status
    if status == "warning":
        assert (found.gpu, found.level, found.value) == (UUID, "administrator", 4)


def test_programs_on_several_gpus_and_other_errors_do_not_count_together() -> None:
    events = [
        *graphics_exceptions("pid=1,", "pid=2,"),
        *graphics_exceptions("pid=3,", "pid=4,", address="0000:08:00"),
    ]
    assert findings_of(machine(gpu(), events=events))["graphics_errors"].status == "ok"
    others = [replace(event, code=31) for event in graphics_exceptions(*(f"pid={n}," for n in range(9)))]
    assert findings_of(machine(gpu(), events=others))["graphics_errors"].status == "ok"
