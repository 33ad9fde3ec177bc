"""Processes of MPI on two machines measure the network between them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks import processes
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import between as running
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import measure as measurement
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.part import NotMeasured
from ansible_collections.gpufarm.cluster.plugins.modules import benchmark

# As Open MPI 5.0.7 gives it to its agent.
PLACE = "prterun-gpu-02.example-788@0.0;tcp://10.1.0.2:45787:24"
TOLD = {"latency": [4e-5, 2e-6, 3e-6], "bandwidth": [[1e9, 1.25e9], [1.1e9, 0.9e9]], "sent": 1000.0}
LINK = {
    "peer": "n2",
    "network": "10.1.0.0/24",
    "bind": "10.1.0.1",
    "address": "10.1.0.2",
    "interfaces": ["eth1", "eth2"],
    "place": PLACE,
}


def test_the_second_machine_joins_by_what_mpirun_prints() -> None:
    assert processes.daemon(PLACE, "10.1.0.2") == [
        *("prted", "--prtemca", "ess", "env"),
        *("--prtemca", "ess_base_nspace", "prterun-gpu-02.example-788@0"),
        *("--prtemca", "ess_base_vpid", "1", "--prtemca", "ess_base_num_procs", "2"),
        *("--prtemca", "prte_hnp_uri", PLACE),
    ]


def test_a_machine_may_have_several_addresses_in_the_network_and_any_name() -> None:
    place = "prterun-gpu_2-7@0.0;tcp://10.1.0.9,10.1.0.2:45787:24,24"
    assert processes.daemon(place, "10.1.0.2")[-1] == place


@pytest.mark.parametrize(
    ("place", "reason"),
    [
        ("", "cannot be reached at ''"),
        (PLACE + " --prtemca plm_ssh_agent /bin/evil", "cannot be reached"),
        (PLACE + "\n", "cannot be reached"),
        ("--prtemca;tcp://10.1.0.2:1:24", "cannot be reached"),
        (PLACE.replace("gpu", "$(id)"), "cannot be reached"),
        (PLACE.replace("10.1.0.2", "10.1.0.9"), "reached at 10.1.0.9 instead of 10.1.0.2"),
    ],
)
def test_what_is_no_place_of_the_other_machine_is_refused(place: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason.replace("(", r"\(")):
        processes.daemon(place, "10.1.0.2")


def test_the_shortest_time_and_the_slower_direction_count() -> None:
    assert processes.measured(json.dumps(TOLD), 900) == {
        "latency_us": pytest.approx(2.0),
        "gb_s": pytest.approx(1.1),
    }


def test_messages_over_another_network_are_no_result() -> None:
    with pytest.raises(ValueError, match="sent 1000 bytes, and only 899 went over"):
        processes.measured(json.dumps(TOLD), 899)


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        "[]",
        json.dumps({**TOLD, "latency": []}),
        json.dumps({**TOLD, "latency": [0]}),
        json.dumps({**TOLD, "latency": ["1"]}),
        json.dumps({**TOLD, "bandwidth": [[float("nan")], [1.0]]}),
        json.dumps({**TOLD, "bandwidth": 7}),
        json.dumps({**TOLD, "sent": -1}),
    ],
)
def test_processes_that_have_measured_nothing_are_told(content: str) -> None:
    with pytest.raises(ValueError, match="have measured nothing"):
        processes.measured(content, 10**9)


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Run the module on a machine with two interfaces, where the processes do what `work` does."""
    counters = [
        tmp_path / name / "statistics" / f"{way}_bytes" for name in ("eth1", "eth2") for way in ("rx", "tx")
    ]
    for path in counters:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("7\n")

    @contextmanager
    def folder() -> Iterator[Path]:
        yield tmp_path

    def call(work: Callable[[Path], None], **arguments: Any) -> Any:
        def run_as(own: Path, environment: dict[str, str], words: list[str], seconds: float) -> str:
            assert environment["PRTE_MCA_prte_if_include"] == "10.1.0.0/24" and words[0] == "prted"
            work(Path(environment["GPUFARM_BENCHMARK"]))
            return ""

        monkeypatch.setattr(running, "run_as", run_as)
        given = {"results": str(tmp_path / "results.json"), "mpi": {**LINK, **arguments}}
        with patch_module_args(given), pytest.raises(SystemExit):
            benchmark.main()
        return json.loads(capsys.readouterr().out)

    monkeypatch.setattr(running, "own_folder", folder)
    monkeypatch.setattr(running, "CLASS", tmp_path)
    monkeypatch.setattr(measurement, "busy", lambda: "")
    return call


def talk(tmp_path: Path, passed: int) -> Callable[[Path], None]:
    def work(path: Path) -> None:
        path.write_text(json.dumps(TOLD))
        (tmp_path / "eth2" / "statistics" / "tx_bytes").write_text(f"{7 + passed}\n")

    return work


def test_a_link_is_measured_once_for_each_other_end(run: Callable[..., Any], tmp_path: Path) -> None:
    told = run(talk(tmp_path, 1000))
    assert told["changed"] and told["values"] == {
        "mpi.10.1.0.0/24.latency_us": pytest.approx(2.0),
        "mpi.10.1.0.0/24.gb_s": pytest.approx(1.1),
    }
    assert not run(talk(tmp_path, 1000))["changed"]
    kept = json.loads((tmp_path / "results.json").read_text())
    assert set(kept["ends"].values()) == {"n2 10.1.0.2"}
    for other in ({"peer": "n3"}, {"address": "10.1.0.3", "place": PLACE.replace("10.1.0.2", "10.1.0.3")}):
        (tmp_path / "eth2" / "statistics" / "tx_bytes").write_text("7\n")
        assert run(talk(tmp_path, 1000), **other)["changed"]


@pytest.mark.parametrize(
    ("passed", "arguments", "reason"),
    [
        (
            0,
            {},
            "MPI from 10.1.0.1 to 10.1.0.2 was not measured: the processes have sent 1000 bytes, and only 0",
        ),
        (1000, {"place": "x"}, "was not measured: mpirun cannot be reached at 'x'"),
        (1000, {"interfaces": ["eth9"]}, "eth9"),
    ],
)
def test_what_was_not_measured_is_told(
    run: Callable[..., Any], tmp_path: Path, passed: int, arguments: dict[str, Any], reason: str
) -> None:
    told = run(talk(tmp_path, passed), **arguments)
    assert told["failed"] and reason in told["msg"] and not told["values"]


def test_a_process_that_cannot_join_is_told_with_both_ends(run: Callable[..., Any]) -> None:
    def fail(path: Path) -> None:
        raise NotMeasured("prted failed: it says nothing.")

    told = run(fail)
    assert told["msg"] == "MPI from 10.1.0.1 to 10.1.0.2 was not measured: prted failed: it says nothing."


def test_processes_that_did_not_talk_are_told(run: Callable[..., Any]) -> None:
    told = run(lambda path: None)
    assert "measured nothing; let firewalls pass all ports between the machines." in told["msg"]
