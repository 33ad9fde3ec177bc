"""Matching: if an assignment exists it is found, and what is refused is explained."""

from __future__ import annotations

import itertools
import random
import time
from pathlib import Path

import pytest
from deployer_site import Site
from gpufarm.assignment import assign, shortage
from gpufarm.errors import NoMachine
from gpufarm.match import MachineRequest, match
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
    assert match({"server": MachineRequest(gpus=1)}, machines, {}, {})["server"].host == "small"
    assert match({"server": MachineRequest()}, machines, {}, {})["server"].host == "cpu"


def test_traits_of_gpus() -> None:
    machines = pool(machine("t4", gpus=(T4,)), machine("a100", gpus=(A100,)), machine("new", gpus=(UNKNOWN,)))
    assert (
        match({"server": MachineRequest(gpus=1, gpu_model="a100")}, machines, {}, {})["server"].host == "a100"
    )
    assert match({"server": MachineRequest(gpus=1, mig=True)}, machines, {}, {})["server"].host == "a100"
    assert (
        match({"server": MachineRequest(gpus=1, gpu_memory=80 * 10**9)}, machines, {}, {})["server"].host
        == "a100"
    )
    # before the driver is installed the kernel tells only that there is a GPU; the roles check the rest
    assert (
        match({"server": MachineRequest(gpus=1, mig=True)}, machines, {"a100": "x"}, {})["server"].host
        == "new"
    )


def test_distributions() -> None:
    assert match({"server": MachineRequest(distribution="debian", version="12")}, pool(machine("a")), {}, {})
    with pytest.raises(NoMachine, match=r"a lacks version 1 \(has debian 12\)"):
        match({"server": MachineRequest(version="1")}, pool(machine("a")), {}, {})
    with pytest.raises(NoMachine, match=r"a lacks ubuntu version 12 \(has debian 12\)"):
        match({"server": MachineRequest(distribution="ubuntu", version="12")}, pool(machine("a")), {}, {})


def test_the_nearest_miss_is_named() -> None:
    machines = pool(
        machine("gpu1", gpus=(A100,)),
        machine("gpu2", memory=32 * 10**9, gpus=(A100,)),
        machine("cpu1"),
        gpu3="timed out",
    )
    with pytest.raises(NoMachine) as refusal:
        match({"server": MachineRequest(gpus=1, memory=64 * 10**9)}, machines, {"gpu1": "notebooks"}, {})
    assert refusal.value.message == (
        "no free machine of site has 1 NVIDIA GPU, 64 GB memory for node server; "
        "nearest: gpu1 is held by deployment notebooks; cpu1 lacks 1 NVIDIA GPU (has none); "
        "gpu3 cannot be reached (timed out)"
    )
    with pytest.raises(
        NoMachine, match=r"gpu2 lacks 1 NVIDIA GPU of model \"H100\" \(has 1: NVIDIA A100-SXM4-80GB\)"
    ):
        match({"server": MachineRequest(gpus=1, gpu_model="H100")}, pool(machines.machines["gpu2"]), {}, {})


def test_a_node_keeps_its_machine() -> None:
    machines = pool(machine("a"), machine("b"))
    found = match({"x": MachineRequest(), "y": MachineRequest()}, machines, {}, {"y": "a"})
    assert {node: entry.host for node, entry in found.items()} == {"x": "b", "y": "a"}
    with pytest.raises(NoMachine, match="node y stands on c, which is not in site"):
        match({"y": MachineRequest()}, machines, {}, {"y": "c"})
    with pytest.raises(NoMachine, match=r"node y stands on a, which lacks 16 CPUs \(has 8\)"):
        match({"y": MachineRequest(cpus=16)}, machines, {}, {"y": "a"})


def test_all_machines_of_a_deployment_that_are_unreachable_are_told() -> None:
    pool = Pool(Path("site"), {}, {"a": "timed out", "b": "refused"})
    with pytest.raises(NoMachine) as refused:
        match({"x": MachineRequest(), "y": MachineRequest()}, pool, {}, {"x": "a", "y": "b"})
    assert refused.value.message.splitlines() == [
        "node x stands on a, which cannot be reached (timed out); repair that, or undeploy",
        "node y stands on b, which cannot be reached (refused); repair that, or undeploy",
    ]


def test_too_few_for_all_who_need_one() -> None:
    machines = pool(
        machine("gpu1", gpus=(A100,)), machine("gpu2", gpus=(A100,)), machine("cpu1"), machine("cpu2")
    )
    requests = {
        "head": MachineRequest(),
        "x": MachineRequest(gpus=1),
        "y": MachineRequest(gpus=1),
        "z": MachineRequest(gpus=1),
    }
    with pytest.raises(
        NoMachine, match="the nodes x, y, z need 3 machines, but only 2 of site fit and are free"
    ):
        match(requests, machines, {}, {})
    with pytest.raises(
        NoMachine, match=r"only 1 of site fits and is free: gpu2; .*gpu1 is held by deployment notes"
    ):
        match(requests, machines, {"gpu1": "notes"}, {})


