"""Machines are measured, and results are compared with the first ones."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import fcntl
import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks import answers, hpcc
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import measure as measurement
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import run as programs
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.plan import plan
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.results import Results, parse
from ansible_collections.gpufarm.cluster.plugins.modules import benchmark
from hypothesis import given
from hypothesis import strategies as st

# Of hpcc 1.5.0 on two cores; other lines are left out.
SUMMARY = """\
Begin of Summary section.
Success=1
CommWorldProcs=2
HPL_Tflops=0.000966225
StarDGEMM_Gflops=1.92333
MPIRandomAccess_GUPs=0.00275453
StarSTREAM_Triad=69.6907
SingleSTREAM_Triad=74.664
MPIFFT_Gflops=0.42496
End of Summary section.
"""
# Of fio 3.39, iperf3 3.18 and iputils 20240905.
FIO = {
    "jobs": [{"error": 0, "read": {"bw_bytes": 2e9, "iops": 1146.8}, "write": {"bw_bytes": 1e9, "iops": 0}}]
}
IPERF = {"start": {}, "end": {"sum_received": {"bits_per_second": 9.4e9}}}
UNREACHED = {"start": {}, "end": {}, "error": "unable to connect to server"}
PING = "3 packets transmitted, 3 received\nrtt min/avg/max/mdev = 0.037/0.098/0.219/0.085 ms\n"
LINKS = {
    name: [
        {"ifname": f"eth{number}", "addr_info": [{"local": f"10.{number + 1}.0.{last}"}]} for number in (0, 1)
    ]
    for last, name in enumerate(("n1", "n2", "n3"), 1)
}
SETTINGS = {
    "peers": ["n1", "n2", "n3"],
    "networks": ["10.1.0.0/24", "10.2.0.0/24"],
    "folders": [],
    "memory_mib": 256,
    "file_mib": 1024,
    "nccl_tests": "",
    "port": 5201,
}


@given(st.integers(1, 10**7))
def test_the_matrix_fits_into_its_memory_and_uses_most_of_it(memory: int) -> None:
    size = hpcc.size(memory)
    assert size % hpcc.BLOCK == 0 and size > 0
    assert size == hpcc.BLOCK or size**2 * hpcc.BYTES <= memory * 2**20
    assert (size + hpcc.BLOCK) ** 2 * hpcc.BYTES > memory * 2**20


@given(st.integers(1, 1024))
def test_the_grid_has_a_place_for_each_process_and_is_nearly_square(processes: int) -> None:
    rows, columns = hpcc.grid(processes)
    assert rows * columns == processes and rows <= columns
    assert not [number for number in range(rows + 1, columns) if processes % number == 0]


def test_the_input_has_what_was_asked_for_in_the_lines_of_hpl() -> None:
    lines = hpcc.input_file(6, 1024).splitlines()
    assert [lines[number].split() for number in (5, 10, 11)] == [["11520", "Ns"], ["2", "Ps"], ["3", "Qs"]]
    assert len(lines) == 36


def test_results_of_all_cores_are_added_up() -> None:
    assert hpcc.values("before\n" + SUMMARY) == pytest.approx(
        {
            "hpl_gflops": 0.966225,
            "dgemm_gflops": 3.84666,
            "fft_gflops": 0.42496,
            "memory_gb_s": 139.3814,
            "one_core_memory_gb_s": 74.664,
            "random_access_gups": 0.00275453,
        }
    )


@pytest.mark.parametrize(
    "output", ["", SUMMARY.replace("Success=1", "Success=0"), SUMMARY.replace("HPL_Tflops", "HPL_other")]
)
def test_a_benchmark_that_computed_wrongly_is_no_result(output: str) -> None:
    with pytest.raises(ValueError, match=r"failed|HPL_Tflops"):
        hpcc.values(output)


def test_what_programs_print_is_read() -> None:
    assert answers.fio("fio: note\n" + json.dumps(FIO), "write", "bw_bytes") == 1e9
    assert answers.iperf(json.dumps(IPERF)) == 9.4e9
    assert answers.ping(PING) == pytest.approx(37)


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (lambda: answers.fio("", "read", "iops"), "fio cannot be read"),
        (lambda: answers.fio('{"jobs": [{"error": 28}]}', "read", "iops"), "error 28"),
        (lambda: answers.iperf(json.dumps(UNREACHED)), "unable to connect"),
        (lambda: answers.iperf("{}"), "iperf3 cannot be read"),
        (lambda: answers.ping("3 packets transmitted, 0 received"), "no answer to ping"),
    ],
)
def test_a_program_that_measured_nothing_is_told(read: Callable[[], float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read()


def test_the_first_results_stay_the_ones_to_compare_with() -> None:
    first = Results().with_values({"memory_gb_s": 100.0, "link.a.round_trip_us": 10.0}, "monday", anew=False)
    later = first.with_values({"memory_gb_s": 80.0, "link.a.round_trip_us": 12.0}, "tuesday", anew=False)
    assert later.worse() == pytest.approx({"memory_gb_s": 0.2, "link.a.round_trip_us": 0.2})
    assert later.sentences()[0] == "memory_gb_s is 80, 20% worse than 100 at first"
    assert later.measured["memory_gb_s"] == "tuesday"
    better = first.with_values({"memory_gb_s": 200.0, "link.a.round_trip_us": 5.0}, "tuesday", anew=False)
    assert not first.worse() and not better.worse()
    assert not later.with_values({"memory_gb_s": 80.0, "link.a.round_trip_us": 12.0}, "", anew=True).worse()


@given(st.floats(0.001, 1e6), st.floats(0.001, 1e6))
def test_a_result_is_worse_from_a_tenth_on(first: float, later: float) -> None:
    found = Results({"x_gb_s": later, "y_us": later}, {"x_gb_s": first, "y_us": first}, {}).worse()
    assert ("x_gb_s" in found) is (1 - later / first > 0.1)
    assert ("y_us" in found) is (later / first - 1 > 0.1)


@pytest.mark.parametrize(
    "content", [None, [], {}, {"values": 1, "baseline": {}, "measured": {}}, {"values": {}}]
)
def test_a_file_without_results_is_told(content: Any) -> None:
    with pytest.raises(ValueError, match="it has no results"):
        parse(content)


def test_each_machine_measures_to_the_next_and_the_last_to_the_first() -> None:
    planned = plan(SETTINGS, "n3", LINKS, {})
    ends = [
        {
            "peer": "n1",
            "network": f"10.{number}.0.0/24",
            "bind": f"10.{number}.0.3",
            "address": f"10.{number}.0.1",
        }
        for number in (1, 2)
    ]
    assert [way["to"] for way in planned["links"]] == [{**one, "port": 5201} for one in ends]
    assert {way["kind"] for way in planned["links"]} == {"link"}
    assert planned["links"][1]["serve"] == ["iperf3", "--server", "--bind=10.2.0.1", "--port=5201"]
    assert planned["mpi"] == [{**one, "interfaces": [f"eth{number}"]} for number, one in enumerate(ends)]
    nothing = {"problems": [], "links": [], "mpi": [], "unmeasured": []}
    assert plan(SETTINGS, "other", {"other": []}, {}) == nothing


def test_a_next_machine_that_is_away_takes_only_its_links(tmp_path: Path) -> None:
    planned = plan(SETTINGS, "n1", {"n1": LINKS["n1"]}, {})
    assert not planned["problems"] and not planned["links"] and not planned["mpi"]
    assert planned["unmeasured"][0].startswith("n2 cannot be reached")


def test_a_server_that_is_not_ready_is_tried_again(run: Callable[..., Any], tmp_path: Path) -> None:
    refused = f"echo '{json.dumps(UNREACHED)}'"
    (tmp_path / "bin" / "iperf3").write_text(
        f"#!/bin/sh\nif mkdir {tmp_path}/begun 2>/dev/null; then {refused}; else cat {tmp_path}/iperf; fi\n"
    )
    assert run(link=LINK)["values"]["link.10.1.0.0/24.gbit_s"] == 9.4


def test_the_slower_direction_of_a_link_counts(run: Callable[..., Any], tmp_path: Path) -> None:
    slow = json.dumps({"end": {"sum_received": {"bits_per_second": 2e9}}})
    (tmp_path / "bin" / "iperf3").write_text(
        f"#!/bin/sh\ncase \"$*\" in *--reverse*) echo '{slow}' ;; *) cat {tmp_path}/iperf ;; esac\n"
    )
    assert run(link=LINK)["values"]["link.10.1.0.0/24.gbit_s"] == 2.0


def test_a_link_to_another_machine_is_measured_and_compared_anew(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    run(link=LINK)
    (tmp_path / "iperf").write_text(json.dumps({"end": {"sum_received": {"bits_per_second": 1e9}}}))
    assert not run(link=LINK)["changed"]
    told = run(link={**LINK, "address": "10.1.0.3"})
    assert told["changed"] and told["values"]["link.10.1.0.0/24.gbit_s"] == 1.0 and told["worse"] == []


def test_two_runs_do_not_measure_at_the_same_time(run: Callable[..., Any], tmp_path: Path) -> None:
    with (tmp_path / ".results.json.lock").open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert "is measured by another run" in run(processors=1)["msg"] and not asked(tmp_path)


def test_files_of_a_killed_run_go_and_those_of_other_machines_stay(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    own, other = (
        tmp_path / "scratch" / f".gpufarm-benchmark-{name}-x" for name in (socket.gethostname(), "other")
    )
    for folder in (own, other):
        folder.mkdir(parents=True)
    run(folder=str(tmp_path / "scratch"), file_mib=1)
    assert not own.exists() and other.exists()


def test_a_next_machine_without_an_address_is_named() -> None:
    (problem,) = plan(
        SETTINGS, "n1", {**LINKS, "n2": [{"ifname": "eth0", "addr_info": [{"local": "10.1.0.2"}]}]}, {}
    )["problems"]
    assert problem.startswith("n2 has no address in 10.2.0.0/24")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Run the module on a machine whose programs print what they are asked to measure."""
    texts = {
        "runuser": f"for word; do case $word in --chdir=*) cp {tmp_path}/summary "
        "${word#--chdir=}/hpccoutf.txt;; esac; done",
        "fio": f"cat {tmp_path}/fio",
        "iperf3": f"cat {tmp_path}/iperf",
        "ping": f"cat {tmp_path}/ping",
    }
    (tmp_path / "bin").mkdir()
    for name, text in texts.items():
        program = tmp_path / "bin" / name
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/asked\n{text}\n')
        program.chmod(0o755)
    for name, text in {
        "summary": SUMMARY,
        "fio": json.dumps(FIO),
        "iperf": json.dumps(IPERF),
        "ping": PING,
    }.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(measurement, "busy", lambda: "")
    monkeypatch.setattr(programs, "PATIENCE", 0.3)
    monkeypatch.setattr(programs, "PAUSE", 0.01)

    def call(**arguments: Any) -> Any:
        given = {"results": str(tmp_path / "results.json"), **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            benchmark.main()
        return json.loads(capsys.readouterr().out)

    return call


LINK = {"peer": "n2", "network": "10.1.0.0/24", "bind": "10.1.0.1", "address": "10.1.0.2"}


def asked(tmp_path: Path) -> list[str]:
    path = tmp_path / "asked"
    return path.read_text().splitlines() if path.exists() else []


def test_everything_is_measured_once(run: Callable[..., Any], tmp_path: Path) -> None:
    assert run(processors=1)["changed"]
    assert run(folder=str(tmp_path), file_mib=1)["changed"]
    told = run(link=LINK)
    assert told["changed"] and told["values"] == {
        "hpl_gflops": pytest.approx(0.966225),
        "dgemm_gflops": pytest.approx(3.84666),
        "fft_gflops": 0.42496,
        "memory_gb_s": pytest.approx(139.3814),
        "one_core_memory_gb_s": 74.664,
        "random_access_gups": 0.00275453,
        f"{tmp_path}.write_mb_s": 1000.0,
        f"{tmp_path}.read_mb_s": 2000.0,
        f"{tmp_path}.creations_s": 1146.8,
        "link.10.1.0.0/24.gbit_s": 9.4,
        "link.10.1.0.0/24.round_trip_us": pytest.approx(37),
    }
    before = asked(tmp_path)
    for arguments in ({"processors": 1}, {"folder": str(tmp_path)}, {"link": LINK}):
        assert not run(**arguments)["changed"]
    assert asked(tmp_path) == before
    assert (tmp_path / "results.json").stat().st_mode & 0o777 == 0o644


def test_check_mode_measures_nothing(run: Callable[..., Any], tmp_path: Path) -> None:
    told = run(processors=1, _ansible_check_mode=True)
    assert told["changed"] and told["measured"] and not asked(tmp_path)
    assert not (tmp_path / "results.json").exists()


def test_a_second_measurement_is_compared_with_the_first(run: Callable[..., Any], tmp_path: Path) -> None:
    run(processors=1)
    (tmp_path / "summary").write_text(SUMMARY.replace("69.6907", "50"))
    told = run(processors=1, measure="again")
    assert told["worse"] == ["memory_gb_s is 100, 28% worse than 139.4 at first"]
    assert run(processors=1, measure="baseline")["worse"] == []


def test_a_folder_does_not_stand_for_one_whose_name_begins_alike(
    run: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "ab").mkdir()
    run(folder=str(tmp_path / "ab"), file_mib=1)
    assert run(folder=str(tmp_path / "a"), file_mib=1)["changed"]


def test_a_measured_folder_is_left_as_it_was(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "scratch").mkdir()
    run(folder=str(tmp_path / "scratch"), file_mib=1)
    assert not [*(tmp_path / "scratch").iterdir()]
    assert all(f"{tmp_path}/scratch/.gpufarm-benchmark-" in line for line in asked(tmp_path))


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"folder": "/nowhere"}, "/nowhere cannot be measured: No such file or directory"),
        ({"folder": "/var/tmp", "file_mib": 10**9}, "give less than benchmarks_file_mib"),
        ({"processors": 10**9}, "give less than benchmarks_memory_mib"),
        ({}, "one of the following is required"),
        ({"processors": 1, "folder": "/tmp"}, "mutually exclusive"),
    ],
)
def test_what_cannot_be_measured_is_refused(
    run: Callable[..., Any], tmp_path: Path, arguments: dict[str, Any], reason: str
) -> None:
    told = run(**arguments)
    assert told["failed"] and reason in told["msg"] and not asked(tmp_path)


