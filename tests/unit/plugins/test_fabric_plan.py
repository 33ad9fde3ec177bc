"""Rails of a machine: which port each one is, refusals, and what they result in."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._fabric.plan import plan, rails_of
from hypothesis import given
from hypothesis import strategies as st

SETTINGS = {"subnet_manager": False, "source": "distribution"}
UCX = "# Transport: rc_mlx5\n# Device: mlx5_0:1\n# Transport: rc_verbs\n# Device: soft:1\n"


def port(number: int, layer: str, interface: str, **others: Any) -> dict[str, Any]:
    up = {"state": "ACTIVE", "physical_state": "LinkUp", "rate": 100.0, "errors": {}}
    return {"number": number, "link_layer": layer, "interface": interface, **up, **others}


def adapter(name: str, pci: str, *ports: dict[str, Any], parent: str = "") -> dict[str, Any]:
    return {
        "name": name,
        "pci": pci,
        "parent": parent,
        "firmware": "28.43",
        "guid": "1:2",
        "ports": list(ports),
    }


def interface(name: str, kind: str, *addresses: str, mode: str = "", pci: str = "") -> dict[str, Any]:
    return {"name": name, "kind": kind, "pci": pci, "mode": mode, "addresses": list(addresses)}


MACHINE: dict[str, Any] = {
    "name": "n1",
    "kernel": "6.12",
    "soft_roce": True,
    "gpudirect": {"nvidia_peermem": "loaded", "gdrdrv": "absent"},
    "adapters": [
        adapter("mlx5_0", "0000:3b:00.0", port(1, "InfiniBand", "ib0")),
        adapter("mlx5_1", "0000:5e:00.0", port(1, "Ethernet", "eth2"), port(2, "Ethernet", "")),
    ],
    "interfaces": [
        interface("eth0", "ethernet", "192.0.2.7/24"),
        interface("eth1", "ethernet", "10.2.0.7/16", pci="0000:01:00.0"),
        interface("eth2", "ethernet", "10.0.0.7/16"),
        interface("ib0", "infiniband", "10.1.2.7/16", mode="datagram"),
    ],
}
SOFT = adapter("soft", "", port(1, "Ethernet", "eth1"), parent="eth1")


def rail(name: str, device: str, **others: Any) -> dict[str, Any]:
    return {"name": name, "device": device, **others}


def planned(*rails: dict[str, Any], machine: dict[str, Any] | None = None, **others: Any) -> dict[str, Any]:
    given_machine = MACHINE if machine is None else {**MACHINE, **machine}
    ucx = others.pop("ucx", None)
    return plan({**SETTINGS, "rails": list(rails), **others}, machine=given_machine, ucx=ucx)


def refusal(*rails: dict[str, Any], **others: Any) -> str:
    (problem,) = planned(*rails, **others)["problems"]
    return str(problem)


def test_a_declared_network_is_that_of_the_rail() -> None:
    (found,) = planned(rail("a", "10.1.2.0/24"))["rails"]
    assert (found["interface"], found["networks"]) == ("ib0", ["10.1.2.0/24"])


@pytest.mark.parametrize("device", ["10.1.0.0/16", "ib0", "mlx5_0", "mlx5_0:1", "0000:3B:00.0"])
def test_a_port_is_found_by_each_of_its_names(device: str) -> None:
    (found,) = planned(rail("a", device))["rails"]
    assert found == {
        "name": "a",
        "purpose": "processes",
        "type": "infiniband",
        "device": "mlx5_0:1",
        "interface": "ib0",
        "networks": ["10.1.0.0/16"],
    }


@pytest.mark.parametrize(("device", "found"), [("eth2", "mlx5_1:1"), ("mlx5_1:2", "mlx5_1:2")])
def test_roce_is_found_by_interface_and_by_port(device: str, found: str) -> None:
    assert planned(rail("a", device, type="roce"))["rails"][0]["device"] == found


@pytest.mark.parametrize("device", ["eth1", "10.2.0.0/16", "0000:01:00.0"])
def test_soft_roce_is_a_device_with_the_name_of_the_rail(device: str) -> None:
    made = planned(rail("soft", device, type="soft_roce"))
    assert made["rails"][0]["device"] == "soft:1"
    assert made["soft"] == [{"name": "soft", "interface": "eth1", "there": False}]
    there = planned(rail("soft", device, type="soft_roce"), machine={"adapters": [SOFT]})
    assert there["soft"] == [{"name": "soft", "interface": "eth1", "there": True}]


@pytest.mark.parametrize(
    ("rails", "machine", "words"),
    [
        (
            [rail("a", "mlx5_7")],
            {},
            "n1: there is no RDMA device mlx5_7, and the rail a needs one port; take one of",
        ),
        ([rail("a", "mlx5_1", type="roce")], {}, "n1: mlx5_1 has 2 ports, and the rail a needs one port"),
        (
            [rail("a", "10.1.3.0/24")],
            {},
            "n1: no interface has an address in 10.1.3.0/24, which the rail a of",
        ),
        (
            [rail("a", "10.9.0.0/16")],
            {},
            "n1: no interface has an address in 10.9.0.0/16, which the rail a of",
        ),
        (
            [rail("a", "10.0.0.0/8")],
            {},
            "n1: eth1, eth2, ib0 all are 10.0.0.0/8, and the rail a needs one; name",
        ),
        ([rail("a", "eth0")], {}, "n1: eth0 belongs to no RDMA adapter, and the rail a needs one"),
        (
            [rail("a", "eth2")],
            {},
            "n1: port 1 of mlx5_1 speaks Ethernet, and the rail a is infiniband; correct",
        ),
        (
            [rail("a", "ib0", type="roce")],
            {},
            "n1: port 1 of mlx5_0 speaks InfiniBand, and the rail a is roce",
        ),
        (
            [rail("a", "ib0")],
            {"adapters": []},
            "n1: the kernel drives no RDMA adapter, and the rail a needs one",
        ),
        (
            [rail("a", "ib0")],
            {"adapters": [SOFT]},
            "n1: the kernel drives no RDMA adapter, and the rail a needs",
        ),
        (
            [rail("a", "eth1", type="soft_roce")],
            {"soft_roce": False},
            "n1: the kernel 6.12 has no module rdma_rxe",
        ),
        ([rail("a", "ib0", type="soft_roce")], {}, "n1: ib0 is no Ethernet, over which alone soft RoCE goes"),
        (
            [rail("a", "eth7", type="soft_roce")],
            {},
            "n1: there is no interface eth7, which the rail a of fabric_",
        ),
        (
            [rail("mlx5_0", "eth1", type="soft_roce")],
            {},
            "n1: there is an RDMA device mlx5_0 already, which is not on eth1; give the rail another name",
        ),
        (
            [rail("a", "ib0"), rail("b", "mlx5_0")],
            {},
            "n1: a, b are all mlx5_0:1; declare one rail for each port.",
        ),
        (
            [rail("a", "ib0"), rail("a", "eth2", type="roce")],
            {},
            "fabric_rails has the name a 2 times; declare each",
        ),
        ([rail("A b", "ib0")], {}, "fabric_rails has the name 'A b'; use 1 to 15 lower-case letters"),
        ([rail("a", "ib0; rm")], {}, "The rail a of fabric_rails has the device 'ib0; rm'; give the name of"),
        (
            [rail("a", "10.1.0.1/16")],
            {},
            "The rail a of fabric_rails has '10.1.0.1/16', which is no IPv4 network",
        ),
        (
            [rail("a", "eth2", type="roce", mode="connected")],
            {},
            "The rail a is roce and has the mode connected",
        ),
        ([rail("a", "ib0", speed=-1)], {}, "The rail a has the speed -1; give Gbit/s, or 0 for any."),
        ([], {}, "fabric_rails has no rail, so there is nothing to set up; declare some, or set"),
    ],
)
def test_rails_that_cannot_be_are_refused(rails: list[Any], machine: dict[str, Any], words: str) -> None:
    assert refusal(*rails, machine=machine).startswith(words)


def test_a_subnet_manager_needs_a_port_of_infiniband() -> None:
    soft = rail("soft", "eth1", type="soft_roce")
    assert planned(soft, subnet_manager=True)["problems"] == []
    assert "no port speaks InfiniBand" in refusal(soft, subnet_manager=True, machine={"adapters": []})


SOURCE = {
    "source": "repository",
    "vendor_packages": ["doca-ofed"],
    "apt_url": "https://mirror.example.org/doca",
    "apt_suite": "./",
    "apt_key_url": "https://mirror.example.org/key",
    "apt_key_fingerprint": "1" * 40,
}


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        (
            {"apt_url": "", "vendor_packages": []},
            "needs fabric_apt_url and fabric_vendor_packages; set what is missing",
        ),
        ({"apt_key_fingerprint": "3bf8"}, "fabric_apt_key_fingerprint is '3bf8', and a fingerprint has 40"),
        ({"apt_url": "https://a\nEnabled: no"}, "has a space; write an address without."),
        (
            {"vendor_packages": ["-o Dir=/"]},
            "fabric_vendor_packages has '-o Dir=/', which is no name of a package",
        ),
        (
            {"vendor_packages": ["mlnx-ofed"]},
            "has no mlnx-ofed; correct fabric_vendor_packages or fabric_apt_url.",
        ),
    ],
)
def test_a_source_that_cannot_serve_is_refused(changed: dict[str, Any], words: str) -> None:
    settings = {**SETTINGS, "rails": [rail("a", "ib0")], **SOURCE, **changed}
    (problem,) = plan(settings, offered={"doca-ofed": ["3.2.1"]})["problems"]
    assert words in problem


def test_a_source_that_offers_the_packages_is_accepted() -> None:
    settings = {**SETTINGS, "rails": [rail("a", "ib0")], **SOURCE}
    assert plan(settings, offered={"doca-ofed": ["3.2.1"]}) == {"problems": []}


def test_ucx_uses_rails_for_processes_alone() -> None:
    data = rail("b", "eth2", type="roce", purpose="data")
    assert planned(rail("a", "ib0"), data)["ucx"] == "UCX_NET_DEVICES=mlx5_0:1,ib0"
    assert planned(data)["ucx"] == ""


def test_ucx_connects_by_tcp_over_soft_roce() -> None:
    lines = planned(rail("soft", "eth1", type="soft_roce"))["ucx"].splitlines()
    assert lines == ["UCX_NET_DEVICES=soft:1,eth1", "UCX_TLS=rc_verbs,tcp,self,sm"]


def test_ipoib_has_its_mode_by_a_rule_and_roce_has_none() -> None:
    made = planned(rail("a", "ib0", mode="connected"), rail("b", "eth2", type="roce"))
    assert made["ipoib"] == ["ib0"]
    assert planned(rail("a", "ib0", mode="datagram"))["ipoib"] == []
    assert made["udev"] == (
        'ACTION=="add|change", SUBSYSTEM=="net", ATTR{type}=="32", KERNEL=="ib0", ATTR{mode}="connected"\n'
    )


def test_a_link_that_is_well_deviates_in_nothing() -> None:
    assert planned(rail("a", "ib0", speed=100), ucx=UCX)["deviations"] == []


@pytest.mark.parametrize(
    ("given_rail", "changed", "words"),
    [
        (rail("a", "mlx5_0"), {"state": "INIT"}, "The rail a (mlx5_0:1) is INIT, its link LinkUp."),
        (rail("a", "mlx5_0", speed=200), {}, "The rail a (mlx5_0:1) has 100 Gbit/s, not 200 or more."),
        (
            rail("a", "mlx5_0", mode="connected"),
            {},
            "ib0 of the rail a is in the mode datagram, not connected.",
        ),
    ],
)
def test_a_link_that_is_not_well_is_named(
    given_rail: dict[str, Any], changed: dict[str, Any], words: str
) -> None:
    adapters = [adapter("mlx5_0", "0000:3b:00.0", port(1, "InfiniBand", "ib0", **changed))]
    assert planned(given_rail, machine={"adapters": adapters}, ucx=UCX)["deviations"] == [words]


def test_a_device_that_is_not_made_and_one_that_users_do_not_see_are_named() -> None:
    soft = rail("soft", "eth1", type="soft_roce")
    assert planned(soft, ucx="")["deviations"] == ["The rail soft has no device soft:1."]
    (unseen,) = planned(soft, machine={"adapters": [SOFT]}, ucx="")["deviations"]
    assert unseen.startswith(
        "UCX, started by the account nobody, does not see soft:1 of the rail soft; look at"
    )


def test_the_result_tells_links_and_gpudirect() -> None:
    result = planned(rail("a", "ib0"), ucx=UCX + "# Transport: cuda_copy\n# Device: cuda\n")["result"]
    assert result["gpudirect"] == {"nvidia_peermem": "loaded", "gdrdrv": "absent", "ucx": "usable"}
    (told,) = result["rails"]
    assert (told["firmware"], told["state"], told["rate"], told["device"]) == (
        "28.43",
        "ACTIVE",
        100.0,
        "mlx5_0:1",
    )
    assert planned(rail("a", "ib0"), ucx=UCX)["result"]["gpudirect"]["ucx"] == "absent"


def test_others_read_the_rails_for_processes() -> None:
    rails = planned(rail("a", "ib0"), rail("b", "eth2", type="roce", purpose="data"))["rails"]
    assert [one["name"] for one in rails_of(json.dumps(rails))] == ["a"]
    assert rails_of("") == []


@given(st.text(max_size=20), st.text(max_size=20))
def test_any_name_and_device_is_refused_or_safe_in_files(name: str, device: str) -> None:
    made = planned(rail(name, device, type="soft_roce"), ucx="")
    assert made["problems"] or (name.isidentifier() and name.isascii())
