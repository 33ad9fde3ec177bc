"""Notebooks of every engine at once: which run, and how they are ended."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import sys
from pathlib import Path

import pytest
from gpufarm_hub.spawning import containers, engines, notebooks, units
from gpufarm_hub.spawning.engine import EngineError

# `systemctl list-units --plain --no-legend --full` of Debian 12.
LISTED = """\
jupyterhub-notebook-alice.service        loaded active       running /bin/bash -c exec jupyterhub-singleuser
jupyterhub-notebook-bob:second.service   loaded deactivating stop    /bin/bash -c exec jupyterhub-singleuser
jupyterhub-notebook-carol.service        loaded failed       failed  /bin/bash -c exec jupyterhub-singleuser
"""


@pytest.fixture
def stopped(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Alice has a notebook in a container, and one of the same name as a unit."""
    calls: list[str] = []
    monkeypatch.setattr(engines, "IN_USE", tmp_path)
    (tmp_path / "docker").touch()
    monkeypatch.setattr(units, "running", lambda: [units.name_of("alice/"), units.name_of("bob/second")])
    monkeypatch.setattr(containers, "running", lambda: [containers.name_of("alice/")])
    monkeypatch.setattr(units, "stop", calls.append)
    monkeypatch.setattr(containers, "stop", calls.append)
    return calls


ALICE = ["jupyterhub-notebook-alice.service", "docker:jupyterhub-notebook-alice"]
ALL = [ALICE[0], "jupyterhub-notebook-bob:second.service", ALICE[1]]


def test_units_that_are_not_over_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: LISTED.strip())
    assert units.running() == [units.name_of("alice/"), units.name_of("bob/second")]
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: "")
    assert units.running() == []


def test_docker_is_asked_only_where_notebooks_may_be_in_containers(stopped: list[str]) -> None:
    assert notebooks.running() == ALL
    (engines.IN_USE / "docker").unlink()
    assert notebooks.running() == ALL[:2]


@pytest.mark.parametrize(
    ("arguments", "ended"),
    [([], ALL), (["alice"], ALICE), (["nobody"], []), (["--engine", "docker"], ALICE[1:])],
)
def test_all_are_ended_or_a_users_default_one(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stopped: list[str],
    arguments: list[str],
    ended: list[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["notebooks", "stop", *arguments])
    notebooks.main()
    assert stopped == ended
    assert capsys.readouterr().out.split() == ended


def test_an_engine_that_does_not_answer_is_no_empty_list(
    monkeypatch: pytest.MonkeyPatch, stopped: list[str]
) -> None:
    def hung() -> list[str]:
        raise EngineError("Docker, looking for notebooks: hung")

    monkeypatch.setattr(containers, "running", hung)
    for action, done in (("list", "listed"), ("stop", "stopped")):
        monkeypatch.setattr(sys, "argv", ["notebooks", action])
        with pytest.raises(SystemExit, match=f"cannot be {done}: Docker, looking for notebooks: hung"):
            notebooks.main()
    assert stopped == []


@pytest.mark.parametrize(
    ("told", "over"),
    [
        ("ActiveState=inactive\nJob=", True),
        ("ActiveState=inactive\nJob=0", True),
        ("Job=0\nActiveState=failed", True),
        ("ActiveState=inactive\nJob=16", False),  # it waits for the walls
        ("ActiveState=deactivating\nJob=17", False),
        ("ActiveState=active\nJob=", False),
    ],
)
def test_a_unit_that_is_about_to_start_is_not_over(
    monkeypatch: pytest.MonkeyPatch, told: str, over: bool
) -> None:
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: told)
    assert units.is_over("a.service") == over
