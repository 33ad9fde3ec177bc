# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings and machines of a cluster result in the lines of its configuration, or in problems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm import controller, node, topology
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.release import release
from hypothesis import given
from hypothesis import strategies as st

ROLES = Path(__file__).resolve().parents[3] / "roles"


def settings(**changes: Any) -> dict[str, Any]:
    """The role's defaults with changes, as its vars hand them on."""
    defaults = yaml.safe_load((ROLES / "slurm_controller" / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("slurm_controller_"): value for name, value in defaults.items()}
    named = {"hosts": ["ctl"], "controllers": ["ctl"], "nodes": ["n1", "n2"], "members": ["n1", "n2"]}
    addresses = {"ctl": "ctl", "n1": "10.0.0.1", "n2": "n2"}
    return {**found, **named, "addresses": addresses, **changes}


def machine(hostname: str, *slices: str, **changes: Any) -> dict[str, Any]:
    devices = [{"model": "NVIDIA A100-SXM4-80GB", "mig": True, "slices": list(slices)}] if slices else []
    return {
        "hostname": hostname,
        "cpus": 8,
        "sockets": 1,
        "cores_per_socket": 4,
        "threads_per_core": 2,
        "memory_mib": 10000,
        "devices": devices,
        "features": [],
        "installed_release": "",
        "offered_release": "24.11",
        "nvml_plugin": True,
        **changes,
    }


MACHINES = {
    "ctl": machine("ctl"),
    "n1": machine("n1", "1g.10gb", "1g.10gb"),
    "n2": machine("n2", memory_mib=8000),
}


def planned(machines: dict[str, Any] | None = None, current: str = "", **changes: Any) -> dict[str, Any]:
    return controller.plan(settings(**changes), machines or MACHINES, current)


def problem(machines: dict[str, Any] | None = None, **changes: Any) -> str:
    (found,) = planned(machines, **changes)["problems"]
    return str(found)


def test_lines_tell_what_the_machines_are() -> None:
    found = planned()
    assert found["problems"] == []
    assert found["hosts"] == ["ctl(ctl)"]
    shape = "CPUs=8 Sockets=1 CoresPerSocket=4 ThreadsPerCore=2"
    assert found["nodes"] == [
        f"NodeName=n1 NodeAddr=10.0.0.1 {shape} RealMemory=9800 Gres=gpu:1g.10gb:2 State=UNKNOWN",
        f"NodeName=n2 NodeAddr=n2 {shape} RealMemory=7840 State=UNKNOWN",
    ]
    assert found["partitions"] == ["PartitionName=gpu Nodes=ALL Default=YES"]
    assert found["options"]["DefMemPerCPU"] == "980"
    assert not [name for name in found["options"] if name.startswith("Accounting")]


def test_nodes_have_the_names_that_they_call_themselves() -> None:
    machines = {**MACHINES, "n2": machine("gpu-two")}
    found = planned(machines, partitions=[{"name": "two", "nodes": ["n2"], "max_time": "1-0"}])
    assert found["nodes"][1].startswith("NodeName=gpu-two NodeAddr=n2 ")
    assert found["partitions"] == ["PartitionName=two Nodes=gpu-two MaxTime=1-0"]


def test_nodes_have_the_features_of_their_machines() -> None:
    first, second = planned({**MACHINES, "n1": machine("n1", features=["notebooks"])})["nodes"]
    assert " Features=notebooks " in first and "Features" not in second


def test_accounting_counts_each_type() -> None:
    found = planned(accounting_host="db")["options"]
    assert found["AccountingStorageHost"] == "db"
    assert found["AccountingStorageTRES"] == "gres/gpu,gres/gpu:1g.10gb"
    assert found["AccountingStorageEnforce"] == "associations,limits,qos,safe"


def test_jobs_have_folders_of_their_own_below_that_which_slurmd_has() -> None:
    found = planned()
    assert found["options"]["JobContainerType"] == "job_container/tmpfs"
    options = dict(word.split("=") for word in found["container"].split())
    assert {*options["Dirs"].split(",")} == {"/tmp", "/var/tmp", "/dev/shm"}
    unit = (ROLES / "slurm_node" / "templates" / "slurmd.conf.j2").read_text()
    variables = yaml.safe_load((ROLES / "slurm_node" / "vars" / "main.yml").read_text())
    assert options["BasePath"] == variables["__slurm_node_jobs_folder"]
    assert (
        "StateDirectory=gpufarm/{{ __slurm_node_jobs_folder | basename }}\nStateDirectoryMode=0700\n" in unit
    )
    programs = variables["__slurm_node_programs"]
    assert options["CloneNSScript"] == f"{programs}/namespace"
    for name in ("namespace", "epilog", "health"):
        assert options["BasePath"] in (ROLES / "slurm_node" / "files" / name).read_text()


def test_jobs_of_a_configuration_without_folders_of_their_own_cannot_go_on() -> None:
    assert not planned()["needs_empty_nodes"]
    assert planned(current="ClusterName=farm\nNodeName=n1\n")["needs_empty_nodes"]
    today = "".join(f"{name}={value}\n" for name, value in planned()["options"].items())
    assert not planned(current=today)["needs_empty_nodes"]


def test_settings_replace_defaults_whatever_their_case() -> None:
    found = planned(settings={"returntoservice": 1, "KillWait": 5})["options"]
    assert found["ReturnToService"] == "1"
    assert found["KillWait"] == "5"
    assert "returntoservice" not in found


def test_what_is_not_constrained_is_said_too() -> None:
    assert planned(constrain=["devices"])["constrained"] == {
        "ConstrainCores": "no",
        "ConstrainDevices": "yes",
        "ConstrainRAMSpace": "no",
    }


def test_a_partition_names_its_nodes_by_addresses_too() -> None:
    partitions = [{"name": "old", "nodes": ["192.0.2.1", "n2"]}]
    addresses = {"ctl": "ctl", "n1": "192.0.2.1", "n2": "192.0.2.2"}
    [line] = planned(partitions=partitions, addresses=addresses)["partitions"]
    assert "Nodes=n1,n2" in line


def test_nodes_whose_gpus_change_and_nodes_that_go_are_told() -> None:
    before = "\n".join(planned()["nodes"])
    assert (planned(current=before)["regrouped"], planned(current=before)["removed"]) == ([], [])
    other = {**MACHINES, "n1": machine("n1", "2g.20gb", "1g.10gb")}
    assert planned(other, before)["regrouped"] == ["n1"]
    assert planned(other, before)["removed"] == []
    fewer = planned(current=before, members=["n2"], nodes=["n2"])
    assert (fewer["regrouped"], fewer["removed"]) == ([], ["n1"])
    without = "\n".join(planned({**MACHINES, "n1": machine("n1")})["nodes"])
    assert planned(current=without)["regrouped"] == [], "no job has a GPU there"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"cluster_name": "Farm"}, "slurm_controller_cluster_name is 'Farm'"),
        ({"members": [], "nodes": []}, "slurm_controller_nodes names no machine"),
        ({"nodes": ["n1", "n2", "n3"]}, "names n1, n2, n3, and the inventory has only n1, n2 of them"),
        ({"members": ["n1", "n1"]}, "names n1 twice"),
        (
            {"addresses": {"ctl": "ctl", "n1": "a b", "n2": "n2"}},
            "'a b', the address of n1, is none of a host",
        ),
        ({"state_directory": "srv"}, "state_directory is 'srv'; give a plain absolute path"),
        ({"state_directory": "/srv/../etc"}, "give a plain absolute path"),
        ({"hosts": ["ctl", "n1"], "controllers": ["ctl", "n1"]}, "Several controllers share their state"),
        ({"port": 0}, "slurm_controller_port is 0"),
        ({"accounting_host": "a b"}, "slurm_controller_accounting_host is 'a b'"),
        (
            {"settings": {"clustername": "x"}},
            "has clustername, which the role sets itself; set slurm_controller_c",
        ),
        ({"settings": {"Prolog": "/x"}}, "has Prolog, which the role sets itself; leave it out"),
        ({"settings": {"Kill Wait": 5}}, "'Kill Wait', which is no name of an option"),
        ({"settings": {"KillWait": "5\nProlog=/x"}}, "for KillWait; give one value"),
        ({"partitions": []}, "slurm_controller_partitions is empty"),
        ({"partitions": [{"name": "all"}]}, "'all', which is no name of a partition"),
        ({"partitions": [{"name": "a"}, {"name": "a"}]}, "has a twice"),
        (
            {"partitions": [{"name": "a", "nodes": ["ctl"]}]},
            "has ctl, which slurm_controller_nodes does not name",
        ),
        ({"partitions": [{"name": "a", "max_time": "soon"}]}, "has max_time 'soon'"),
        ({"partitions": [{"name": "a", "options": {"Nodes": "x"}}]}, "has Nodes, which the role sets itself"),
        (
            {"partitions": [{"name": "a", "default": True}, {"name": "b", "default": True}]},
            "has several partitions with default",
        ),
        ({"gres": {"n3": {"a30": 1}}}, "names n3, and slurm_controller_nodes does not"),
        ({"gres": {"n1": "7x"}}, "has '7x' for n1; give counts by type"),
        ({"gres": {"n1": {"1g.12gb": 2}}}, "expects gpu:1g.12gb:2 of n1, which has gpu:1g.10gb:2"),
        ({"gres": {"n2": {"a30": 1}}}, "expects gpu:a30:1 of n2, which has no GPU"),
    ],
)
def test_settings_that_cannot_work_are_a_problem(changes: dict[str, Any], words: str) -> None:
    assert words in problem(**changes)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"n1": {"msg": "The driver hangs."}}, "n1 of the cluster cannot be read: The driver hangs. Mend it"),
        ({"n2": machine("n_2")}, "calls itself 'n_2'"),
        ({"n2": machine("n1")}, "n2 and n1 both call themselves n1"),
        (
            {"n2": machine("n2", installed_release="22.05")},
            "n2 has Slurm 22.05 and the controller ctl has 24.11",
        ),
        (
            {"n1": machine("n1", devices=[{"model": "A30", "mig": m, "slices": []} for m in (True, False)])},
            "n1: Slurm cannot tell the GPUs of this machine apart, as it detects one as a30",
        ),
    ],
)
def test_machines_that_are_no_cluster_are_a_problem(changed: dict[str, Any], words: str) -> None:
    assert words in problem({**MACHINES, **changed})


