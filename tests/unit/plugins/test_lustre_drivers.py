# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers of LNet's networks come with Lustre's modules, or in packages of their own."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import drivers, lnet

KERNEL = "6.1.0-44-amd64"
START = "lustre-lnet-module-"
APART = {
    f"{START}{name}-{KERNEL}": ["2.17.0-1", "2.16.1-1"]
    for name in ("socklnd", "o2iblnd", "in-kernel-o2iblnd")
}


def networks(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "interfaces": ["eth0"]} for name in names]


def kernel(**changes: Any) -> dict[str, Any]:
    return {"release": KERNEL, "infiniband": "kernel", "drivers": [], **changes}


@pytest.mark.parametrize(
    ("names", "infiniband", "wanted"),
    [
        ([], "kernel", ["socklnd"]),
        (["tcp", "tcp1"], "kernel", ["socklnd"]),
        (["o2ib3"], "kernel", ["in-kernel-o2iblnd"]),
        (["tcp", "o2ib"], "", ["socklnd", "in-kernel-o2iblnd"]),
        (["o2ib", "o2ib1"], "other", ["o2iblnd"]),
        (["efa"], "kernel", []),
    ],
)
def test_packages_of_drivers_follow_the_networks(
    names: list[str], infiniband: str, wanted: list[str]
) -> None:
    chosen = drivers.packages(networks(*names), "2.17.0-1", APART, [kernel(infiniband=infiniband)])
    assert chosen == [f"{START}{one}-{KERNEL}" for one in wanted]


def test_a_vendors_driver_is_taken_where_the_source_has_no_other() -> None:
    [name] = [one for one in APART if "-o2iblnd" in one and "in-kernel" not in one]
    assert drivers.packages(networks("o2ib"), "2.17.0-1", {name: ["2.17.0-1"]}, [kernel()]) == [name]


@pytest.mark.parametrize("available", [{}, {name: ["2.16.1-1"] for name in APART}])
def test_modules_of_lustre_with_their_drivers_need_no_other_package(available: dict[str, list[str]]) -> None:
    assert drivers.packages(networks("tcp", "o2ib"), "2.17.0-1", available, [kernel()]) == []


def test_a_missing_driver_is_named_with_its_package() -> None:
    there = [kernel(drivers=["ksocklnd"]), kernel(release="6.1.0-99-amd64", drivers=["ko2iblnd", "ksocklnd"])]
    [told] = drivers.problems(networks("tcp", "o2ib"), there, "node1")
    assert told.startswith(
        f"The kernel {KERNEL} on node1 has no module ko2iblnd, which the network o2ib needs;"
    )
    assert f"{START}in-kernel-o2iblnd-{KERNEL}" in told
    assert list(drivers.problems([], there, "node1")) == []


@pytest.mark.parametrize(
    ("said", "down"),
    [
        ("opening /dev/lnet failed: No such file or directory", True),
        ("show:\n  - net:\n      errno: -100\n      descr: cannot get networks: Network is down", True),
        ("Writer error: failed to resolve Netlink family id", True),
        ("Writer error: Operation not permitted", False),
        ("", False),
    ],
)
def test_an_error_of_lnetctl_is_told_from_a_network_that_is_down(said: str, down: bool) -> None:
    assert lnet.is_down(said) is down
