"""Signing out while a notebook runs: it is told, and the notebook can be stopped."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from bs4 import BeautifulSoup
from hub_process import Browser, HubProcess, eventually, slices


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    file = hub.folder / "settings.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "idle_gpu_minutes": 90}))
    hub.partition(slices(2))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture
def alice(process: HubProcess) -> Iterator[Browser]:
    yield Browser(process, "alice")


@pytest.fixture
def elsewhere(process: HubProcess) -> Iterator[Browser]:
    """The same user in another browser, where nobody signs out."""
    browser = Browser(process, "alice")
    yield browser
    if browser.running():
        browser.stop()


def is_signed_in(browser: Browser) -> bool:
    return browser.http.get("/hub/home", follow_redirects=False).status_code == 200


def press(browser: Browser, page: str, button: str) -> httpx.Response:
    """Send the form of the page as a browser does when this button is pressed."""
    form = BeautifulSoup(page, "html.parser").find("form", id="sign-out")
    fields = {str(field["name"]): str(field["value"]) for field in form.select("input[name]")}
    pressed = form.find(id=button)
    if pressed.has_attr("name"):
        fields[str(pressed["name"])] = str(pressed["value"])
    return browser.http.request(str(form["method"]).upper(), str(form["action"]), data=fields)


def test_without_a_notebook_a_user_is_signed_out_at_once(alice: Browser) -> None:
    assert is_signed_in(alice)
    alice.page("/hub/logout")
    assert not is_signed_in(alice)


def test_the_page_says_that_the_notebook_goes_on(alice: Browser, elsewhere: Browser) -> None:
    alice.spawn(gpu="1g.10gb")
    page = alice.page("/hub/logout").text
    told = " ".join(BeautifulSoup(page, "html.parser").find(id="goes-on").text.split())
    assert told == (
        "Your notebook goes on after you sign out and holds 1g.10gb. Programs in it keep running. "
        "A notebook is ended when nobody has used it for 90 minutes."
    )
    assert is_signed_in(alice) and alice.running()
    press(alice, page, "sign-out-only")
    assert not is_signed_in(alice)
    assert elsewhere.running()


def test_the_notebook_is_stopped_where_its_user_wants_that(alice: Browser, elsewhere: Browser) -> None:
    alice.spawn()
    press(alice, alice.page("/hub/logout").text, "sign-out-stop")
    assert not is_signed_in(alice)
    assert not elsewhere.running()
    assert "was ended" not in elsewhere.page("/hub/home").text


def test_a_user_stays_signed_in_while_the_notebook_to_stop_starts(
    process: HubProcess, alice: Browser, elsewhere: Browser
) -> None:
    slow = process.folder / "slow-start"
    slow.touch()
    with ThreadPoolExecutor() as beside:
        start = beside.submit(elsewhere.api, "POST", "/users/alice/server", json={"memory": "1G"})
        eventually(lambda: bool(alice.api("GET", "/users/alice").json()["pending"]))
        answer = press(alice, alice.page("/hub/logout").text, "sign-out-stop")
        slow.unlink()
        start.result()
    assert answer.status_code == 503 and "so you are still signed in" in answer.text
    assert is_signed_in(alice)
    eventually(alice.running)


@pytest.mark.parametrize("token", [None, "guess"])
@pytest.mark.usefixtures("elsewhere")
def test_another_site_neither_signs_out_nor_stops(alice: Browser, token: str | None) -> None:
    alice.spawn()
    data = {"stop": "yes"} | ({"_xsrf": token} if token else {})
    cross = {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    answer = alice.http.post("/hub/logout", data=data, headers=cross)
    assert answer.status_code == 403
    assert is_signed_in(alice) and alice.running()
