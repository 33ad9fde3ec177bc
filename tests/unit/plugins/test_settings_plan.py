"""Settings of GPUs: words and values, what is refused, and what a change remembers."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.plan import (
    Board,
    Entry,
    differences,
    plan,
    problems,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._settings.request import (
    SettingsError,
    parse,
    words,
)

BOARD = Board(
    uuid="GPU-1",
    name="GPU 0",
    values={"power_limit": 400_000, "gpu_clocks": "default", "compute_mode": "default", "ecc_mode": True},
    ecc_in_force=True,
    power=(100_000, 400_000, 400_000),
    clocks={"gpu_clocks": (210, 1410)},
)


@pytest.mark.parametrize(
    ("name", "given", "value", "told"),
    [
        ("power_limit", "300", 300_000, "300 W"),
        ("power_limit", "default", "default", "default"),
        ("gpu_clocks", "1200, 1410", [1200, 1410], "1200,1410 MHz"),
        ("gpu_clocks", "1200,1200", [1200, 1200], "1200,1200 MHz"),
        ("memory_clocks", "default", "default", "default"),
        ("compute_mode", "prohibited", "prohibited", "prohibited"),
        ("ecc_mode", False, False, "off"),
        ("persistence_mode", True, True, "on"),
    ],
)
def test_words_are_values_and_values_are_words(name: str, given: Any, value: Any, told: str) -> None:
    assert parse({"gpus": ["all"], name: given}) == {name: value}
    assert words(name, value) == told


@pytest.mark.parametrize("limit", ["0", "-3", "300W", "1e3", "3000000"])
def test_a_limit_is_a_number_of_watts(limit: str) -> None:
    with pytest.raises(SettingsError, match="is no number of watts"):
        parse({"power_limit": limit})


def test_the_ends_of_a_range_are_in_it() -> None:
    for limit in (100_000, 400_000):
        assert problems(BOARD, {"power_limit": limit}) == []
    for limit in (99_999, 400_001):
        assert len(problems(BOARD, {"power_limit": limit})) == 1
    assert problems(BOARD, {"gpu_clocks": [210, 1410]}) == []
    assert len(problems(BOARD, {"gpu_clocks": [209, 1410], "memory_clocks": [1, 1]})) == 2


def test_mig_mode_fixes_a_mode_but_no_limit() -> None:
    mig = replace(BOARD, mig_enabled=True)
    assert problems(mig, {"compute_mode": "default", "power_limit": 300_000}) == []
    [problem] = problems(mig, {"compute_mode": "prohibited"})
    assert problem.startswith("GPU 0 is in MIG mode")


def test_the_first_values_are_remembered_and_come_back() -> None:
    first = plan(BOARD, {"power_limit": 300_000}, Entry())
    assert first.entry == first.settled == Entry({"power_limit": 300_000}, {"power_limit": 400_000})
    limited = replace(BOARD, values=BOARD.values | {"power_limit": 300_000})
    second = plan(limited, {"power_limit": 200_000}, first.settled)
    assert second.settled.before == {"power_limit": 400_000}
    back = plan(limited, {}, first.settled)
    assert [(step.name, step.after) for step in back.steps] == [("power_limit", 400_000)]
    assert back.entry == first.settled and back.settled == Entry()


def test_clocks_are_locked_each_time_and_change_once() -> None:
    first = plan(BOARD, {"gpu_clocks": [1200, 1410]}, Entry())
    assert first.changed and first.settled.before == {"gpu_clocks": "default"}
    again = plan(BOARD, {"gpu_clocks": [1200, 1410]}, first.settled)
    assert not again.changed and [step.name for step in again.steps] == ["gpu_clocks"]
    assert plan(BOARD, {}, first.settled).changed
    assert plan(BOARD, {"gpu_clocks": "default"}, Entry()).steps == ()


def test_a_former_value_that_is_impossible_now_is_lost() -> None:
    entry = Entry({"compute_mode": "default"}, {"compute_mode": "prohibited"})
    back = plan(replace(BOARD, mig_enabled=True), {}, entry)
    assert back.lost == ("compute_mode",) and not back.steps and back.settled == Entry()


def test_ecc_waits_for_a_reset() -> None:
    assert BOARD.pending == ()
    assert replace(BOARD, ecc_in_force=False).pending == ("ecc_mode",)
    assert replace(BOARD, ecc_in_force=None).pending == ()


def test_differences_name_what_is_and_what_is_asked_for() -> None:
    wanted = {"power_limit": 300_000, "gpu_clocks": [1200, 1410], "ecc_mode": True, "accounting_mode": True}
    assert differences(BOARD, wanted) == [
        "GPU 0 has power_limit 400 W, and 300 W is asked for.",
        "GPU 0 has accounting_mode none, and on is asked for.",
    ]


def test_clocks_count_as_locked_until_they_are_unlocked_for_sure() -> None:
    locked = plan(BOARD, {"gpu_clocks": [1200, 1410]}, Entry()).settled
    unlocking = plan(BOARD, {"gpu_clocks": "default"}, locked)
    assert [(step.name, step.after) for step in unlocking.steps] == [("gpu_clocks", "default")]
    again = plan(BOARD, {"gpu_clocks": "default"}, unlocking.entry)
    assert [(step.name, step.after) for step in again.steps] == [("gpu_clocks", "default")]
    assert plan(BOARD, {"gpu_clocks": "default"}, unlocking.settled).steps == ()
