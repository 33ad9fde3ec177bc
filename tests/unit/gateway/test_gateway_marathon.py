"""Apps and events are read from whichever server has them; the password goes nowhere else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io import command
from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.io.marathon import (
    Account,
    Marathon,
    MarathonError,
    lines,
    names,
)
from hypothesis import given
from hypothesis import strategies as st
from small_marathon import SmallMarathon, running

from lab.patience import PATIENCE

NOWHERE = "http://127.0.0.1:9"


@pytest.fixture
def other() -> Iterator[SmallMarathon]:
    with running() as server:
        yield server


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.01)


def test_apps_come_from_the_first_server_that_has_them(marathon: SmallMarathon) -> None:
    marathon.apps, marathon.account = [{"id": "/a"}], "gate:s3cret"
    client = Marathon([NOWHERE, marathon.url], Account("gate", "s3cret"))
    assert client.apps() == [{"id": "/a"}]
    with pytest.raises(
        MarathonError, match=r"cannot be asked .*refused.*; http.* answers with HTTP status 401"
    ):
        Marathon([NOWHERE, marathon.url], Account("gate", "wrong")).apps()


@pytest.mark.parametrize("answer", [None, {}, ["x"], "apps"])
def test_an_answer_without_apps_is_no_answer(marathon: SmallMarathon, answer: object) -> None:
    marathon.apps = answer
    with pytest.raises(MarathonError, match="answers without apps"):
        Marathon([marathon.url], Account()).apps()


def test_a_redirect_leads_to_servers_that_were_named_only(
    marathon: SmallMarathon, other: SmallMarathon
) -> None:
    marathon.leader, other.apps, other.account = other.url, [{"id": "/a"}], "gate:s3cret"
    account = Account("gate", "s3cret")
    assert Marathon([marathon.url, other.url], account).apps() == [{"id": "/a"}]
    other.seen.clear()
    with pytest.raises(MarathonError, match="which is not among the URLs of Marathon"):
        Marathon([marathon.url], account).apps()
    assert other.seen == []


def test_events_tell_that_something_may_have_changed(marathon: SmallMarathon) -> None:
    client = Marathon([marathon.url], Account())
    events = client.events(marathon.url, 120)
    assert next(events) == ""
    marathon.tell("status_update_event", '{"taskStatus":"TASK_KILLING"}')
    assert next(events) == "status_update_event"
    marathon.hang_up()
    with pytest.raises(MarathonError, match="ended"):
        next(events)


def test_what_is_no_stream_of_events_is_refused(marathon: SmallMarathon) -> None:
    marathon.status = 503
    with pytest.raises(MarathonError, match="HTTP status 503"):
        next(Marathon([marathon.url], Account()).events(marathon.url, 120))


def test_silence_is_given_up(marathon: SmallMarathon) -> None:
    events = Marathon([marathon.url], Account()).events(marathon.url, 0.2)
    assert next(events) == ""
    with pytest.raises(MarathonError, match="broke off"):
        next(events)


def test_the_follower_goes_on_with_another_server(
    marathon: SmallMarathon, other: SmallMarathon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "SHORTEST", 0.01)
    dirty, ended = threading.Event(), threading.Event()
    client = Marathon([marathon.url, other.url], Account())
    thread = threading.Thread(target=command.follow, args=(client, dirty, ended), daemon=True)
    thread.start()
    until(dirty.is_set)
    dirty.clear()
    marathon.status = 503
    marathon.hang_up()
    until(lambda: bool(other.listeners))
    until(dirty.is_set)
    dirty.clear()
    other.tell("instance_changed_event")
    until(dirty.is_set)
    ended.set()
    other.tell("any")
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_lines_and_names_of_a_stream() -> None:
    stream = io.BytesIO(
        b": hello\n\nevent: one\ndata: {}\ndata: {}\n\nevent: no_data\n\n\ndata:x\r\n\r\n"
        b"event: cut\ndata: x\n"
    )
    assert list(names(lines(stream))) == ["one", "message"]


@given(st.binary(max_size=200))
def test_any_bytes_are_read(stream: bytes) -> None:
    assert all(isinstance(name, str) for name in names(lines(io.BytesIO(stream))))