def test_settings_are_checked_without_machines() -> None:
    assert controller.plan(settings()) == {"problems": []}


def test_an_installed_release_counts_more_than_an_offered_one() -> None:
    machines = {**MACHINES, "ctl": machine("ctl", installed_release="24.11", offered_release="25.05")}
    assert planned(machines)["problems"] == []


words = st.text(max_size=8)
values = st.recursive(st.none() | st.booleans() | st.integers() | words, st.lists, max_leaves=3)


@given(st.dictionaries(words, values, max_size=3))
def test_no_setting_gets_a_line_of_its_own(given_settings: dict[str, Any]) -> None:
    found = planned(settings=given_settings)
    for name, value in found.get("options", {}).items():
        assert len(f"{name}={value}".split()) == 1


def node_problems(machines: dict[str, Any], **changes: Any) -> list[str]:
    wanted = {"controllers": ["ctl"], "found": ["ctl"], "name": "n1", "controller_port": 6817}
    logins = {"logins": "all", "administrators": [], "pam": {"account": "", "session": ""}}
    found = node.plan({**wanted, **logins, "source": "distribution", **changes}, machines)["problems"]
    assert isinstance(found, list)
    return found


def test_a_node_that_fits_has_no_problem() -> None:
    assert node_problems(MACHINES) == []


