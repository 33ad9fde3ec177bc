"""Settings of the role that cannot work are refused, all of them at once."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.settings import plan

GOOD: dict[str, Any] = {
    "marathon_urls": ["https://m1:8443", "https://[fe80::1]:8443/"],
    "marathon_user": "gateway",
    "groups": ["external"],
    "public_host": "apps.example.org",
    "https_port": 443,
    "http_port": 80,
    "service_ports": "10000-20000",
    "max_connections": 4000,
    "certificate_type": "self-signed",
    "certificate_file": "",
    "certificate_key_file": "",
}


def test_settings_that_work() -> None:
    assert plan(GOOD) == {"problems": []}
    assert plan(GOOD | {"public_host": "10.0.0.1", "http_port": 0}) == {"problems": []}
    assert plan(GOOD | {"marathon_urls": ["http://m1:8080"], "marathon_user": ""}) == {"problems": []}


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"marathon_urls": []}, "marathon_urls is empty"),
        ({"marathon_urls": ["m1:8443"]}, "m1:8443, not a URL"),
        ({"marathon_urls": ["https://m1:x"]}, "not a URL"),
        ({"marathon_urls": ["https://u:p@m1:8443"]}, "not a URL"),
        ({"marathon_urls": ["https://m1:8443/v2"]}, "not a URL"),
        (
            {"marathon_urls": ["https://m1", "http://m2"], "marathon_user": ""},
            "some with and some without TLS",
        ),
        ({"marathon_user": "a b"}, "a space or a colon"),
        ({"marathon_urls": ["http://m1:8080"]}, "the password could be read on the way"),
        ({"groups": []}, "no app would be served"),
        ({"groups": ["a,b"]}, "use letters"),
        ({"public_host": "apps example"}, "no name of a machine"),
        ({"https_port": 0}, "choose a port from 1"),
        ({"http_port": 70000}, "or 0 for none"),
        ({"http_port": 443}, "are both 443"),
        ({"service_ports": "10000"}, "give two ports"),
        ({"service_ports": "20000-10000"}, "give two ports"),
        ({"service_ports": "22-70"}, "give two ports"),
        ({"https_port": 10443}, "is among app_gateway_service_ports"),
        ({"max_connections": 1}, "choose 100 to 500000"),
        ({"certificate_type": "provided", "certificate_file": "x"}, "must both be given"),
    ],
)
def test_one_thing_is_wrong(wrong: dict[str, Any], words: str) -> None:
    [text] = plan(GOOD | wrong)["problems"]
    assert words in text and text.endswith(".")


def test_everything_is_told_at_once() -> None:
    wrong = {"marathon_urls": [], "groups": [], "https_port": 0, "max_connections": 0}
    assert len(plan(GOOD | wrong)["problems"]) == 4
