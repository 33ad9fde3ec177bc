"""The role benchmarks measures links with MPI, and tells slow machines of a ring."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from harness import CASES, Call, Run
from harness.stubs import said

CASE = CASES["benchmarks"]
VERSIONS = "Measure | Read the versions of Open MPI of both ends"
NETWORK = "192.0.2.0/24"
NAME = f"mpi.{NETWORK}.gb_s"


def measured_with_mpi(run: Run) -> list[dict[str, Any]]:
    """Return what the module was asked to measure with MPI."""
    asked = [call.args.get("mpi") for call in run.calls if call.action == "gpufarm.cluster.benchmark"]
    return [mpi for mpi in asked if mpi and "place" in mpi]


def test_processes_are_told_the_network_by_mpirun_on_the_next_machine() -> None:
    run = CASE.run("benchmarks")
    assert not run.failed, run.refusal
    (words,) = [call.args["argv"] for call in run.calls if "--host" in call.args.get("argv", ())]
    assert (
        f"--setenv=OMPI_MCA_btl_tcp_if_include={NETWORK}" in words and "--property=DynamicUser=yes" in words
    )
    assert words[words.index("--host") + 1] == "192.0.2.7,192.0.2.7"
    # systemd-run would put variables there.
    assert "from mpi4py import MPI" in words[-1] and "$" not in words[-1] and "%" not in words[-1]
    (asked,) = measured_with_mpi(run)
    assert (asked["peer"], asked["interfaces"]) == ("host2", ["eth0"])
    assert asked["place"] == "prterun-host2-7@0.0;tcp://192.0.2.7:4242:24"


def with_adapters(*machines: str, **answers: Any) -> Run:
    """Run the role where these machines have an RDMA adapter."""

    adapter = {"name": "mlx5_0", "ports": [{"state": "ACTIVE", "interface": "eth0"}]}
    told = iter([{"adapters": [adapter] if name in machines else []} for name in ("host1", "host2")])
    return CASE.with_answers({"gpufarm.cluster.fabric_info": lambda call: next(told), **answers}).run(
        "benchmarks"
    )


def test_rdma_is_measured_where_both_machines_have_adapters() -> None:
    run = with_adapters("host1", "host2")
    assert not run.failed, run.refusal
    asked = [call.args["rdma"] for call in run.calls if call.args.get("rdma")]
    assert asked[0] == asked[-1] and (asked[0]["device"], asked[0]["peer"]) == ("mlx5_0", "host2")
    (words,) = [call.args["argv"] for call in run.calls if "/bin/sh" in call.args.get("argv", ())]
    assert words[-1].count("ib_") == 3 and "--property=LimitMEMLOCK=infinity" in words
    assert "perftest" in installed(run)


@pytest.mark.parametrize(("machine", "has_package"), [("host1", True), ("host2", False)])
def test_rdma_is_left_out_where_one_machine_has_no_adapter(machine: str, has_package: bool) -> None:
    run = with_adapters(machine)
    assert not run.failed, run.refusal
    assert not [call for call in run.calls if call.args.get("rdma")]
    assert ("perftest" in installed(run)) is has_package


def test_rdma_that_cannot_be_measured_is_told() -> None:
    def answer(call: Call) -> dict[str, Any]:
        if call.args.get("rdma") and not call.check_mode:
            return {"failed": True, "msg": "RDMA was not measured: ib_write_lat failed."}
        return {"measured": True, "values": {}, "worse": [], "links": {}}

    run = with_adapters("host1", "host2", **{"gpufarm.cluster.benchmark": answer})
    assert run.failed
    assert f"RDMA over {NETWORK} to host2: RDMA was not measured: ib_write_lat failed." in run.refusal


def test_processors_that_cannot_be_measured_keep_nothing_else_from_it() -> None:
    def answer(call: Call) -> dict[str, Any]:
        if call.args.get("processors") and not call.check_mode:
            return {"failed": True, "msg": "mpirun failed: Illegal instruction."}
        return {"measured": True, "values": {}, "worse": [], "links": {}}

    run = CASE.with_answers({"gpufarm.cluster.benchmark": answer}).run("benchmarks")
    assert run.failed and run.refusal == "mpirun failed: Illegal instruction."
    assert measured_with_mpi(run)


def installed(run: Run) -> list[str]:
    """Return the packages that the role keeps in its record."""
    (made,) = [call.args["made"] for call in run.calls if call.args.get("step") == "record"]
    return made["packages"]


@pytest.mark.parametrize(
    "versions",
    [("mpirun (Open MPI) 5.0.7", "mpirun (Open MPI) 4.1.4"), ("mpirun (Open MPI) 4.1.4",) * 2, ("", "")],
)
def test_machines_whose_mpi_does_not_talk_are_left_out(versions: tuple[str, str]) -> None:
    numbers = iter(versions)
    run = CASE.with_answers({VERSIONS: lambda call: said(next(numbers))}).run("benchmarks")
    assert not run.failed, run.refusal
    assert not measured_with_mpi(run)


def test_a_run_of_mpi_that_does_not_begin_is_told_with_its_reason() -> None:
    run = CASE.with_answers(
        {
            "MPI | Wait for the command": {"failed": True, "msg": "Timeout when waiting for search string"},
            "MPI | Read the reason": said("x prte_hnp_uri x\nNo network interfaces\n were found.\n"),
        }
    ).run("benchmarks")
    assert run.failed and not measured_with_mpi(run)
    assert f"MPI over {NETWORK} to host2: Timeout" in run.refusal
    assert run.refusal.endswith("string No network interfaces were found.")


def test_the_slow_machine_of_a_ring_is_told_by_itself() -> None:
    names = ["host1", "host2", "host3", "host4"]
    values = {"host1": 1.0, "host2": 0.1, "host3": 0.1, "host4": 1.0}

    after = dict(zip(names, [*names[1:], names[0]], strict=True))

    def answer(call: Call) -> dict[str, Any]:
        own = {NAME: values[call.host]}
        return {"measured": False, "values": own, "worse": [], "links": {NAME: after[call.host]}}

    case = dataclasses.replace(
        CASE.with_answers({"gpufarm.cluster.benchmark": answer}),
        hosts={name: {} for name in names},
        elsewhere={},
    )
    run = case.run("benchmarks", {"benchmarks_peers": names})
    assert not run.failed, run.refusal
    told = [
        step for step in run.steps if step.name.endswith("Report slow machines and links") and step.message
    ]
    assert len(told) == 1 and "host3 is slow with all its neighbours" in str(told[0].message)