@pytest.mark.parametrize(
    ("changed", "changes", "words"),
    [
        (
            {},
            {"found": [], "controllers": ["x"]},
            "slurm_node_controllers names x, and the inventory has only",
        ),
        ({}, {"found": [], "controllers": []}, "slurm_node_controllers names no machine"),
        ({}, {"controller_port": 65536}, "slurm_node_controller_port is 65536"),
        ({"n1": {"msg": "Lost."}}, {}, "n1 cannot be read: Lost."),
        ({"n1": machine("n1", "1g.10gb", nvml_plugin=False)}, {}, "apt offers no slurm-wlm-nvml-plugin"),
        ({"n1": machine("n1", offered_release="22.05")}, {}, "n1 has Slurm 22.05"),
    ],
)
def test_a_node_that_does_not_fit_is_a_problem(
    changed: dict[str, Any], changes: dict[str, Any], words: str
) -> None:
    (found,) = node_problems({**MACHINES, **changed}, **changes)
    assert words in found


def test_a_plugin_is_not_missed_where_it_cannot_be_known_or_is_not_needed() -> None:
    own = machine("n1", "1g.10gb", nvml_plugin=False)
    assert node_problems({**MACHINES, "n1": own}, source="preinstalled") == []
    assert node_problems({**MACHINES, "n1": {**own, "offered_release": ""}}) == []
    assert node_problems({**MACHINES, "n1": machine("n1", nvml_plugin=False)}) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("slurm-wlm 24.11.5", "24.11"),
        ("22.05.8-4+deb12u3", "22.05"),
        ("slurm 25.05.0-0rc1", "25.05"),
        ("", ""),
    ],
)
def test_the_release_is_the_first_two_numbers(text: str, found: str) -> None:
    assert release(text) == found


def test_processors_are_counted_as_sockets_cores_and_threads() -> None:
    threads = [(socket, core) for socket in range(2) for core in range(8) for _thread in range(2)]
    assert topology.counted(threads) == {"sockets": 2, "cores_per_socket": 8, "threads_per_core": 2}
    uneven = [*threads, (1, 8)]
    assert topology.counted(uneven) == {"sockets": 33, "cores_per_socket": 1, "threads_per_core": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 7)), min_size=1))
def test_the_product_is_always_the_number_of_threads(threads: list[tuple[int, int]]) -> None:
    found = topology.counted(threads)
    assert found["sockets"] * found["cores_per_socket"] * found["threads_per_core"] == len(threads)


def test_the_memory_is_told_in_mib() -> None:
    assert topology.memory_mib("MemTotal:       24683892 kB\nMemFree: 1 kB\n") == 24105
    with pytest.raises(ValueError, match="MemTotal"):
        topology.memory_mib("")
