"""The site's name, help and contact on the hub's pages; hostile values are text."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.web import site
from hub_process import Browser, HubProcess
from oidc_provider import Provider, serve, settings

from lab.patience import PATIENCE

HOSTILE = '"><script>alert(1)</script>{{ 7 * 7 }}'
SITE = {
    "name": "GPUs of Example",
    "help_url": "https://help.example.org/a?b=c&d",
    "contact": "gpu@example.org",
}


@pytest.fixture(scope="module")
def provider() -> Iterator[Provider]:
    yield from serve()


def run(folder_factory: pytest.TempPathFactory, about: dict[str, str], provider: Provider) -> HubProcess:
    folder = folder_factory.mktemp("hub")
    hub = HubProcess(folder, [], None, settings(provider, folder), about)
    hub.partition([])
    hub.start()
    return hub


def page(hub: HubProcess, path: str) -> BeautifulSoup:
    answer = httpx.get(f"{hub.url}{path}", trust_env=False, timeout=PATIENCE)
    return BeautifulSoup(answer.text, "html.parser")


def test_the_sign_in_page_names_the_site(
    provider: Provider, tmp_path_factory: pytest.TempPathFactory
) -> None:
    hub = run(tmp_path_factory, SITE, provider)
    try:
        shown = page(hub, "/hub/login")
        assert shown.find("title").text.strip() == "GPUs of Example"
        assert shown.find("h1").text.strip() == "Sign in to GPUs of Example"
        assert shown.select_one("#site-help a")["href"] == "https://help.example.org/a?b=c&d"
        contact = shown.select_one("#site-contact a")
        assert (contact["href"], contact.text) == ("mailto:gpu@example.org", "gpu@example.org")
    finally:
        hub.kill()


def test_hostile_values_are_text(provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> None:
    about = {"name": HOSTILE, "help_url": "javascript:alert(1)", "contact": f"x@y.z{HOSTILE}"}
    hub = run(tmp_path_factory, about, provider)
    try:
        for path in ("/hub/login", "/hub/nowhere"):
            shown = page(hub, path)
            assert HOSTILE in shown.find("title").text
            assert shown.select_one("#site-name").text == HOSTILE
            assert "javascript:alert(1)" in shown.select_one("#site-help").text
            assert HOSTILE in shown.select_one("#site-contact").text
            assert not shown.select("#site a, #site script")
            assert not [link for link in shown.select("[href]") if "alert" in str(link["href"])]
            assert not [script for script in shown.select("script") if "alert(1)" in script.text]
    finally:
        hub.kill()


def test_without_settings_nothing_is_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.partition([])
    hub.start()
    try:
        assert page(hub, "/hub/login").find(id="site") is None
        home = BeautifulSoup(Browser(hub, "alice").page("/hub/home").text, "html.parser")
        assert home.find(id="site") is None and home.find("title").text.strip() == "JupyterHub"
    finally:
        hub.kill()


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("https://help.example.org", True),
        ("http://help.example.org:8080/x", True),
        ("javascript:alert(1)", False),
        ("JavaScript://x/%0aalert(1)", False),
        (" https://help.example.org", False),
        ("https://help.example.org/a b", False),
        ("//help.example.org", False),
        ("data:text/html,x", False),
        ("https://[", False),
        ("ask Ada", False),
    ],
)
def test_only_web_addresses_become_links(text: str, link: bool) -> None:
    about = site.describe({"name": "", "help_url": text, "contact": ""})
    assert about["help_link"] == (text if link else "")


@pytest.mark.parametrize(
    ("text", "link"),
    [
        ("gpu@example.org", "mailto:gpu@example.org"),
        ("room 12, gpu@example.org", ""),
        ("gpu@example.org?bcc=evil@example.com", ""),
        ("gpu@example.org\n", ""),
        ("javascript:alert(1)", ""),
    ],
)
def test_only_an_address_of_mail_becomes_a_link(text: str, link: str) -> None:
    assert site.describe({"name": "", "help_url": "", "contact": text})["contact_link"] == link
