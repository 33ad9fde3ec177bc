"""Matching: if an assignment exists it is found, and what is refused is explained."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from gpufarm.errors import NoMachine
from gpufarm.match import Wish, match
from gpufarm.pool import Gpu, Machine, Pool
from hypothesis import given
from hypothesis import strategies as st

A100 = Gpu("NVIDIA A100-SXM4-80GB", 85_520_809_984, True)
T4 = Gpu("Tesla T4", 16_106_127_360, False)
UNKNOWN = Gpu(None, None, None)


def machine(host: str, cpus: int = 8, memory: int = 64 * 10**9, gpus: tuple[Gpu, ...] = ()) -> Machine:
    return Machine(host, host, cpus, memory, 100 * 10**9, "debian", "12", gpus)


def pool(*machines: Machine, **silent: str) -> Pool:
    return Pool(Path("site"), {entry.host: entry for entry in machines}, silent)


def test_the_least_is_wasted() -> None:
    machines = pool(machine("big", gpus=(A100,) * 8), machine("cpu"), machine("small", gpus=(A100,)))
    assert match({"server": Wish(gpus=1)}, machines, {}, {})["server"].host == "small"
    assert match({"server": Wish()}, machines, {}, {})["server"].host == "cpu"


def test_traits_of_gpus() -> None:
    machines = pool(machine("t4", gpus=(T4,)), machine("a100", gpus=(A100,)), machine("new", gpus=(UNKNOWN,)))
    assert match({"server": Wish(gpus=1, gpu_model="a100")}, machines, {}, {})["server"].host == "a100"
    assert match({"server": Wish(gpus=1, mig=True)}, machines, {}, {})["server"].host == "a100"
    assert match({"server": Wish(gpus=1, gpu_memory=80 * 10**9)}, machines, {}, {})["server"].host == "a100"
    # before the driver is installed the kernel tells only that there is a GPU; the roles check the rest
    assert match({"server": Wish(gpus=1, mig=True)}, machines, {"a100": "x"}, {})["server"].host == "new"


def test_distributions() -> None:
    assert match({"server": Wish(distribution="debian", version="12")}, pool(machine("a")), {}, {})
    with pytest.raises(NoMachine, match=r"a lacks version 1 \(has debian 12\)"):
        match({"server": Wish(version="1")}, pool(machine("a")), {}, {})
    with pytest.raises(NoMachine, match=r"a lacks ubuntu version 12 \(has debian 12\)"):
        match({"server": Wish(distribution="ubuntu", version="12")}, pool(machine("a")), {}, {})


def test_the_nearest_miss_is_named() -> None:
    machines = pool(
        machine("gpu1", gpus=(A100,)),
        machine("gpu2", memory=32 * 10**9, gpus=(A100,)),
        machine("cpu1"),
        gpu3="timed out",
    )
    with pytest.raises(NoMachine) as refusal:
        match({"server": Wish(gpus=1, memory=64 * 10**9)}, machines, {"gpu1": "notebooks"}, {})
    assert refusal.value.message == (
        "no free machine of site has 1 NVIDIA GPU, 64 GB memory for node server; "
        "nearest: cpu1 lacks 1 NVIDIA GPU (has none); gpu1 is held by deployment notebooks; "
        "gpu3 cannot be reached (timed out)"
    )
    with pytest.raises(
        NoMachine, match=r"gpu2 lacks 1 NVIDIA GPU of model \"H100\" \(has 1: NVIDIA A100-SXM4-80GB\)"
    ):
        match({"server": Wish(gpus=1, gpu_model="H100")}, pool(machines.machines["gpu2"]), {}, {})


def test_a_node_keeps_its_machine() -> None:
    machines = pool(machine("a"), machine("b"))
    found = match({"x": Wish(), "y": Wish()}, machines, {}, {"y": "a"})
    assert {node: entry.host for node, entry in found.items()} == {"x": "b", "y": "a"}
    with pytest.raises(NoMachine, match="node y stands on c, which is not in site"):
        match({"y": Wish()}, machines, {}, {"y": "c"})
    with pytest.raises(NoMachine, match=r"node y stands on a, which lacks 16 CPUs \(has 8\)"):
        match({"y": Wish(cpus=16)}, machines, {}, {"y": "a"})


SIZES = st.integers(1, 4)


@given(
    st.lists(st.tuples(SIZES, SIZES), max_size=4), st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=4)
)
def test_an_assignment_is_found_if_there_is_one(
    have: list[tuple[int, int]], want: list[tuple[int, int]]
) -> None:
    machines = pool(*(machine(f"m{number}", cpus, memory) for number, (cpus, memory) in enumerate(have)))
    wishes = {f"n{number}": Wish(cpus=cpus, memory=memory) for number, (cpus, memory) in enumerate(want)}
    possible = any(
        all(not wish.lacks(chosen) for wish, chosen in zip(wishes.values(), order, strict=True))
        for order in itertools.permutations(machines.machines.values(), len(wishes))
    )
    try:
        found = match(wishes, machines, {}, {})
    except NoMachine:
        assert not possible
        return
    assert len({entry.host for entry in found.values()}) == len(wishes)
    assert all(not wish.lacks(found[node]) for node, wish in wishes.items())
