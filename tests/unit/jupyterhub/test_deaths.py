"""Users whose notebook died by itself read why on the home page, and what to do next."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from html import unescape

import pytest
from gpufarm_hub.spawning import deaths, units
from gpufarm_hub.spawning.engine import Death
from hub_process import Browser, HubProcess, slices, users_of


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubProcess]:
    hub = HubProcess(tmp_path_factory.mktemp("hub"), [])
    hub.partition(slices(2))
    hub.start()
    yield hub
    hub.kill()


@pytest.fixture
def user(process: HubProcess) -> Iterator[Callable[[str], Browser]]:
    with users_of(process) as log_in:
        yield log_in
    for name in ("death.json", "boot"):
        (process.folder / name).unlink(missing_ok=True)


def home(browser: Browser) -> str:
    return unescape(browser.page("/hub/home").text)


def test_a_notebook_that_died_leaves_a_reason_until_it_starts_again(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice = user("alice")
    alice.spawn(memory="2G", gpu="1g.10gb")
    (process.folder / "death.json").write_text(json.dumps({"cause": "memory"}))
    page = home(alice)
    assert "UTC: it needed more than its 2 GiB of memory; choose more memory when you start it again" in page
    assert "It is stopped." in page
    assert process.audit()[-1] == ("returned", "alice")
    (process.folder / "death.json").unlink()
    alice.spawn()
    assert "was ended" not in home(alice)


def test_a_notebook_that_was_asked_to_stop_leaves_none(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice = user("alice")
    alice.spawn()
    alice.stop()
    assert "was ended" not in home(alice)


def test_after_a_restart_of_the_machine_users_read_that(
    process: HubProcess, user: Callable[[str], Browser]
) -> None:
    alice = user("alice")
    alice.spawn()
    process.kill()  # and with it, in this test, the notebooks
    (process.folder / "boot").write_text("second")
    process.start()
    assert "UTC: the machine was restarted; start it again (your files are kept)." in home(alice)


@pytest.mark.parametrize(
    ("death", "words"),
    [
        (Death("memory"), "it needed more than its 800 MiB of memory; choose more memory"),
        (Death("signal", 9), "it was killed, most likely because it needed more than its 800 MiB of memory;"),
        (Death("signal", 11), "JupyterLab crashed (signal 11); start it again, and tell the administrator"),
        (Death("status", 3), "JupyterLab ended with status 3; start it again, and tell the administrator"),
        (Death("restart"), "the machine was restarted; start it again"),
    ],
)
def test_the_reason_says_what_to_do(death: Death, words: str) -> None:
    assert words in deaths.explain(death, 800 << 20)


@pytest.mark.parametrize(
    ("state", "result", "code", "status", "death"),
    [
        ("failed", "oom-kill", "2", "9", Death("memory")),
        ("failed", "signal", "2", "9", Death("signal", 9)),
        ("failed", "core-dump", "3", "11", Death("signal", 11)),
        ("failed", "exit-code", "1", "3", Death("status", 3)),
        ("failed", "timeout", "2", "9", None),
        ("inactive", "success", "0", "0", None),  # also of a unit that is not there
    ],
)
def test_how_a_unit_died(
    monkeypatch: pytest.MonkeyPatch, state: str, result: str, code: str, status: str, death: Death | None
) -> None:
    """As systemctl(1), show, of Debian 12 says it."""
    said = f"Result={result}\nExecMainCode={code}\nExecMainStatus={status}\nActiveState={state}"
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: said)
    assert units.death("a.service") == death


def test_a_unit_that_failed_is_forgotten_when_it_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else systemd would start no other one of its name."""
    asked: list[tuple[str, ...]] = []

    def systemctl(*arguments: str) -> str:
        asked.append(arguments)
        return "failed" if "--value" in arguments else "ActiveState=failed\nJob="

    monkeypatch.setattr(units, "_systemctl", systemctl)
    units.stop("a.service")
    assert asked[-1] == ("reset-failed", "a.service")
    assert not [arguments for arguments in asked if arguments[0] == "stop"]
