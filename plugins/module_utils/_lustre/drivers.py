# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers of LNet's networks: their kernel modules, and the packages that these are in. No I/O.

Sources: source of Lustre, libcfs/libcfs/nidstrings.c (modules by type of network) and
debian/repackage-multiple-lnds.sh: from Lustre 2.16 a build can put each driver in a package of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .nid import NETWORK


class Driver(NamedTuple):
    """A kernel module, and what its packages are called between ``lustre-lnet-module-`` and a kernel."""

    module: str
    packages: tuple[str, ...]


IN_KERNEL, EXTERNAL = "in-kernel-o2iblnd", "o2iblnd"
DRIVERS = {
    "tcp": Driver("ksocklnd", ("socklnd",)),
    "o2ib": Driver("ko2iblnd", (IN_KERNEL, EXTERNAL)),
    "kfi": Driver("kkfilnd", ("kfilnd",)),
    "gni": Driver("kgnilnd", ("gnilnd",)),
}
MODULES = tuple(driver.module for driver in DRIVERS.values())


def _types(networks: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the types of declared networks, ``tcp`` if there are none, as LNet has that by itself."""
    found = [NETWORK.fullmatch(str(one["name"])) for one in networks]
    return list(dict.fromkeys(name[1] for name in found if name)) or ["tcp"]


def packages(
    networks: Sequence[Mapping[str, Any]],
    version: str,
    available: Mapping[str, Sequence[str]],
    kernels: Sequence[Mapping[str, Any]],
) -> list[str]:
    """Return the packages of drivers for networks, none where the modules of Lustre have the drivers.

    Args:
        networks: ``name`` each, as the roles take them.
        version: of Lustre's packages.
        available: versions in the source by package.
        kernels: what the module lustre_info tells of the kernels that will boot.
    """
    chosen = []
    for kind in _types(networks):
        for kernel in kernels:
            names = [
                f"lustre-lnet-module-{one}-{kernel['release']}"
                for one in _ordered(DRIVERS.get(kind, Driver("", ())).packages, kernel["infiniband"])
            ]
            chosen += [name for name in names if version in available.get(name, [])][:1]
    return chosen


def _ordered(names: tuple[str, ...], infiniband: str) -> tuple[str, ...]:
    """A driver that was built for other modules of InfiniBand than the kernel has does not load."""
    return tuple(reversed(names)) if infiniband == "other" else names


def problems(
    networks: Sequence[Mapping[str, Any]], kernels: Sequence[Mapping[str, Any]], host: str
) -> Iterator[str]:
    """Yield which drivers of networks are not there for which kernels, in a sentence each.

    Args:
        networks: ``name`` each, as the roles take them.
        kernels: what the module lustre_info tells of the kernels that will boot.
        host: name of the machine, for people.
    """
    for kind in _types(networks):
        driver = DRIVERS.get(kind)
        without = [one["release"] for one in kernels if driver and driver.module not in one["drivers"]]
        if driver and without:
            package = f"lustre-lnet-module-{driver.packages[0]}-{without[0]}"
            yield (
                f"The kernel {' and '.join(without)} on {host} has no module {driver.module}, which the"
                f" network {kind} needs; install the package {package}, or modules of Lustre that were built"
                " with it."
            )