def test_a_failure_is_told_and_the_earlier_results_stay(run: Callable[..., Any], tmp_path: Path) -> None:
    run(processors=1)
    (tmp_path / "iperf").write_text(json.dumps(UNREACHED))
    assert "from 10.1.0.1 to 10.1.0.2 was not measured: unable to connect" in run(link=LINK)["msg"]
    (tmp_path / "bin" / "runuser").write_text("#!/bin/sh\necho no slots >&2\nexit 1\n")
    assert "mpirun failed: no slots" in run(processors=1, measure="again")["msg"]
    (tmp_path / "bin" / "runuser").write_text("#!/bin/sh\n")
    assert "has measured nothing" in run(processors=1, measure="again")["msg"]
    assert not run(processors=1)["changed"]


def test_damaged_results_are_told(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("{")
    assert "remove it to measure anew" in run(processors=1)["msg"]


def test_a_machine_on_which_a_job_runs_is_not_measured(
    run: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measurement, "busy", lambda: "a job of Slurm; drain the node first")
    assert "The machine runs a job of Slurm; drain the node first." in run(processors=1)["msg"] and not asked(
        tmp_path
    )


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("slurmstepd", "slurmstepd: [12.batch]", "a job of Slurm"),
        ("slurmstepd", "/usr/sbin/slurmstepd\0infinity\0", ""),
        ("slurmd", "/usr/sbin/slurmd\0--systemd\0", ""),
        ("hpcc", "hpcc\0", "hpcc; wait until it has ended"),
        ("fio", "fio\0--name=x\0", "fio; wait until it has ended"),
    ],
)
def test_jobs_and_other_measurements_are_known(tmp_path: Path, name: str, words: str, said: str) -> None:
    (tmp_path / "1").mkdir()
    (tmp_path / "77").mkdir()
    (tmp_path / "77" / "comm").write_text(f"{name}\n")
    (tmp_path / "77" / "cmdline").write_text(words)
    found = programs.busy(tmp_path)
    assert found.startswith(said) if said else not found


def test_threads_of_one_core_count_once(tmp_path: Path) -> None:
    for number, (package, core) in enumerate([(0, 0), (0, 0), (0, 1), (1, 0)]):
        folder = tmp_path / f"cpu{number}" / "topology"
        folder.mkdir(parents=True)
        (folder / "physical_package_id").write_text(f"{package}\n")
        (folder / "core_id").write_text(f"{core}\n")
    assert programs.cores(tmp_path) == 3
