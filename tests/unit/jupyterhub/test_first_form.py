"""The form as a newcomer sees it: what is proposed, how long a wait may last, when a notebook ends."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.sharing import keeping, turns
from gpufarm_hub.sharing.leases import Lease
from gpufarm_hub.sharing.slices import Slice
from hub_process import Browser, HubProcess, slices

LIMITS = [
    {"name": "short", "users": ["alice", "carol", "dave"], "hours": 2},
    {"name": "long", "users": ["erin"]},
    {"name": "none", "users": ["guest"], "slices": 0},
]


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), LIMITS, cpu_choices=[2, 0.5])
    file = hub.folder / "settings.json"
    idle = {"idle_gpu_minutes": 120, "idle_minutes": 1440}
    file.write_text(json.dumps({**json.loads(file.read_text()), **idle}))
    hub.partition(slices(1))
    hub.start()
    yield hub
    hub.kill()


def form(browser: Browser) -> BeautifulSoup:
    return BeautifulSoup(browser.page("/hub/spawn").text, "html.parser")


def proposed(browser: Browser) -> str:
    options = form(browser).select("select[name=gpu] option")
    return next(str(option["value"]) for option in options if option.has_attr("selected"))


def test_a_free_slice_is_proposed_and_nobody_is_led_into_the_queue(user: Callable[[str], Browser]) -> None:
    alice, carol = user("alice"), user("carol")
    assert proposed(alice) == "1g.10gb"
    alice.spawn(gpu="1g.10gb")
    assert proposed(carol) == ""
    assert proposed(user("guest")) == ""


def test_the_form_says_when_a_notebook_ends(user: Callable[[str], Browser]) -> None:
    told = form(user("alice")).find(id="explained").text
    assert "ended after 2 hours if it holds a slice, else after 24 hours" in told
    assert "Yours is ended after 2 hours in any case." in told
    assert "in any case" not in form(user("erin")).find(id="explained").text


def test_the_form_and_the_queue_say_how_long_a_wait_is_likely_to_last(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice, carol, dave = user("alice"), user("carol"), user("dave")
    alice.spawn(gpu="1g.10gb")
    lease = json.loads((process.folder / "leases.json").read_text())["leases"]["alice/"]
    ends = datetime.fromisoformat(lease["taken"]).timestamp() + 7200
    assert f"likely free by {keeping.in_words(ends)}" in form(carol).find("select", {"name": "gpu"}).text
    carol.spawn(gpu="1g.10gb")
    assert carol.queue().json()["likely"] == ends
    dave.spawn(gpu="1g.10gb")
    assert dave.queue().json()["likely"] is None, "carol has not started, so nobody knows when she ends"
    erin = user("erin")
    assert "How long you would wait for 1g.10gb is not known" in form(erin).find(id="explained").text


def test_a_user_chooses_cores_and_time(process: HubProcess, user: Callable[[str], Browser]) -> None:
    alice, carol = user("alice"), user("carol")
    fields = alice.page("/hub/spawn").text
    assert 'name="cpus"' in fields and 'name="hours"' in fields
    assert 'name="hours"' not in user("erin").page("/hub/spawn").text, (
        "no limit, so there is nothing to choose"
    )
    [refusal] = alice.spawn(gpu="1g.10gb", hours="100").messages
    assert "The number of hours 100 is not offered; choose one of 1, 2." in refusal
    assert alice.spawn(gpu="1g.10gb", hours="1", cpus="0.5").messages == []
    lease = json.loads((process.folder / "leases.json").read_text())["leases"]["alice/"]
    ends = datetime.fromisoformat(lease["taken"]).timestamp() + 3600
    assert f"likely free by {keeping.in_words(ends)}" in form(carol).find("select", {"name": "gpu"}).text
    environment = json.loads((process.folder / "jupyterhub-notebook-alice.service.env").read_text())
    assert environment["CPU_LIMIT"] == "0.5"
    keeper = {"Authorization": f"token {process.keeper_token}"}
    told = carol.http.get("/hub/api/users/alice", headers=keeper).json()["servers"][""]
    assert told["user_options"]["hours"] == "1", "so the keeper knows"
    carol.spawn()
    environment = json.loads((process.folder / "jupyterhub-notebook-carol.service.env").read_text())
    assert environment["CPU_LIMIT"] == "2.0", "the first of the choices"


def test_a_notebook_without_a_time_limit_makes_the_wait_unknown(user: Callable[[str], Browser]) -> None:
    erin, alice = user("erin"), user("alice")
    erin.spawn(gpu="1g.10gb")
    assert "How long you would wait for 1g.10gb is not known" in form(alice).find(id="explained").text
    alice.spawn(gpu="1g.10gb")
    assert alice.queue().json()["likely"] is None
    erin.stop()
    assert alice.queue().json()["likely"] is not None, "her turn is now"


def lease(owner: str, piece: Slice, hours: float) -> Lease:
    return Lease(owner, "unit", (piece,), datetime.fromtimestamp(0, UTC).isoformat(), "all", hours)


def test_the_likely_time_counts_those_who_are_served_before() -> None:
    three = slices(3)
    held = [lease("a/", three[0], 3), lease("b/", three[1], 1), lease("c/", three[2], 2)]
    times = turns.when_free(held, three)["1g.10gb"]
    assert [turns.likely(times, count) for count in (1, 2, 3)] == [3600, 7200, 10800]
    assert turns.likely(times, 4) == float("inf")
    assert turns.likely(turns.when_free(held[:2], three)["1g.10gb"], 1) == turns.AT_ONCE
