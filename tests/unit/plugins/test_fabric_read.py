"""Adapters as the files of the kernel tell them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._fabric.io.read import read

PCI = "sys/devices/pci0000:3a/0000:3b:00.0"


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{text}\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A machine with an adapter of two ports, the second of which has IPoIB, and a device of soft RoCE."""
    ports = f"{PCI}/infiniband/mlx5_0/ports"
    soft = "sys/devices/virtual/infiniband/compute"
    write(
        tmp_path,
        {
            f"{PCI}/infiniband/mlx5_0/fw_ver": "28.43.1014",
            f"{PCI}/infiniband/mlx5_0/node_guid": "b83f:d203:00d8:1a4c",
            f"{ports}/1/state": "1: DOWN",
            f"{ports}/1/phys_state": "3: Disabled",
            f"{ports}/1/rate": "10 Gb/sec (4X SDR)",
            f"{ports}/1/link_layer": "InfiniBand",
            f"{ports}/2/state": "4: ACTIVE",
            f"{ports}/2/phys_state": "5: LinkUp",
            f"{ports}/2/rate": "200 Gb/sec (4X HDR)",
            f"{ports}/2/link_layer": "InfiniBand",
            f"{ports}/2/counters/symbol_error": "2",
            f"{ports}/2/counters/port_rcv_data": "77",
            f"{ports}/2/hw_counters/out_of_sequence": "5",
            f"{PCI}/net/ib1/type": "32",
            f"{PCI}/net/ib1/mode": "datagram",
            f"{PCI}/net/ib1/dev_port": "1",
            f"{soft}/parent": "eth1",
            f"{soft}/ports/1/state": "4: ACTIVE",
            f"{soft}/ports/1/link_layer": "Ethernet",
            f"{soft}/ports/1/gid_attrs/ndevs/0": "eth1",
            "sys/devices/virtual/net/eth1/type": "1",
        },
    )
    links = {
        "sys/class/infiniband/mlx5_0": f"{PCI}/infiniband/mlx5_0",
        "sys/class/infiniband/compute": soft,
        "sys/class/net/ib1": f"{PCI}/net/ib1",
        "sys/class/net/eth1": "sys/devices/virtual/net/eth1",
        f"{PCI}/infiniband/mlx5_0/device": PCI,
        f"{PCI}/net/ib1/device": PCI,
    }
    for name, leads in links.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).symlink_to(tmp_path / leads)
    return tmp_path


def test_adapters_have_ports_with_interfaces_and_errors(root: Path) -> None:
    soft, hard = read(root)["adapters"]
    assert (soft["name"], soft["parent"], soft["pci"]) == ("compute", "eth1", "")
    assert soft["ports"][0]["interface"] == "eth1"
    assert (hard["name"], hard["pci"], hard["firmware"]) == ("mlx5_0", "0000:3b:00.0", "28.43.1014")
    first, second = hard["ports"]
    assert (first["state"], first["interface"], first["errors"]) == ("DOWN", "", {})
    assert second == {
        "number": 2,
        "state": "ACTIVE",
        "physical_state": "LinkUp",
        "rate": 200.0,
        "link_layer": "InfiniBand",
        "interface": "ib1",
        "errors": {"out_of_sequence": 5, "symbol_error": 2},
    }


def test_interfaces_have_kind_and_mode(root: Path) -> None:
    assert read(root)["interfaces"] == [
        {"name": "eth1", "kind": "ethernet", "pci": "", "mode": ""},
        {"name": "ib1", "kind": "infiniband", "pci": "0000:3b:00.0", "mode": "datagram"},
    ]


def test_a_machine_without_adapters_is_no_error(tmp_path: Path) -> None:
    told = read(tmp_path)
    assert (told["adapters"], told["interfaces"], told["soft_roce"]) == ([], [], False)
    assert told["gpudirect"] == {"nvidia_peermem": "absent", "gdrdrv": "absent"}


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        (
            "modules.dep",
            "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko.xz: kernel/drivers/infiniband/core/ib_core.ko.xz",
            True,
        ),
        ("modules.builtin", "kernel/drivers/infiniband/sw/rxe/rdma_rxe.ko", True),
        ("modules.dep", "kernel/other.ko: kernel/drivers/infiniband/sw/rxe/rdma_rxe_other.ko", False),
    ],
)
def test_soft_roce_is_a_module_of_the_running_kernel(
    tmp_path: Path, name: str, text: str, found: bool
) -> None:
    write(tmp_path, {f"lib/modules/{os.uname().release}/{name}": text})
    assert read(tmp_path)["soft_roce"] is found


def test_a_module_that_is_loaded_and_not_registered_is_not_usable(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"sys/module/nvidia_peermem/refcnt": "0", "sys/module/gdrdrv/refcnt": "0", "dev/gdrdrv": "no device"},
    )
    assert read(tmp_path)["gpudirect"] == {"nvidia_peermem": "loaded", "gdrdrv": "loaded"}
    write(tmp_path, {"sys/kernel/mm/memory_peers/nv_mem/version": "1.0"})
    assert read(tmp_path)["gpudirect"]["nvidia_peermem"] == "usable"
