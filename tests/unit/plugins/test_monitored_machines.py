"""Machines of the inventory that a server of monitoring asks, and servers that may ask a machine."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.hubs import hubs
from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.machines import problems, targets

PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n"


def settings(**changes: Any) -> dict[str, Any]:
    given = {
        "machines": [["192.0.2.1"], ["n2"]],
        "servers": [],
        "targets": [],
        "hub_machines": [],
        "hubs": [],
    }
    return {**given, **changes}


def found(**changes: Any) -> dict[str, Any]:
    addresses = {"n1": "192.0.2.1:9100", "n2": "n2:9100"}
    known = {
        "name": "m1",
        "machines": ["n1", "n2"],
        "servers": [],
        "addresses": addresses,
        "hub_machines": [],
    }
    return {**known, **changes}


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
        (
            {"targets": [{"name": "m1", "address": "a:1", "certificate": PEM}]},
            {},
            "monitoring_targets names m1, which is this machine",
        ),
        ({"hubs": [{"name": "m1"}]}, {}, "monitoring_hubs names m1, which is this machine"),
        ({}, {"machines": ["n1", "n1"]}, "n1 is named twice"),
        (
            {"targets": [{"name": "n1", "address": "a:1", "certificate": PEM}]},
            {},
            "n1 is named twice in monitoring_machines and monitoring_targets",
        ),
        ({"hub_machines": [["h9"]]}, {}, "monitoring_hub_machines names h9"),
        ({}, {"hub_machines": ["m1"]}, "monitoring_hub_machines names m1, which is this machine"),
        (
            {"hubs": [{"name": "h1", "url": "https://h1", "ca_certificate": PEM, "token": "t"}]},
            {"hub_machines": ["h1"]},
            "h1 is named twice in monitoring_hub_machines and monitoring_hubs",
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


def read(machine: str, **parts: str) -> list[dict[str, Any]]:
    """Files of a machine as the module slurp returns them."""
    return [
        {"file": [machine, part], "content": b64encode(text.encode()).decode()}
        for part, text in parts.items()
    ]


def test_hubs_of_machines_are_asked_beside_others() -> None:
    other = {"name": "far", "url": "https://far.example.org", "ca_certificate": PEM, "token": "t"}
    far6 = {"name": "far6", "url": "https://[2001:db8::1]:8888", "ca_certificate": PEM, "token": "t"}
    known = {"h1": "192.0.2.1", "h2": "2001:db8::2", "none": "192.0.2.3"}
    files = [
        *read(
            "h1",
            settings=json.dumps({"public_url": "https://hub.example.org:8888"}),
            token="secret\n",
            certificate="own",
            system="others",
            authority="made",
        ),
        *read("h2", url="https://hub2.example.org\n", token="kept\n", authority="trusted\n"),
        *read("none", system="others"),
    ]
    found_hubs = {"hub_machines": [*known], "hub_addresses": known}
    assert hubs(settings(hubs=[other, far6]), found(**found_hubs), files) == [
        {**other, "address": "far.example.org:443"},
        {**far6, "address": "[2001:db8::1]:8888"},
        {
            "name": "h1",
            "url": "https://hub.example.org:8888",
            "address": "192.0.2.1:8888",
            "ca_certificate": "own\nothers\nmade",
            "token": "secret",
        },
        {
            "name": "h2",
            "url": "https://hub2.example.org",
            "address": "[2001:db8::2]:443",
            "ca_certificate": "trusted\n",
            "token": "kept",
        },
    ]
