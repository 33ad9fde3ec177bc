"""The home page lists a user's notebooks, starts, stops and removes them. Pages call them notebooks."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Callable, Iterator

import pytest
from bs4 import BeautifulSoup, Tag
from gpufarm_hub.web import refusals
from hub_process import Browser, HubProcess, eventually, slices, users_of

JUPYTERHUBS_WORDS = re.compile(r"\b(server|spawn|scope|relaunch|log ?out|named)\w*", re.IGNORECASE)


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [{"name": "two", "users": ["twice"], "servers": 2}])
    hub.partition(slices(2))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture(scope="module")
def simple(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    """A hub where each user has one notebook."""
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


def notebooks(browser: Browser) -> dict[str, Tag]:
    """Return the entries of the home page by the words in front of their buttons."""
    found = BeautifulSoup(browser.page("/hub/home").text, "html.parser").select("#notebooks > li")
    return {" ".join(entry.div.text.split()): entry for entry in found}


def labels(entry: Tag) -> list[str]:
    return [button["aria-label"] for button in entry.select("a, button")]


def press(browser: Browser, button: Tag) -> int:
    """Send what the page's script sends when this button is pressed."""
    address = f"/users/{button['data-stop']}/servers/{button['data-server']}"
    return browser.api("DELETE", address, json={"remove": button.has_attr("data-remove")}).status_code


def test_one_notebook_is_started_opened_and_stopped(simple: HubProcess) -> None:
    with users_of(simple) as log_in:
        alice = log_in("alice")
        entry = notebooks(alice)["It is stopped."]
        assert labels(entry) == ["Start your notebook"]
        assert entry.find(id="start")["href"] == "/hub/spawn/alice"
        assert "another" not in alice.page("/hub/home").text
        alice.spawn()
        entry = notebooks(alice)["It runs."]
        assert labels(entry) == ["Open your notebook", "Stop your notebook"]
        assert entry.find(id="start")["href"] == "/user/alice"
        assert press(alice, entry.find(id="stop")) in (202, 204)
        eventually(lambda: "It is stopped." in notebooks(alice))


def test_more_notebooks_are_added_and_removed(user: Callable[[str], Browser]) -> None:
    twice = user("twice")
    page = BeautifulSoup(twice.page("/hub/home").text, "html.parser")
    assert page.find(id="another")["data-address"] == "/hub/spawn/twice/"
    for name in ("second", "third"):
        assert twice.page(f"/hub/spawn/twice/{name}").status_code == 200
    page = BeautifulSoup(twice.page("/hub/home").text, "html.parser")
    assert page.find(id="another") is None and "remove one first" in page.find(id="another-none").text
    assert [*notebooks(twice)] == [
        "default: It is stopped.",
        "second: It is stopped.",
        "third: It is stopped.",
    ]
    entry = notebooks(twice)["third: It is stopped."]
    assert labels(entry) == ["Start the notebook third", "Remove the notebook third"]
    assert entry.a["href"] == "/hub/spawn/twice/third"
    assert press(twice, entry.button) == 204
    assert "third: It is stopped." not in notebooks(twice)


def test_a_notebook_that_is_starting_can_be_stopped(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice = user("alice")
    slow = process.folder / "slow-start"
    slow.touch()
    try:
        alice.http.post(f"/hub/spawn?_xsrf={alice.xsrf}", data={"gpu": "1g.10gb"}, follow_redirects=False)
        assert "default: It is starting." in notebooks(alice)
        page = BeautifulSoup(alice.page("/hub/spawn-pending/alice").text, "html.parser")
        assert page.find("h1").text == "The notebook is starting"
        assert page.find(id="stop-starting")["data-then"] == "/hub/home"
        assert press(alice, page.find(id="stop-starting")) in (202, 204)
        eventually(lambda: "default: It is stopped." in notebooks(alice))
        assert ("returned", "alice") in process.audit()
    finally:
        slow.unlink()


@pytest.mark.parametrize(
    "path",
    [
        "/hub/home",
        "/hub/spawn",
        "/hub/token",
        "/hub/user/alice/lab",
        "/hub/spawn-pending/alice",
        "/hub/spawn/alice/Bad",
        "/hub/nowhere",
    ],
)
def test_pages_call_a_notebook_a_notebook(user: Callable[[str], Browser], path: str) -> None:
    alice = user("alice")
    alice.api("POST", "/users/alice/tokens", json={"note": "my program"})
    page = BeautifulSoup(alice.page(path).text, "html.parser")
    assert len(page.find_all("h1")) == 1
    assert JUPYTERHUBS_WORDS.findall(page.main.text) == []


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (
            "User alice already has the maximum of 2 named servers.",
            "You may have 2 notebooks",
        ),
        ("Named servers are not enabled.", "one notebook for each user"),
        ("Invalid server_name: 'Bad'", "up to 30 letters"),
    ],
)
def test_refused_names_of_notebooks(message: str, words: str) -> None:
    told = refusals.explain(400, message)
    assert words in told and not JUPYTERHUBS_WORDS.search(told)
