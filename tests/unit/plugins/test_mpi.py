"""Networks over which processes of MPI and NCCL talk."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ipaddress
import json
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cidr import LOOPBACK
from ansible_collections.gpufarm.cluster.plugins.module_utils._mpi import plan
from hypothesis import given
from hypothesis import strategies as st


def link(name: str, *addresses: str) -> dict[str, Any]:
    return {"ifname": name, "addr_info": [{"family": "inet", "local": one} for one in addresses]}


LINKS = [
    link("lo", "127.0.0.1"),
    link("eth0", "192.0.2.7"),
    link("ib0", "10.1.2.3", "10.3.0.1"),
    link("eth1"),
]


def made(*networks: str, links: list[dict[str, Any]] = LINKS, rails: str = "") -> dict[str, Any]:
    return plan({"process_networks": list(networks)}, {"name": "n1", "links": links, "rails": rails})


def rail(name: str, purpose: str = "processes", *networks: str) -> dict[str, Any]:
    return {"name": name, "purpose": purpose, "device": f"{name}_0:1", "networks": list(networks)}


RAILS = json.dumps([rail("compute", "processes", "10.1.0.0/16"), rail("storage", "data", "192.0.2.0/24")])
UCX = "pml = ucx\nosc = ucx\nopal_common_ucx_tls = any\nopal_common_ucx_devices = any"


def test_networks_and_devices_are_those_of_rails_for_processes() -> None:
    assert made(rails=RAILS) == {
        "problems": [],
        "networks": ["10.1.0.0/16"],
        "interfaces": ["ib0"],
        "openmpi": f"btl_tcp_if_include = 10.1.0.0/16\n{UCX}",
        "nccl": "NCCL_SOCKET_IFNAME==ib0\nNCCL_IB_HCA==compute_0:1",
    }


def test_declared_networks_come_before_those_of_rails() -> None:
    assert made("192.0.2.0/24", rails=RAILS)["openmpi"] == f"btl_tcp_if_include = 192.0.2.0/24\n{UCX}"


def test_two_rails_in_one_network_and_rails_without_addresses_are_no_contradiction() -> None:
    both = json.dumps(
        [rail("a", "processes", "10.1.0.0/16"), rail("b", "processes", "10.1.0.0/16"), rail("c")]
    )
    assert made(rails=both)["nccl"] == "NCCL_SOCKET_IFNAME==ib0\nNCCL_IB_HCA==a_0:1,b_0:1,c_0:1"


def test_rails_for_data_alone_change_nothing() -> None:
    assert made(rails=json.dumps([rail("storage", "data", "192.0.2.0/24")])) == made()


def test_without_networks_nothing_is_set() -> None:
    assert made() == {"problems": [], "networks": [], "interfaces": [], "openmpi": "", "nccl": ""}


def test_networks_are_settings_of_open_mpi_and_exact_names_of_nccl() -> None:
    assert made("10.1.0.0/16", "192.0.2.0/24") == {
        "problems": [],
        "networks": ["10.1.0.0/16", "192.0.2.0/24"],
        "interfaces": ["ib0", "eth0"],
        "openmpi": "btl_tcp_if_include = 10.1.0.0/16,192.0.2.0/24",
        "nccl": "NCCL_SOCKET_IFNAME==ib0,eth0",
    }


def test_an_interface_in_two_networks_is_named_once() -> None:
    assert made("10.1.0.0/16", "10.3.0.0/16")["interfaces"] == ["ib0"]


@pytest.mark.parametrize(
    "text", ["10.1.0.1/16", "eth0", "", "10.1.0.0/33", "fd00::/64", "10.1.0.0/16\nbtl = self", "10.1.0.0/16,"]
)
def test_other_texts_than_networks_are_refused(text: str) -> None:
    (problem,) = made(text)["problems"]
    assert problem.startswith(f"mpi_process_networks has {text!r}, which is no IPv4 network; give")


def test_networks_that_overlap_are_refused() -> None:
    (problem,) = made("10.1.0.0/16", "192.0.2.0/24", "10.1.2.0/24")["problems"]
    assert problem == "mpi_process_networks has 10.1.0.0/16 and 10.1.2.0/24, which overlap; keep one of them."


@pytest.mark.parametrize("network", ["127.0.0.0/8", "127.0.0.1/32", "0.0.0.0/0"])
def test_a_network_in_which_a_machine_reaches_only_itself_is_refused(network: str) -> None:
    (problem,) = made(network)["problems"]
    assert problem.startswith(f"mpi_process_networks has {network}, in which each machine reaches only ")


def test_a_network_without_an_address_of_the_machine_is_refused() -> None:
    (problem,) = made("10.1.0.0/16", "10.2.0.0/16")["problems"]
    assert problem.startswith("n1 has no address in 10.2.0.0/16, which mpi_process_networks has; give")


def test_a_network_of_a_rail_is_named_as_that() -> None:
    (problem,) = made(rails=json.dumps([rail("compute", "processes", "10.2.0.0/16")]))["problems"]
    assert problem.startswith("n1 has no address in 10.2.0.0/16, which fabric_rails has; give")


ADDRESSES = st.ip_addresses(v=4).map(str)


@given(
    st.lists(st.lists(ADDRESSES, max_size=3), max_size=5),
    st.lists(st.tuples(ADDRESSES, st.integers(0, 32)), max_size=3),
)
def test_each_network_has_an_interface_or_is_refused(
    addresses: list[list[str]], pairs: list[tuple[str, int]]
) -> None:
    networks = [ipaddress.IPv4Network(pair, strict=False) for pair in pairs]
    result = made(
        *map(str, networks), links=[link(f"e{number}", *some) for number, some in enumerate(addresses)]
    )
    inside = {
        f"e{number}"
        for number, some in enumerate(addresses)
        if any(ipaddress.IPv4Address(one) in network for one in some for network in networks)
    }
    served = all(
        any(ipaddress.IPv4Address(one) in network for some in addresses for one in some)
        for network in networks
    )
    apart = sum(network.num_addresses for network in networks) == sum(
        network.num_addresses for network in ipaddress.collapse_addresses(networks)
    )
    abroad = not any(network.overlaps(LOOPBACK) for network in networks)
    assert (result["problems"] == []) == (served and apart and abroad)
    if not result["problems"]:
        assert set(result["interfaces"]) == inside and len(result["interfaces"]) == len(inside)
