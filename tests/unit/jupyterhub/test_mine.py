"""The page of a user's own use: hours by day from the audit log, and nothing of others."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from bs4 import BeautifulSoup
from gpufarm_hub.sharing import history
from gpufarm_hub.sharing.history import Held
from gpufarm_hub.sharing.leases import Lease
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.web import mine
from hub_process import Browser, HubProcess, slices
from hypothesis import given
from hypothesis import strategies as st

NOW = datetime(2026, 3, 10, 12, tzinfo=UTC)


def line(user: str, begin: datetime, end: datetime, event: str = "returned", count: int = 1) -> str:
    return json.dumps(
        {
            "time": end.isoformat(),
            "event": event,
            "user": user,
            "server": "",
            "profile": "1g.10gb",
            "slices": [f"MIG-{number}" for number in range(count)],
            "since": begin.isoformat(),
        }
    )


def test_the_audit_log_tells_what_a_user_held() -> None:
    begin = NOW - timedelta(hours=3)
    lines = [
        line("alice", begin, NOW),
        line("alice", begin, NOW, "lost", 2),
        line("alice", begin, NOW, "taken"),
        line("bob", begin, NOW),
        '{"event": "returned", "user": "alice", "time": "today"}',
        '{"user": "alice", "ev',
    ]
    assert list(history.ended(lines, "alice")) == [
        Held("1g.10gb", 1, begin, NOW),
        Held("1g.10gb", 2, begin, NOW),
    ]


def test_hours_are_those_of_the_day() -> None:
    evening = datetime(2026, 3, 9, 22, tzinfo=UTC)
    days = history.by_day([Held("1g.10gb", 2, evening, NOW), Held("3g.40gb", 1, evening, evening)], 3, NOW)
    assert [(day.day.day, day.hours) for day in days] == [
        (10, {"1g.10gb": 24.0}),
        (9, {"1g.10gb": 4.0}),
        (8, {}),
    ]
    assert days[0].total == 24.0


@given(st.lists(st.tuples(st.integers(0, 3 * 1440), st.integers(0, 1440), st.integers(1, 7)), max_size=20))
def test_no_minute_is_lost_or_counted_twice(spans: list[tuple[int, int, int]]) -> None:
    held = []
    for ago, minutes, count in spans:
        begin = NOW - timedelta(minutes=ago)
        held.append(Held("1g.10gb", count, begin, min(begin + timedelta(minutes=minutes), NOW)))
    wanted = sum(one.count * (one.end - one.begin).total_seconds() / 3600 for one in held)
    assert sum(day.total for day in history.by_day(held, 5, NOW)) == pytest.approx(wanted)


def test_what_logrotate_has_moved_away_is_read_too(tmp_path: Path) -> None:
    log = tmp_path / "audit.jsonl"
    log.write_text("now\n")
    (tmp_path / "audit.jsonl.1").write_text("before\n")
    with gzip.open(tmp_path / "audit.jsonl.2.gz", "wt") as file:
        file.write("long before\n")
    old = tmp_path / "audit.jsonl.3.gz"
    old.write_bytes(b"no archive")
    os.utime(old, (0, 0))
    since = datetime.now(UTC) - timedelta(days=14)
    assert list(history.read(log, since)) == ["now\n", "before\n", "long before\n"]
    assert list(history.read(tmp_path / "none" / "audit.jsonl", since)) == []


@pytest.mark.parametrize(
    ("limit", "sentence"),
    [
        (Limit("everybody"), "You may hold 1 GPU slice at once and run 1 notebook at once."),
        (
            Limit("students", slices=0, servers=2, hours=0.5, slices_together=4),
            "You may hold no GPU slices at once, run 2 notebooks at once and let each run for 0.5 hours. "
            "All users of the limit students may hold 4 slices together.",
        ),
        (
            Limit("staff", slices=2, gpus=1, servers=2, memory=6 << 30),
            "You may hold 2 GPU slices at once (of these 1 whole GPU) "
            "and run 2 notebooks at once with 6 GiB of memory.",
        ),
    ],
)
def test_what_a_user_may_in_words(limit: Limit, sentence: str) -> None:
    assert mine.in_words(limit) == sentence


@pytest.mark.parametrize(
    ("hours", "words"), [(0.001, "1 min"), (0.5, "30 min"), (1, "1.0 h"), (26.25, "26.2 h")]
)
def test_hours_in_words(hours: float, words: str) -> None:
    assert mine.span(hours) == words


def test_before_it_is_measured_a_notebook_has_no_end() -> None:
    lease = Lease("alice/two", "unit", tuple(slices(2)), NOW.isoformat(), "everybody")
    shown = {
        "name": "two",
        "slices": "1g.10gb, 1g.10gb",
        "notebooks": 1,
        "since": "10 Mar 12:00",
        "working": None,
        "ends": "not set",
    }
    assert mine.describe(lease, {}) == shown
    measured = {"working": True, "ends": NOW.timestamp() + 60}
    assert mine.describe(lease, measured) == {**shown, "working": True, "ends": "10 Mar 12:01"}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [{"name": "people", "hours": 8}])
    hub.partition([*slices(1), *slices(1, "3g.40gb")])
    hub.start()
    yield hub
    hub.kill()


def test_the_page_tells_users_of_their_own_use_and_of_nobody_elses(process: HubProcess) -> None:
    now = datetime.now(UTC)
    with (process.folder / "audit.jsonl").open("a") as log:
        log.write(line("alice", now - timedelta(hours=90), now - timedelta(hours=84)) + "\n")
        log.write(line("bob", now - timedelta(hours=90), now - timedelta(hours=50)) + "\n")
    alice, bob, carol = (Browser(process, name) for name in ("alice", "bob", "carol"))
    assert alice.spawn(gpu="3g.40gb").messages == []
    page = alice.page("/hub/my-use").text
    assert "let each run for 8 hours" in page
    assert "3g.40gb" in page and "6.0 h in all" in page
    others = bob.page("/hub/my-use").text  # also for administrators
    assert "40.0 h in all" in others and "You hold no GPU slice." in others and "3g.40gb" not in others
    nothing = carol.page("/hub/my-use").text
    assert 'id="days-none"' in nothing and "alice" not in nothing and "bob" not in nothing
    assert 'href="/hub/my-use"' in carol.page("/hub/home").text
    alice.stop()
    stranger = carol.http.__class__(base_url=process.url, trust_env=False)
    assert stranger.get("/hub/my-use").headers["location"].startswith("/hub/login")


def test_the_page_leads_to_the_notebooks_that_run_and_stops_them(process: HubProcess) -> None:
    alice, carol = Browser(process, "alice"), Browser(process, "carol")
    assert "data-stop=" not in alice.page("/hub/my-use").text
    assert alice.spawn(gpu="1g.10gb").messages == []
    carol.spawn()
    for browser, held in ((alice, "1g.10gb"), (carol, "none")):
        [row] = BeautifulSoup(browser.page("/hub/my-use").text, "html.parser").select("#held tbody tr")
        assert held in row.text
        assert row.find("a")["href"].endswith(f"/user/{browser.name}/")
        button = row.find("button")
        assert (button["data-stop"], button["data-server"]) == (browser.name, "")
        address = f"/users/{button['data-stop']}/servers/{button['data-server']}"
        assert browser.api("DELETE", address).status_code in (202, 204)
        assert not browser.running()
    assert "You hold no GPU slice." in carol.page("/hub/my-use").text
