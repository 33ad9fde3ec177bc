"""RDMA between two machines, measured by perftest."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks import perftest
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import measure as measurement
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.io import rdma
from ansible_collections.gpufarm.cluster.plugins.module_utils._benchmarks.plan import plan
from ansible_collections.gpufarm.cluster.plugins.modules import benchmark

NETWORK = "10.2.0.0/24"
SETTINGS = {
    "peers": ["n1", "n2"],
    "networks": ["10.1.0.0/24", NETWORK],
    "folders": [],
    "memory_mib": 1,
    "file_mib": 1,
    "nccl_tests": "",
    "port": 5201,
}
LINKS = {
    f"n{number}": [
        {"ifname": "eth0", "addr_info": [{"local": f"10.1.0.{number}"}]},
        {"ifname": "ib0", "addr_info": [{"local": f"10.2.0.{number}"}]},
    ]
    for number in (1, 2)
}
TO = {
    "peer": "n2",
    "network": NETWORK,
    "bind": "10.2.0.1",
    "address": "10.2.0.2",
    "port": 5201,
    "device": "mlx5_0",
}
LINE = "-" * 87
# As perftest of Debian 13 prints it, with its tabs.
HEAD = f"""\
 WARNING: BW peak won't be measured in this run.
{LINE}
                    RDMA_Write Test
 Dual-port       : OFF\t\tDevice         : mlx5_0
 Mtu             : 4096[B]
 rdma_cm QPs\t : ON
{LINE}
"""
BANDWIDTH = f"""{HEAD}\
 #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
 65536      571320           0.000000            99.840000            0.190440
{LINE}
"""
LATENCY = f"""{HEAD}\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]
 8       100          1.43        15251.00      9630.34  \t       9516.89     \t2506.92\t\t15251.00
{LINE}
"""


def adapter(state: str = "ACTIVE", interface: str = "ib0", name: str = "mlx5_0") -> dict[str, Any]:
    return {"name": name, "ports": [{"state": state, "interface": interface}]}


def ways(own: dict[str, Any] | None, other: dict[str, Any] | None) -> list[dict[str, Any]]:
    adapters = {"n1": [own] if own else [], "n2": [other] if other else []}
    planned = plan(SETTINGS, "n1", LINKS, adapters)
    assert not planned["problems"] and len(planned["mpi"]) == 2
    return [way for way in planned["links"] if way["kind"] == "rdma"]


def test_rdma_is_measured_in_the_network_of_adapters_by_one_of_each_machine() -> None:
    (way,) = ways(adapter(), adapter(name="mlx5_7"))
    assert way["to"] == TO


@pytest.mark.parametrize(
    ("own", "other"),
    [
        (None, adapter()),
        (adapter(), None),
        (adapter(), adapter(state="DOWN")),
        (adapter(state="INIT"), adapter()),
        (adapter(interface="eth9"), adapter()),
        (adapter(), adapter(interface="")),
        (adapter(), adapter(interface="eth0")),
    ],
)
def test_rdma_needs_an_adapter_with_a_link_at_both_ends(own: Any, other: Any) -> None:
    assert ways(own, other) == []


def test_the_server_serves_what_the_client_asks_in_the_same_order() -> None:
    shell, option, text = perftest.server(7)
    assert (shell, option) == ("/bin/sh", "-ec")
    assert [shlex.split(one) for one in text.split(";")] == [perftest.words(run, 7) for run in perftest.RUNS]
    assert not set("$%\\") & set(text)  # systemd would put variables in their places


@pytest.mark.parametrize(
    ("run", "printed", "value"), [("latency", LATENCY, 1.43), ("sent", BANDWIDTH, 99.84)]
)
def test_values_are_read(run: str, printed: str, value: float) -> None:
    assert perftest.value(run, printed, "mlx5_0") == value


@pytest.mark.parametrize(
    ("printed", "reason"),
    [
        (BANDWIDTH.replace("mlx5_0", "mlx4_0"), "went by the adapter mlx4_0 instead of mlx5_0"),
        (BANDWIDTH.replace("99.840000", "0.000000"), "ib_write_bw has measured nothing"),
        (BANDWIDTH.replace("99.840000", "nan"), "ib_write_bw has measured nothing"),
        (BANDWIDTH.replace("Device", "Devices"), "ib_write_bw has measured nothing"),
        (HEAD, "ib_write_bw has measured nothing"),
        ("", "ib_write_bw has measured nothing"),
    ],
)
def test_what_was_not_measured_is_told(printed: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        perftest.value("sent", printed, "mlx5_0")


@pytest.fixture
def run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., Any]:
    """Run the module on a machine whose perftest prints files."""
    (tmp_path / "bin").mkdir()
    back = BANDWIDTH.replace("99.840000", "50.100000")
    texts = {"ib_write_lat": LATENCY, "ib_write_bw": BANDWIDTH, "ib_read_bw": back}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "bin" / "runuser").write_text(
        "#!/bin/sh\nfor word; do case $word in\n"
        f"ib_*) file={tmp_path}/$word ;;\nesac; done\n"
        f'echo "$*" >>{tmp_path}/asked\ncat "$file"\n'
    )
    (tmp_path / "bin" / "runuser").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:{os.environ['PATH']}")
    monkeypatch.setattr(measurement, "busy", lambda: "")
    monkeypatch.setattr(rdma, "PATIENCE", 0.3)
    monkeypatch.setattr(rdma, "PAUSE", 0.01)

    def call(**arguments: Any) -> Any:
        given = {"results": str(tmp_path / "results.json"), "rdma": TO, **arguments}
        with patch_module_args(given), pytest.raises(SystemExit):
            benchmark.main()
        return json.loads(capsys.readouterr().out)

    return call


def test_the_slower_direction_and_the_shortest_time_count(run: Callable[..., Any], tmp_path: Path) -> None:
    told = run()
    assert told["values"] == {f"rdma.{NETWORK}.latency_us": 1.43, f"rdma.{NETWORK}.gbit_s": 50.1}
    assert told["links"] == dict.fromkeys(told["values"], "n2")
    asked = (tmp_path / "asked").read_text().splitlines()
    assert len(asked) == 3 and all(line.endswith(" 10.2.0.2") for line in asked)
    assert all("--user nobody" in line for line in asked)
    assert not run()["changed"]
    assert run(_ansible_check_mode=True, rdma={**TO, "address": "10.2.0.9"})["measured"]
    assert (tmp_path / "asked").read_text().splitlines() == asked


def test_a_server_that_is_not_ready_is_tried_again(run: Callable[..., Any], tmp_path: Path) -> None:
    program = tmp_path / "bin" / "runuser"
    program.write_text(
        program.read_text().replace(
            "#!/bin/sh\n", f"#!/bin/sh\nmkdir {tmp_path}/begun 2>/dev/null && exit 1\n"
        )
    )
    assert run()["changed"]


def test_a_machine_that_does_not_answer_is_told(run: Callable[..., Any], tmp_path: Path) -> None:
    (tmp_path / "bin" / "runuser").write_text("#!/bin/sh\necho 'Unexpected CM event' >&2; exit 1\n")
    told = run()
    assert told["failed"] and not told["changed"]
    assert told["msg"] == (
        "RDMA from 10.2.0.1 to 10.2.0.2 was not measured: ib_write_lat failed: Unexpected CM event."
    )
