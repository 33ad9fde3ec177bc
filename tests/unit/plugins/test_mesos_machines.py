# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Windows of maintenance: the calls that bring machines into a state."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mesos.machines import (
    Machine,
    MachineError,
    Window,
    after,
    choose,
    line,
    plan,
    read_down,
    read_machines,
    read_schedule,
    told,
    window_of,
)

ONE, TWO = Machine("gpu1", "10.0.0.1"), Machine("gpu2", "10.0.0.2")
SOON = {"start": "2030-01-01T00:00:00Z", "duration": 60.5}
NANOSECONDS = {"start": {"nanoseconds": 1893456000 * 10**9}, "duration": {"nanoseconds": 60_500_000_000}}


def entry(machine: Machine) -> dict[str, str]:
    return machine._asdict()


def test_a_schedule_is_read_as_it_was_written() -> None:
    window = window_of(SOON)
    for schedule in ({ONE: window, TWO: window}, {ONE: window, TWO: Window(0, None)}):
        ((kind, fields),) = plan({}, [], list(schedule), "scheduled", window)
        assert kind == "UPDATE_MAINTENANCE_SCHEDULE"
        assert read_schedule(fields) == dict.fromkeys(schedule, window)
        ((_kind, fields),) = plan({TWO: schedule[TWO]}, [], [ONE], "scheduled", window)
        assert read_schedule(fields) == schedule
    assert fields["schedule"]["windows"][1]["unavailability"] == NANOSECONDS


def test_machines_with_one_window_are_one_entry() -> None:
    ((_kind, fields),) = plan({}, [], [TWO, ONE], "scheduled", window_of(SOON))
    assert [one["machine_ids"] for one in fields["schedule"]["windows"]] == [[entry(ONE), entry(TWO)]]


def test_nothing_is_done_twice() -> None:
    window = window_of(SOON)
    assert plan({ONE: window}, [], [ONE], "scheduled", window) == []
    assert plan({ONE: window}, [ONE], [ONE], "down") == []
    assert plan({TWO: window}, [TWO], [ONE], "up") == []


def test_a_machine_goes_down_and_comes_up() -> None:
    window = window_of(SOON)
    both = {ONE: window, TWO: window}
    assert plan(both, [TWO], [ONE, TWO], "down") == [("START_MAINTENANCE", {"machines": [entry(ONE)]})]
    # stopping takes one out of the schedule, and the other has to be taken out
    assert plan(both, [ONE], [ONE, TWO], "up") == [
        ("STOP_MAINTENANCE", {"machines": [entry(ONE)]}),
        ("UPDATE_MAINTENANCE_SCHEDULE", {"schedule": {"windows": []}}),
    ]


def test_what_mesos_refuses_is_told_before() -> None:
    with pytest.raises(MachineError, match="gpu1 has no window"):
        plan({}, [], [ONE], "down")
    with pytest.raises(MachineError, match="gpu1 is down already"):
        plan({ONE: window_of(SOON)}, [ONE], [ONE], "scheduled", window_of(SOON))


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (None, "needs a window"),
        ({"start": "2030-01-01 00:00", "duration": None}, "give the time in UTC"),
        ({"start": "2030-01-01T00:00:00Z", "duration": -1}, "give more than 0"),
    ],
)
def test_a_window_that_is_none_is_refused(wanted: dict[str, Any] | None, words: str) -> None:
    with pytest.raises(MachineError, match=words):
        window_of(wanted)


def test_a_machine_is_known_by_its_agents_and_by_the_schedule() -> None:
    info = {"id": {"value": "S0"}, "hostname": "gpu1", "port": 5051}
    known = read_machines({"agents": [{"agent_info": info, "pid": "slave(1)@10.0.0.1:5051"}]})
    assert choose(known, [TWO], ["S0", "gpu1:5051", "gpu2", "gpu1"]) == [ONE, TWO]
    with pytest.raises(MachineError, match=r"no machine gpu3, .* There are: gpu1, gpu2\."):
        choose(known, [TWO], ["gpu3"])
    info = {**info, "hostname": "gpu6"}
    six = read_machines({"agents": [{"agent_info": info, "pid": "slave(1)@[fd00::6]:5051"}]})
    assert six["gpu6"] == Machine("gpu6", "fd00::6")


def test_it_tells_what_is_and_what_will_be() -> None:
    window = window_of(SOON)
    down = read_down({"status": {"down_machines": [entry(TWO)], "draining_machines": [{"id": entry(ONE)}]}})
    now = told({ONE: window, TWO: window}, down, [ONE, TWO])
    assert [one["state"] for one in now] == ["scheduled", "down"]
    assert now[0] == {**entry(ONE), "state": "scheduled", **SOON}
    assert line(now[0]) == "gpu1: scheduled, from 2030-01-01T00:00:00Z for 60.5 s\n"
    assert after(now, "down", None)[0] == {**now[0], "state": "down"}
    assert line(after(now, "up", None)[1]) == "gpu2: up\n"
