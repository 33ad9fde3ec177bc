"""How GPUs are chosen, and what their partitions are called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._nvml.gpu import (
    Gpu,
    GpuError,
    Unreadable,
    select,
)
from mig_geometry import gpu

GPUS = (
    gpu(
        "A100-SXM4-80GB",
        index=0,
        uuid="GPU-aa",
        name="NVIDIA A100",
        pci_address="0000:07:00.0",
        serial="1562021000000",
    ),
    gpu("A30", index=1, uuid="GPU-bb", name="NVIDIA A30", pci_address="0000:0f:00.0", serial="1562021000001"),
    gpu("A30", index=2, uuid="GPU-cc", name="NVIDIA A30", pci_address="0001:0f:00.0", serial=""),
)


def chosen(*selectors: str) -> list[int]:
    return [one.index for one in select(GPUS, list(selectors))]


@pytest.mark.parametrize(
    ("selectors", "indexes"),
    [
        (["all"], [0, 1, 2]),
        (["2", "0"], [0, 2]),
        (["GPU-bb"], [1]),
        (["nvidia a30"], [1, 2]),
        (["0f:00.0"], [1]),
        (["00000001:0F:00.0"], [2]),
        (["1562021000000"], [0]),
        (["all", "1"], [0, 1, 2]),
    ],
)
def test_selectors(selectors: list[str], indexes: list[int]) -> None:
    assert chosen(*selectors) == indexes


@pytest.mark.parametrize("selector", ["3", "GPU-dd", "08:00.0", "", "A100"])
def test_a_selector_that_names_nothing_is_refused_with_the_gpus_there_are(selector: str) -> None:
    with pytest.raises(GpuError, match=f"'{selector}' names no GPU") as caught:
        chosen("0", selector)
    assert "GPU 1 (NVIDIA A30, 0000:0f:00.0), UUID GPU-bb, serial number 1562021000001" in str(caught.value)


def test_those_that_can_be_partitioned_are_a_selector() -> None:
    first, second, third = GPUS
    machine = (first, replace(second, mig_capable=False), third)
    assert select(machine, ["Capable"]) == (first, third)
    assert select(machine, ["capable", "1"]) == machine
    with pytest.raises(GpuError, match=r"No GPU of this machine can be partitioned with MIG, .* GPU 1"):
        select(machine[1:2], ["capable"])
    with pytest.raises(GpuError, match="GPU 3 cannot be read"):
        select(machine, ["capable"], (Unreadable(3, "", "", "GPU is lost."),))
    with pytest.raises(GpuError, match="manages no GPU"):
        select((), ["capable"])


def test_a_machine_without_gpus_is_told_so() -> None:
    none: tuple[Gpu, ...] = ()
    with pytest.raises(GpuError, match="manages no GPU"):
        select(none, ["all"])
