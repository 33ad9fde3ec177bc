"""Machines that ought to be equal are compared, and the odd ones named."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree

import pytest
from ansible.module_utils.testing import patch_module_args
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform import gpus, parse
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.compare import (
    ABSENT,
    HEAD,
    SHOWN,
    Difference,
    differences,
    rows,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.io.read import links, read
from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.report import report
from ansible_collections.gpufarm.cluster.plugins.modules import gpu_info, machine_properties_info
from hypothesis import given
from hypothesis import strategies as st
from simulated_machine import Machine

ALL = ["n1", "n2", "n3", "n4"]


def compared(name: str, *values: object) -> list[Difference]:
    machines = {
        host: {} if value is None else {name: value} for host, value in zip(ALL, values, strict=False)
    }
    return differences(machines, {"nodes": ALL})


def test_the_odd_machine_is_named() -> None:
    assert compared("kernel.release", "6.12", "6.12", "6.1", "6.12") == [
        Difference("nodes", "kernel.release", "6.12", {"n3": "6.1"})
    ]


def test_machines_that_are_alike_have_no_difference() -> None:
    assert not compared("kernel.release", "6.12", "6.12", "6.12")
    assert not compared("kernel.release", "6.12")


def test_a_machine_without_a_property_that_the_others_have_is_odd() -> None:
    (found,) = compared("processor.flag.avx512f", "yes", None, "yes")
    assert (found.usual, found.odd) == ("yes", {"n2": ABSENT})


def test_a_machine_with_a_property_that_the_others_do_not_have_is_odd() -> None:
    (found,) = compared("failed.slurmd.service", None, None, "failed")
    assert (found.usual, found.odd) == (ABSENT, {"n3": "failed"})


def test_nobody_is_odd_if_no_value_is_that_of_most() -> None:
    (found,) = compared("kernel.release", "6.12", "6.1")
    assert found.usual is None and found.odd == {"n1": "6.12", "n2": "6.1"}
    (found,) = compared("kernel.release", "6.12", "6.1", "6.1", "6.12")
    assert found.usual is None and len(found.odd) == 4


@pytest.mark.parametrize(
    ("name", "values", "odd"),
    [
        ("memory.mib", (515000, 515000, 506000), []),
        ("memory.mib", (515000, 515000, 480000), ["n3"]),
        ("benchmark.memory", (100.0, 95.0, 104.0), []),
        ("benchmark.memory", (100.0, 95.0, 80.0, 104.0), ["n3"]),
        ("benchmark.memory", (100.0, None, 101.0, 99.0), ["n2"]),
        ("benchmark.memory", (100.0, 50.0), ["n1", "n2"]),
        ("processor.threads", (64, 64, 63), ["n3"]),
    ],
)
def test_measured_numbers_may_differ_a_little_and_counts_may_not(
    name: str, values: tuple[object, ...], odd: list[str]
) -> None:
    found = compared(name, *values)
    assert [*found[0].odd] == odd if odd else not found


def test_groups_are_compared_each_in_itself() -> None:
    machines = {"n1": {"a.b": "1"}, "n2": {"a.b": "1"}, "s1": {"a.b": "2"}, "s2": {"a.b": "3"}}
    found = differences(machines, {"nodes": ["n1", "n2", "away"], "storage": ["s1", "s2"]})
    assert [(one.group, sorted(one.odd)) for one in found] == [("storage", ["s1", "s2"])]


@given(
    st.dictionaries(
        st.sampled_from(ALL),
        st.dictionaries(
            st.sampled_from(["a.x", "a.y", "memory.z"]), st.integers(0, 3) | st.sampled_from("pq")
        ),
    )
)
def test_a_difference_is_found_exactly_where_values_differ_too_much(
    machines: dict[str, dict[str, int | str]],
) -> None:
    found = {one.name: one for one in differences(machines, {"nodes": ALL})}
    for name in ("a.x", "a.y"):
        values = [told.get(name, ABSENT) for told in machines.values()]
        assert (name in found) is (len(set(values)) > 1)
        if name in found:
            counts, one = Counter(values), found[name]
            rest = [machines[host].get(name, ABSENT) for host in machines if host not in one.odd]
            assert set(rest) == (set() if one.usual is None else {one.usual})
            assert one.usual is None or counts[one.usual] == max(counts.values())
            assert all(machines[host].get(name, ABSENT) == value for host, value in one.odd.items())


def test_a_machine_that_differs_in_a_whole_section_does_not_fill_the_table() -> None:
    alike = {f"package.lib{number}:amd64": "1" for number in range(50)}
    older = dict.fromkeys(alike, "0") | {"kernel.release": "6.1"}
    machines = {
        "n1": alike | {"kernel.release": "6.12"},
        "n2": alike | {"kernel.release": "6.12"},
        "n3": older,
    }
    found = rows(differences(machines, {"nodes": ALL}))
    assert found[0] == ("nodes", "kernel.release", "n3", "6.1", "6.12")
    assert len(found) == 1 + SHOWN + 1
    assert found[-1] == ("nodes", "package.*", "n3", f"{50 - SHOWN} more differ", "")


def test_a_row_names_some_machines_and_counts_the_others() -> None:
    machines = {f"n{number}": {"a.b": "new" if number < 20 else "old"} for number in range(30)}
    ((_group, _name, named, value, usual),) = rows(differences(machines, {"nodes": [*machines]}))
    assert (named, value, usual) == ("n20, n21, n22, n23 and 6 more", "old", "new")


def test_text_of_a_machine_is_one_inert_line() -> None:
    machines = {"n1": {"board.bios_version": "1\x1b[2J\n2"}, "n2": {"board.bios_version": "1"}, "n3": {}}
    values = {row[3] for row in rows(differences(machines, {"nodes": ALL}))}
    assert values == {"1 [2J 2", "1", ABSENT}


def test_a_report_says_what_was_compared() -> None:
    machines = {"n1": {"a.b": "1"}, "n2": {"a.b": "2"}, "s1": {}, "s2": {}}
    groups = {"nodes": ["n1", "n2"], "storage": ["s1", "s2"], "login": ["l1"]}
    told = report(machines, {}, groups, {})
    assert told["summary"] == [
        "nodes: 2 machines differ in 1 property",
        "storage: 2 machines are alike",
        "login: nothing to compare, as no machine has answered",
    ]
    assert told["lines"][3].split() == " ".join(HEAD).split()
    assert told["lines"][4].split() == ["nodes", "a.b", "n1", "1", "(they", "differ)"]
    assert json.loads(json.dumps(told))["properties"]["n1"]["a.b"] == "1"


def test_results_of_benchmarks_are_plotted_with_the_odd_ones_marked() -> None:
    machines = {
        "n1": {"benchmark.memory_gb_s": 200.0},
        "n<2>": {"benchmark.memory_gb_s": 100.0},
        "n3": {"benchmark.memory_gb_s": 200.0, "benchmark.link.<b>": 0.0},
    }
    page = report(machines, {}, {"nodes": [*machines]}, {})["page"]
    assert page.count("<svg") == 2 and "n&lt;2&gt; ◆" in page and "n1 ◆" not in page
    widths = re.findall(r'class="(bar|odd)" x="180" y="\d+" width="([\d.]+)"', page)
    assert widths[1:] == [("bar", "480.0"), ("bar", "480.0"), ("odd", "240.0")]
    assert "link.&lt;b&gt;" in page and "<b>" not in page
    ElementTree.fromstring(re.search(r"<body>.*</body>", page, re.DOTALL)[0])
    assert report({"n1": {"a.b": "1"}, "n2": {"a.b": "1"}}, {}, {"all": ["n1", "n2"]}, {})["page"] == ""


CPUINFO = """\
processor\t: 0
model name\t: Intel(R) Xeon(R) Gold 6130
microcode\t: 0x2007006
flags\t\t: fpu vme avx512f
processor\t: 1
model name\t: other
"""
MOUNTINFO = """\
21 1 8:2 / / rw,relatime - ext4 /dev/sda2 rw,errors=remount-ro
22 21 0:5 / /proc rw - proc proc rw
23 21 0:40 / /home rw - nfs4 nas:/home rw,vers=4.2,clientaddr=10.0.0.7,addr=10.0.0.1
24 21 0:41 / /lustre rw - lustre 10.0.0.2@o2ib:/work rw,flock
25 21 0:42 / /run/user/1000 rw - tmpfs tmpfs rw
"""


def test_what_the_kernel_tells_is_read() -> None:
    assert parse.processors(CPUINFO) == {
        "processor.model": "Intel(R) Xeon(R) Gold 6130",
        "processor.microcode": "0x2007006",
        "processor.flag.fpu": "yes",
        "processor.flag.vme": "yes",
        "processor.flag.avx512f": "yes",
    }
    assert parse.memory("MemTotal:  2048 kB\nHugePages_Total:  3\n") == {
        "memory.mib": 2,
        "memory.huge_pages": 3,
    }
    assert parse.command_line("BOOT_IMAGE=/vmlinuz root=UUID=1 quiet iommu=pt") == "quiet iommu=pt"
    assert parse.chosen("always [madvise] never") == "madvise"
    assert parse.mounts(MOUNTINFO) == {
        "mount./": "ext4 /dev/sda2 errors=remount-ro,relatime,rw",
        "mount./home": "nfs4 nas:/home addr=10.0.0.1,rw,vers=4.2",
        "mount./lustre": "lustre 10.0.0.2@o2ib:/work flock,rw",
    }


def test_what_programs_tell_is_read() -> None:
    printed = "ii \tslurmd\tamd64\t24.11.5\nrc \told\tall\t1\nii \tlibc6\tamd64\t2.41\n"
    assert parse.packages(printed) == {"package.slurmd:amd64": "24.11.5", "package.libc6:amd64": "2.41"}
    assert parse.enabled("ssh.service enabled enabled\n\n") == {"unit.ssh.service": "enabled"}
    assert parse.failed("slurmd.service loaded failed failed Slurm\n") == {"failed.slurmd.service": "failed"}
    accounts = (
        "root:x:0:0::/:/bin/sh\nslurm:x:64030:64030::/:\nada:x:1001:100::/:\nnobody:x:65534:65534::/:\nbad\n"
    )
    assert parse.accounts(accounts) == {"account.slurm": "64030:64030", "account.ada": "1001:100"}
    limits = "Limit          Soft Limit  Hard Limit  Units\nMax locked memory  unlimited  65536  bytes\n"
    assert parse.limits("slurmd", limits) == {"limit.slurmd.locked_memory": "unlimited 65536"}


def test_a_machine_is_read_from_its_files(tmp_path: Path) -> None:
    for path, text in {
        "sys/class/dmi/id/bios_version": "2.10.2\n",
        "sys/class/infiniband/mlx5_0/fw_ver": "20.31.1014\n",
        "sys/class/infiniband/mlx5_0/ports/1/rate": "100 Gb/sec (4X EDR)\n",
        "sys/class/net/bond0/bonding/mode": "802.3ad 4\n",
        "sys/class/net/bond0/mtu": "9000\n",
        "sys/class/net/docker0/mtu": "1500\n",
        "sys/devices/system/cpu/cpu0/topology/physical_package_id": "0\n",
        "sys/devices/system/cpu/cpu1/topology/physical_package_id": "1\n",
        "sys/devices/system/cpu/smt/control": "off\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "var/lib/gpufarm/benchmarks/results.json": json.dumps(
            {"values": {"memory_gb_s": 120.5}, "baseline": {}, "measured": {}, "ends": {}}
        ),
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    found = read(tmp_path)
    assert {
        name: value for name, value in found.items() if name.startswith(("board", "fabric", "network"))
    } == {
        "board.bios_version": "2.10.2",
        "fabric.mlx5_0.fw_ver": "20.31.1014",
        "fabric.mlx5_0.1.rate": "100 Gb/sec (4X EDR)",
        "network.bond0.mtu": "9000",
        "network.bond0.mode": "802.3ad",
    }
    assert (found["processor.sockets"], found["processor.threads"], found["processor.smt"]) == (2, 2, "off")
    assert found["setting.net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert found["benchmark.memory_gb_s"] == 120.5


def test_a_slow_machine_of_a_group_is_named_by_its_links() -> None:
    name = "mpi.10.1.0.0/16.gb_s"
    values = {"n1": 1.0, "n2": 0.2, "n3": 0.2, "n4": 1.0}
    machines = {machine: {f"benchmark.{name}": value} for machine, value in values.items()}
    others = {machine: {name: ALL[number % 4]} for number, machine in enumerate(values, 1)}
    told = report(machines, {}, {"nodes": ALL, "others": ["n1", "n4"]}, others)
    assert told["summary"] == [
        "nodes: 4 machines differ in 1 property",
        f"nodes: n3 is slow with all its neighbours: {name} is 0.2 with n2 and 0.2 with n4, and usually 1; "
        "look at its adapter, its cable, and its port of the switch.",
        "others: 2 machines are alike",
    ]


def test_links_that_a_machine_makes_up_are_left_out_or_shown_as_text() -> None:
    evil = "mpi.\x1b[31m.gb_s"
    machines = {"n1": {f"benchmark.{evil}": 1.0}, "n2": {f"benchmark.{evil}": 0.1}}
    others = {"n1": {evil: "n2"}, "n2": {evil: "n1", "mpi.none": "n1", "link.x": "elsewhere"}}
    (first, second) = report(machines, {}, {"all": ["n1", "n2", "n3"]}, others)["summary"]
    assert "from n2 to n1 is slow: mpi. [31m.gb_s is 0.1" in second and "\x1b" not in first + second


def test_the_other_ends_of_links_are_read(tmp_path: Path) -> None:
    path = tmp_path / "var/lib/gpufarm/benchmarks/results.json"
    path.parent.mkdir(parents=True)
    values = {"mpi.10.1.0.0/16.gb_s": 1.0, "link.10.1.0.0/16.gbit_s": 9.0, "gpu.0.to.1.gb_s": 5.0}
    ends = {
        "mpi.10.1.0.0/16.gb_s": "n2 10.1.0.2",
        "gpu.0.to.1.gb_s": "GPU-a GPU-b",
        "mpi.gone.gb_s": "n9 10.1.0.9",
    }
    path.write_text(json.dumps({"values": values, "baseline": {}, "measured": {}, "ends": ends}))
    assert links(tmp_path) == {"mpi.10.1.0.0/16.gb_s": "n2"}


def test_damaged_results_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "var/lib/gpufarm/benchmarks").mkdir(parents=True)
    (tmp_path / "var/lib/gpufarm/benchmarks/results.json").write_text("{")
    assert not [name for name in read(tmp_path) if name.startswith("benchmark")]


def test_this_machine_is_read_by_the_module(capsys: pytest.CaptureFixture[str]) -> None:
    with patch_module_args({}), pytest.raises(SystemExit):
        machine_properties_info.main()
    found = json.loads(capsys.readouterr().out)["properties"]
    assert found["processor.threads"] > 0 and found["kernel.release"]
    assert any(name.startswith("package.python3") for name in found)


def told_by(capsys: pytest.CaptureFixture[str]) -> dict[str, object]:
    with patch_module_args({}), pytest.raises(SystemExit):
        gpu_info.main()
    return json.loads(capsys.readouterr().out)


def test_gpus_that_differ_are_named(
    make_machine: Callable[..., Machine], capsys: pytest.CaptureFixture[str]
) -> None:
    machine = make_machine("a100-80gb", "a100-80gb")
    before = gpus.properties(told_by(capsys))
    assert before["gpu.count"] == 2 and before["gpu.1.mig"] == "off" and before["gpu.1.slices"] == "none"
    machine.simgpu("set", 1, "persistence=1")
    after = gpus.properties(told_by(capsys))
    odd = {name for name in before if before[name] != after[name]}
    assert odd == {"gpu.1.persistence"}


def test_a_machine_whose_gpus_cannot_be_read_says_why() -> None:
    found = gpus.properties({"failed": True, "msg": "GPU is lost"})
    assert found == {"gpu.unreadable": "GPU is lost"}
    assert gpus.properties({}) == {"gpu.unreadable": "not asked"}