def test_a_thousand_nodes_on_two_thousand_machines_take_less_than_a_second() -> None:
    numbers = random.Random(1)
    requests = {
        f"n{index}": MachineRequest(
            cpus=numbers.randint(1, 64), memory=numbers.randint(1, 512) * 10**9, gpus=index % 5
        )
        for index in range(1000)
    }
    machines = [
        machine(f"m{index}", request.cpus + index % 2, request.memory, (A100,) * request.gpus)
        for index, request in enumerate([*requests.values(), *requests.values()])
    ]
    numbers.shuffle(machines)
    began = time.process_time()
    found = match(requests, pool(*machines), {}, {})
    assert time.process_time() - began < 1
    assert len({entry.host for entry in found.values()}) == 1000
    assert not any(requests[node].lacks(entry) for node, entry in found.items())


SIZES = st.integers(1, 4)


@given(
    st.lists(st.tuples(SIZES, SIZES), max_size=4), st.lists(st.tuples(SIZES, SIZES), min_size=1, max_size=4)
)
def test_an_assignment_is_found_if_there_is_one(
    have: list[tuple[int, int]], want: list[tuple[int, int]]
) -> None:
    machines = pool(*(machine(f"m{number}", cpus, memory) for number, (cpus, memory) in enumerate(have)))
    requests = {
        f"n{number}": MachineRequest(cpus=cpus, memory=memory) for number, (cpus, memory) in enumerate(want)
    }
    possible = any(
        all(not request.lacks(chosen) for request, chosen in zip(requests.values(), order, strict=True))
        for order in itertools.permutations(machines.machines.values(), len(requests))
    )
    try:
        found = match(requests, machines, {}, {})
    except NoMachine:
        assert not possible
        return
    assert len({entry.host for entry in found.values()}) == len(requests)
    assert all(not request.lacks(found[node]) for node, request in requests.items())


@given(st.lists(st.integers(0, 31), max_size=6))
def test_the_first_machines_that_can_serve_all_are_used(suits: list[int]) -> None:
    chosen = assign(suits, 5)
    assert all(suits[number] >> taker & 1 for taker, number in chosen.items())
    assert len(set(chosen.values())) == len(chosen)

    def served(numbers: tuple[int, ...]) -> bool:
        return any(
            all(suits[number] >> taker & 1 for number, taker in zip(numbers, takers, strict=True))
            for takers in itertools.permutations(range(5), len(numbers))
        )

    size = max(k for k in range(6) if any(map(served, itertools.combinations(range(len(suits)), k))))
    best = next(filter(served, itertools.combinations(range(len(suits)), size)))
    assert tuple(sorted(chosen.values())) == best, "combinations come in the order of the machines"
    for taker in set(range(5)) - set(chosen):
        takers, numbers = shortage(suits, chosen, taker)
        assert len(numbers) == len(takers) - 1
        reached = {number for number, set_ in enumerate(suits) if any(set_ >> one & 1 for one in takers)}
        assert reached == numbers


CHICKEN = """
tosca_definitions_version: tosca_simple_yaml_1_3
topology_template:
  node_templates:
    server:
      type: tosca.nodes.Compute
      capabilities:
        {capability}: {{properties: {{{key}: {{get_attribute: [server, public_address]}}}}}}
"""


@pytest.mark.parametrize(
    ("capability", "key", "refused"),
    [("os", "distribution", True), ("host", "num_cpus", True), ("endpoint", "url_path", False)],
)
def test_no_machine_is_chosen_by_its_own_address(
    site: Site, capability: str, key: str, refused: bool
) -> None:
    path = site.root / "chicken.yaml"
    path.write_text(CHICKEN.format(capability=capability, key=key))
    answer = site.gpufarm("plan", path, "--pool", site.pool)
    assert answer.status == (2 if refused else 0), answer.error
    assert not refused or "known only after" in answer.error


def test_a_capability_of_a_requirement_that_is_no_name_is_refused(site: Site) -> None:
    path = site.root / "odd.yaml"
    path.write_text(
        "tosca_definitions_version: tosca_simple_yaml_1_3\ntopology_template:\n  node_templates:\n"
        "    server: {type: tosca.nodes.Compute}\n"
        "    service: {type: tosca.nodes.SoftwareComponent, requirements: "
        "[{host: {node: server, capability: {a: b}}}]}\n"
    )
    answer = site.gpufarm("validate", path)
    assert answer.status == 2 and "cannot be met by server" in answer.error
