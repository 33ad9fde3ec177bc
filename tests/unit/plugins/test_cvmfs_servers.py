# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ways to the servers of repositories, and what is said when none works."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._cvmfs.client import plan as cvmfs_client_plan
from ansible_collections.gpufarm.cluster.plugins.modules import cvmfs_info

ROLE = Path(__file__).resolve().parents[3] / "roles" / "cvmfs_client"
DEAD = "http://127.0.0.1:9"


def role_settings(**changes: Any) -> dict[str, Any]:
    defaults = yaml.safe_load((ROLE / "defaults" / "main.yml").read_text())
    found = {name.removeprefix("cvmfs_client_"): value for name, value in defaults.items()}
    return {**found, "repositories": "sft.cern.ch", **changes}


def urls(**changes: Any) -> set[str]:
    return {way["url"] for way in cvmfs_client_plan(role_settings(**changes))["servers"]}


def said(*tried: tuple[str, str, int | None, str], nameless: list[str] | None = None) -> str:
    ways = [
        {"repository": repository, "url": "http://s1/", "proxy": proxy, "status": status, "error": error}
        for repository, proxy, status, error in tried
    ]
    asked = {"servers": ways, "nameless": nameless or []}
    return " ".join(cvmfs_client_plan(role_settings(), asked, "gpu1")["problems"])


def test_servers_that_the_default_package_knows_are_asked_on_a_machine_without_it() -> None:
    assert "http://cvmfs-stratum-one.cern.ch/cvmfs/sft.cern.ch/.cvmfspublished" in urls()
    assert any("eessi.science" in url for url in urls(repositories="software.eessi.io"))


@pytest.mark.parametrize(
    "changes",
    [
        {"source": "preinstalled"},
        {"packages": ["cvmfs", "cvmfs-config-oursite"]},
        {"config_repository": "config.example.org"},
        {"parameters": {"CVMFS_USE_CDN": True}},
        {"repositories": "soft.galaxy.example"},
        {"proxies": "auto"},
    ],
)
def test_servers_that_others_may_configure_are_not_guessed(changes: dict[str, Any]) -> None:
    assert urls(**changes) == set()


def test_servers_that_the_settings_name_are_asked_alone() -> None:
    domains = {
        "cern.ch": {"CVMFS_SERVER_URL": "http://s1/cvmfs/@fqrn@/;http://s2/@org@", "CVMFS_KEYS_DIR": "/k"}
    }
    assert urls(domains=domains) == {
        "http://s1/cvmfs/sft.cern.ch/.cvmfspublished",
        "http://s2/sft/.cvmfspublished",
    }


def test_proxies_of_all_places_are_tried_and_looked_up_once() -> None:
    plan = cvmfs_client_plan(
        role_settings(
            proxies="http://squid1.example.org:3128|http://[2001:db8::1]:3128;auto;DIRECT",
            parameters={"CVMFS_FALLBACK_PROXY": "http://squid2.example.org:3128;DIRECT"},
            domains={"cern.ch": {"CVMFS_HTTP_PROXY": "http://squid1.example.org:3128"}},
        )
    )
    assert plan["proxy_hosts"] == ["squid1.example.org", "2001:db8::1", "squid2.example.org"]
    proxies = list(dict.fromkeys(way["proxy"] for way in plan["servers"]))
    assert proxies == ["http://squid1.example.org:3128", "http://squid2.example.org:3128", ""]


def test_a_repository_that_one_way_leads_to_is_no_problem() -> None:
    assert said(("sft.cern.ch", DEAD, None, "refused"), ("sft.cern.ch", "", 200, "")) == ""
    assert said() == ""


def test_a_repository_that_no_server_has_is_named() -> None:
    told = said(
        ("sft.cern.ch", "", 200, ""),
        ("stf.cern.ch", DEAD, None, "refused"),
        ("stf.cern.ch", "", 404, "404 Not Found"),
    )
    assert told.startswith("No server has the repository stf.cern.ch, as gpu1 asked http://s1/ through ")
    assert "directly: 404 Not Found; correct cvmfs_client_repositories" in told


def test_proxies_that_do_not_answer_are_named() -> None:
    told = said(("sft.cern.ch", DEAD, None, "Connection refused"))
    assert told.startswith("No server or proxy lets gpu1 have the repository sft.cern.ch")
    assert f"through {DEAD}: Connection refused); correct cvmfs_client_proxies" in told


def test_a_proxy_whose_name_is_wrong_is_named_though_another_works() -> None:
    told = said(("sft.cern.ch", "", 200, ""), nameless=["squit.example.org"])
    assert told.startswith("The proxy squit.example.org has no address that gpu1 finds;")


class Handler(BaseHTTPRequestHandler):
    """A server that has one repository, and a proxy in front of it."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)  # type: ignore[attr-defined]
        self.send_response(200 if "there" in self.path else 404)
        self.end_headers()

    def log_message(self, *_words: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[ThreadingHTTPServer]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as found:
        found.asked = []  # type: ignore[attr-defined]
        Thread(target=found.serve_forever, daemon=True).start()
        yield found
        found.shutdown()


def way(url: str, proxy: str = "") -> dict[str, str]:
    return {"repository": "there.example.org", "url": url, "proxy": proxy}


def test_ways_are_tried_until_one_works_and_none_through_a_proxy_that_is_dead(server: Any) -> None:
    proxy = f"http://127.0.0.1:{server.server_port}"
    tried = cvmfs_info.try_ways(
        [
            way("http://s1.invalid/there", DEAD),
            way("http://s2.invalid/there", DEAD),
            way("http://s1.invalid/gone", proxy),
            way("http://s2.invalid/there", proxy),
            way(f"{proxy}/there"),
        ],
        30,
    )
    assert [one["status"] for one in tried] == [None, 404, 200]
    assert [bool(one["error"]) for one in tried] == [True, True, False]
    assert server.asked == ["http://s1.invalid/gone", "http://s2.invalid/there"]


def test_a_server_that_says_nothing_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/there"
        assert cvmfs_info.fetch(url, "", 1) == (None, "no answer within 1 seconds")


def test_a_name_that_nobody_knows_has_no_address() -> None:
    assert cvmfs_info.has_address("localhost", 30)
    assert not cvmfs_info.has_address("squid.invalid", 30)
