"""Users whose notebook was ended learn why, on the home page and at the form, and what to do next."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from gpufarm_hub.sharing import keeping
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.store import JsonStore
from gpufarm_hub.web import endings
from hub_process import Browser, HubProcess, eventually, slices

SHARED = {"venv": "/opt/shared", "use_gpu": False, "profile": "", "image": "", "groups": []}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    limits = [{"name": "two", "users": ["twice"], "servers": 2}]
    hub = HubProcess(tmp_path_factory.mktemp("hub"), limits, SHARED)
    hub.partition(slices(2))
    hub.start()
    yield hub
    hub.kill()


def shown(browser: Browser, path: str) -> str:
    return unescape(browser.page(path).text)


def test_a_user_whose_notebook_an_administrator_ended_reads_who_it_was(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice, bob = user("alice"), user("bob")
    alice.spawn(gpu="1g.10gb")
    assert bob.api("DELETE", "/users/alice/server").status_code in (202, 204)
    for path in ("/hub/home", "/hub/spawn"):
        page = shown(alice, path)
        assert "Your notebook was ended at 20" in page
        assert "UTC: bob stopped it; ask bob why before you start it again (your files are kept)." in page
        assert "was ended" not in shown(bob, path)
    assert process.audit()[-2:] == [("ended", "alice"), ("returned", "alice")]
    alice.spawn()
    assert "was ended" not in shown(alice, "/hub/home")


def test_users_who_stop_their_own_notebook_are_told_nothing(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice = user("alice")
    alice.spawn()
    warned = "Your notebook ends at noon. Save your work."
    Notices(process.folder / "notices.json").tell("alice/", warned)
    assert warned in shown(alice, "/hub/home")
    alice.stop()
    assert warned not in shown(alice, "/hub/home")
    assert "was ended" not in shown(alice, "/hub/home")


def test_users_of_the_collaborative_jupyterlab_read_who_stopped_it(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice, carol = user("alice"), user("carol")
    alice.api("POST", "/users/collaborative/server", json={"memory": "1G"})
    carol.api("DELETE", "/users/collaborative/server")
    for path in ("/hub/home", "/hub/spawn/collaborative"):
        assert "carol stopped it" in shown(alice, path)
    assert "carol stopped it" not in shown(alice, "/hub/spawn")


def test_a_notice_about_a_named_server_is_shown_until_the_server_is_removed(
    user: Callable[[str], Browser],
) -> None:
    twice, bob = user("twice"), user("bob")
    second = "/users/twice/servers/second"
    assert twice.api("POST", second).status_code in (201, 202)
    bob.api("DELETE", second)
    eventually(lambda: not twice.running())
    assert "bob stopped it" in shown(twice, "/hub/home")
    assert twice.api("DELETE", second, json={"remove": True}).status_code == 204
    assert "bob stopped it" not in shown(twice, "/hub/home")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(
        Leases(tmp_path / "leases.json"),
        Notices(tmp_path / "notices.json"),
        JsonStore(tmp_path / "use.json"),
        tmp_path / "audit.jsonl",
        [],
    )


def asker(name: str, kind: str = "user") -> Any:
    return SimpleNamespace(name=name, kind=kind)


@pytest.mark.parametrize(
    ("who", "sentence"),
    [
        (None, "earlier"),
        (asker("gpufarm-keeper", "service"), "earlier"),  # tells itself
        (asker("cull", "service"), "the service cull stopped it"),
        (asker("alice", "service"), "the service alice stopped it"),
        (asker("bob"), "bob stopped it"),
        (asker("gpufarm-keeper"), "gpufarm-keeper stopped it"),  # a user of that name
    ],
)
def test_the_reason_is_who_asked_for_the_stop(desk: Desk, who: Any, sentence: str) -> None:
    desk.notices.tell("alice/two", "earlier")
    endings.remember(desk, "alice/two", who)
    assert sentence in desk.notices.of("alice")["two"]


def test_a_stop_of_ones_own_leaves_nothing_to_tell(desk: Desk) -> None:
    desk.notices.tell("alice/", "earlier")
    endings.remember(desk, "alice/", asker("alice"))
    assert desk.notices.of("alice") == {}


def test_the_sentence_says_when_why_and_what_to_do_next() -> None:
    assert keeping.ended("nobody has used it for 2 hours", 0) == (
        "Your notebook was ended at 1970-01-01 00:00 UTC: nobody has used it for 2 hours; "
        "start it again when you need it (your files are kept)."
    )
