# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparison of the equal GPUs of a machine."""

from __future__ import annotations

from collections.abc import Sequence

from .rules import Reading


def needs_links(gpu: Reading, gpus: Sequence[Reading]) -> bool:
    """Whether equal GPUs show that a GPU without active NVLinks should have some.

    They do when their links lead to switches, to which a board joins all of its GPUs (NVIDIA, Fabric Manager
    user guide, "GPU Baseboard Topologies"). They do not when bridges join them among themselves: a bridge
    joins two cards (NVIDIA, A100 80GB PCIe product brief, "NVLink Bridge Support"), or up to four (NVIDIA,
    H200 data sheet), and a card loses a link together with the card at its other end. So if the links of an
    equal GPU lead to several others and some are inactive, these may have led to the GPU that has none. Equal
    GPUs have model and MIG mode in common.

    Args:
        gpus: all GPUs of the machine.
    """
    others = {one.pci_address for one in gpus if one is not gpu}
    linked = (one for one in gpus if one is not gpu and _kind(one) == _kind(gpu) and any(_links(one)))
    return not all(_is_bridged(one, others) for one in linked)


def _is_bridged(gpu: Reading, others: set[str]) -> bool:
    """Whether the active NVLinks of a GPU lead to some of the others, and none may have led elsewhere."""
    ends = set(gpu.values.get("nvlink_peers", ()))
    return bool(ends) and ends <= others and (len(ends) == 1 or all(_links(gpu)))


def _links(gpu: Reading) -> list[bool]:
    return list(gpu.values.get("nvlinks", {}).values())


def _kind(gpu: Reading) -> tuple[str, bool]:
    return gpu.name, bool(gpu.values.get("mig", {}).get("current"))
