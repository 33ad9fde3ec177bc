"""Machines of the inventory that a server of monitoring asks, and servers that may ask a machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.machines import problems, targets

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


def settings(**changes: Any) -> dict[str, Any]:
    return {"machines": [["192.0.2.1"], ["n2"]], "servers": [], "targets": [], **changes}


def found(**changes: Any) -> dict[str, Any]:
    addresses = {"n1": "192.0.2.1:9100", "n2": "n2:9100"}
    return {"name": "m1", "machines": ["n1", "n2"], "servers": [], "addresses": addresses, **changes}


def test_machines_of_the_inventory_are_asked_beside_others() -> None:
    other = {"name": "far", "address": "far.example.org:9100", "certificate": PEM}
    given = settings(targets=[other])
    assert list(problems(given, found())) == []
    known = {"n1": PEM, "n2": PEM, "m2": PEM}
    assert targets(given, found(), known) == [
        other,
        {"name": "n1", "address": "192.0.2.1:9100", "certificate": PEM},
        {"name": "n2", "address": "n2:9100", "certificate": PEM},
    ]


@pytest.mark.parametrize("certificates", [{}, {"n1": ""}])
def test_a_machine_without_a_certificate_is_left_out(certificates: dict[str, str]) -> None:
    assert targets(settings(), found(), {"n2": PEM, **certificates}) == [
        {"name": "n2", "address": "n2:9100", "certificate": PEM}
    ]


@pytest.mark.parametrize(
    ("given", "known", "words"),
    [
        (
            {"machines": [["n9"]]},
            {"machines": []},
            "monitoring_machines names n9, and the inventory has only others",
        ),
        (
            {"machines": [["n1", "n9"]]},
            {"machines": ["n1"]},
            "monitoring_machines names n1, n9, and the inventory has only n1",
        ),
        ({"servers": ["m9"]}, {}, "monitoring_servers names m9"),
        ({}, {"machines": ["n1", "m1"]}, "names m1, which is this machine"),
        ({}, {"machines": ["n1", "n1"]}, "n1 is named twice"),
        (
            {"targets": [{"name": "n1", "address": "a:1", "certificate": PEM}]},
            {},
            "n1 is named twice in monitoring_machines and monitoring_targets",
        ),
        (
            {},
            {"addresses": {"n1": "192.0.2.1:9100", "n2": "n2 --x:9100"}},
            "'n2 --x:9100', the address of n2",
        ),
    ],
)
def test_machines_that_cannot_be_asked_are_refused(
    given: dict[str, Any], known: dict[str, Any], words: str
) -> None:
    [problem] = problems(settings(**given), found(**known))
    assert words in problem
