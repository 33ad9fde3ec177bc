# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine is compared with what Lustre needs of it: who owns LNet, which kernels have modules."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.filter.lustre_unfit import lustre_unfit
from ansible_collections.gpufarm.cluster.plugins.module_utils._lustre import client, layout, machine


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ("", ""),
        ("# as the package has it\n\n  # net:\n", ""),
        (f"{client.MARK}\nnet:\n", "lustre_client"),
        (f"{layout.MARK}\nnet:\n", "lustre_server"),
        ("net:\n", "other"),
        ("# mine\nnet:\n", "other"),
        (f"net:\n{client.MARK}\n", "other"),
    ],
)
def test_who_has_written_what_lnet_starts_with(text: str, owner: str) -> None:
    assert machine.writer(text) == owner


def kernel(release: str, built_for: str = "", version: str = "") -> dict[str, Any]:
    return {
        "release": release,
        "built_for": built_for,
        "version": version,
        "fits": bool(built_for) and built_for == release,
    }


@pytest.mark.parametrize(
    ("one", "version", "words"),
    [
        (kernel("6.1", "6.1", "2.15.8"), "2.15.8-1", ""),
        (kernel("6.1", "6.1", "2.15.8_3_gabc"), "2.15.8-3-gabc-1", ""),
        (kernel("6.1", "6.1", "2.15.8"), "2.15", ""),
        (kernel("6.1", "6.1", "2.15.8"), "", ""),
        (kernel("6.1"), "2.15.8-1", "no modules of Lustre 2.15.8-1: 6.1 has none."),
        (kernel("6.1", "6.0", "2.15.8"), "2.15.8-1", "6.1 has those of 2.15.8 for 6.0."),
        (kernel("6.1", "6.1", "2.15.7"), "2.15.8-1", "6.1 has those of 2.15.7 for 6.1."),
        (kernel("6.1", "6.1", "2.15.80"), "2.15.8-1", "6.1 has those of 2.15.80 for 6.1."),
        (kernel("6.1", "6.1", "2.1.5"), "2.15", "6.1 has those of 2.1.5 for 6.1."),
    ],
)
def test_modules_are_for_the_kernel_and_of_the_version(one: Any, version: str, words: str) -> None:
    told = lustre_unfit([kernel("5.0", "5.0", version), one], version, "gpu1")
    assert told["kernels"] == (["6.1"] if words else [])
    assert bool(words) == bool(told["problems"]) and all(words in one for one in told["problems"])
