"""Notebooks that nobody uses are ended, slices first; nobody's without the full time of warning."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from email.message import Message
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request

import pynvml
import pytest
from gpufarm_hub.sharing import gpu_use, keeper, keeping, recovery, strays
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.devices import DeviceError
from gpufarm_hub.sharing.gpu_use import GpuUse
from gpufarm_hub.sharing.keeping import Notebook, Rules, check
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.sharing.slices import GpuQueryError, Gpus, Slice
from gpufarm_hub.sharing.strays import Stray
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.spawning import units
from gpufarm_hub.store import JsonStore
from hypothesis import given
from hypothesis import strategies as st

RULES = Rules(idle=1000, idle_gpu=100, warning=10)
PIECE = Slice("MIG-7", "1g.10gb", 0, 7, 0, 10 << 30)


def notebook(used: float = 0, hours: float = 0, gpu: bool = True, warned: float | None = None) -> Notebook:
    return Notebook("alice/", 0, used, gpu, hours, "students", warned)


@pytest.mark.parametrize(
    ("processes", "utilisation", "cores", "working"),
    [
        (None, None, 0.01, False),
        (None, None, 0.9, True),
        (0, None, 0.9, False),  # computes, but not on its slice
        (1, None, 0.01, False),  # a kernel that has loaded a library and waits
        (1, None, 0.9, True),
        (1, 0, 0.9, False),
        (1, 30, 0.0, True),
        (None, None, None, True),  # what is not known is no reason to end anything
        (1, None, None, True),
        (0, None, None, False),
    ],
)
def test_what_counts_as_working(
    processes: int | None, utilisation: int | None, cores: float | None, working: bool
) -> None:
    assert keeping.is_working(processes, utilisation, cores) is working


def test_notebooks_with_slices_end_first() -> None:
    assert check(notebook(), RULES, 50).ends == 100
    assert check(notebook(gpu=False), RULES, 50).ends == 1000
    assert check(notebook(used=70), RULES, 100).ends == 170


def test_warned_and_then_ended() -> None:
    assert not check(notebook(), RULES, 89).warn
    first = check(notebook(), RULES, 90)
    assert (first.warn, first.over) == (True, False)
    assert keeping.warning(first) == (
        "Your notebook ends at 1970-01-01 00:01 UTC: nobody has used it for 2 minutes. Save your work."
    )
    assert not check(notebook(warned=90), RULES, 99).over
    assert check(notebook(warned=90), RULES, 100).over


def test_a_hub_that_was_down_warns_first() -> None:
    late = check(notebook(), RULES, 5000)
    assert (late.ends, late.warn, late.over) == (5010, True, False)


def test_the_time_is_over_although_it_is_used() -> None:
    verdict = check(notebook(used=3600, hours=1, warned=3500), RULES, 3600)
    assert verdict.over and verdict.why == "it may run for 1 hour (limit students)"


def test_nothing_ends_where_nothing_limits_it() -> None:
    assert check(notebook(), Rules(0, 0, 10), 10**9).ends is None


WHOLE = st.integers(0, 10**4)


@given(
    st.builds(notebook, WHOLE, hours=st.integers(0, 3), gpu=st.booleans(), warned=st.none() | WHOLE),
    st.builds(Rules, WHOLE, WHOLE, WHOLE),
    WHOLE,
)
def test_nobody_ends_without_the_full_warning(entry: Notebook, rules: Rules, now: float) -> None:
    verdict = check(entry, rules, now)
    if verdict.over:
        assert verdict.warn
        assert rules.warning == 0 or (entry.warned is not None and now >= entry.warned + rules.warning)


@dataclass
class FakeHub:
    """One notebook of alice."""

    last_activity: float = 0.0
    started: float = 0.0
    groups: list[str] = field(default_factory=list)
    hours: float = 0.0
    stopped: list[str] = field(default_factory=list)

    def servers(self) -> Iterator[keeper.Server]:
        if not self.stopped:
            yield keeper.Server("alice/", self.groups, True, self.started, self.last_activity, self.hours)

    def stop(self, owner: str) -> None:
        self.stopped.append(owner)


@dataclass
class Machine:
    """Measurements of the keeper."""

    cpu: float = 0.0
    use: GpuUse = field(default_factory=lambda: GpuUse(frozenset(), None))
    failure: Exception | None = None
    intruders: frozenset[int] = frozenset()
    processes: dict[str, frozenset[int]] = field(default_factory=dict)

    def end(self, pieces: list[Slice], ours: Callable[[], frozenset[int]]) -> list[Stray]:
        if -1 in self.intruders:
            raise DeviceError("process 9 (sleep) does not end")
        return [Stray("mallory", pid, "sleep") for pid in self.intruders - ours()]

    def read_gpus(self) -> Gpus:
        if self.failure:
            raise self.failure
        return Gpus([PIECE], frozenset({PIECE.gpu}))


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    machine = Machine()
    monkeypatch.setattr(recovery, "read_gpus", machine.read_gpus)
    monkeypatch.setattr(keeper, "measure", lambda uuids: dict.fromkeys(uuids, machine.use))
    monkeypatch.setattr(strays, "end", machine.end)
    monkeypatch.setattr(units, "reach", dict)
    monkeypatch.setattr(units, "processes", lambda unit: machine.processes.get(unit, frozenset({7})))
    monkeypatch.setattr(units, "cpu_seconds", lambda unit: machine.cpu)
    return machine


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    leases = Leases(tmp_path / "leases.json")
    limits = [Limit("students", groups=frozenset({"students"}), hours=0.01)]
    desk = Desk(
        leases,
        Notices(tmp_path / "notices.json"),
        JsonStore(tmp_path / "use.json"),
        tmp_path / "audit.jsonl",
        limits,
    )
    desk.take(SliceRequest("alice/", "1g.10gb", 1, limits[0], {}), "unit", [PIECE])
    return desk


def events(desk: Desk) -> list[str]:
    return [json.loads(line)["event"] for line in desk.audit_file.read_text().splitlines()]


def test_programs_of_others_on_a_slice_are_ended(desk: Desk, machine: Machine) -> None:
    machine.intruders = frozenset({7, 8})
    keeper.look(desk, FakeHub(), RULES, True, 30)  # type: ignore[arg-type]
    assert events(desk) == ["taken", "stray"]
    machine.intruders = frozenset({-1})
    keeper.look(desk, FakeHub(), RULES, True, 60)  # type: ignore[arg-type]
    assert desk.use.read()["measured"] == 60


def test_an_idle_notebook_is_warned_and_ended(desk: Desk, machine: Machine) -> None:
    hub = FakeHub()
    for now in (30, 60, 90):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert "ends at" in desk.notices.of("alice")[""]
    assert desk.use.read()["notebooks"]["alice/"]["ends"] == 100
    keeper.look(desk, hub, RULES, True, 120)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"]
    assert "was ended at" in desk.notices.of("alice")[""]
    assert events(desk) == ["taken", "warned", "ended"]
    assert desk.use.read()["notebooks"] == {}


def test_a_notebook_that_cannot_be_stopped_keeps_no_other_from_its_end(desk: Desk, machine: Machine) -> None:
    class Stuck(FakeHub):
        def servers(self) -> Iterator[keeper.Server]:
            yield keeper.Server("alice/", [], True, 0, 0)
            if "bob/" not in self.stopped:
                yield keeper.Server("bob/", [], True, 0, 0)

        def stop(self, owner: str) -> None:
            super().stop(owner)
            if owner == "alice/":
                raise HTTPError("http://hub", 500, "Internal Server Error", Message(), None)

    hub = Stuck()
    for now in (30, 90, 120, 150):
        keeper.look(desk, hub, replace(RULES, idle=110), True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/", "alice/", "bob/"]
    content = desk.use.read()
    assert content["measured"] == 150 and "alice/" in content["notebooks"]


def test_who_works_again_is_not_ended(desk: Desk, machine: Machine) -> None:
    hub = FakeHub()
    for now in (30, 90):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    hub.last_activity = 95
    keeper.look(desk, hub, RULES, True, 120)  # type: ignore[arg-type]
    assert desk.notices.of("alice") == {} and not hub.stopped


def test_a_computation_without_a_browser_is_not_ended(desk: Desk, machine: Machine) -> None:
    hub = FakeHub()
    machine.use = GpuUse(frozenset({7}), None)
    for now in range(30, 1000, 30):
        machine.cpu += 29
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert not hub.stopped and desk.notices.of("alice") == {}
    entry = desk.use.read()["notebooks"]["alice/"]
    assert (entry["working"], entry["processes"]) == (True, 1)


def test_of_a_shared_slice_everybody_counts_their_own_programs(desk: Desk, machine: Machine) -> None:
    """Those of others neither keep a notebook from its end nor are ended."""
    desk.give_back("alice/")
    for owner in ("alice/", "bob/"):
        request = SliceRequest(owner, "1g.10gb", 1, desk.limits[0], {}, notebooks=2)
        desk.take(request, owner, [PIECE])
    machine.processes = {"alice/": frozenset({7}), "bob/": frozenset({8})}
    machine.use = GpuUse(frozenset({8}), 100)
    machine.intruders = frozenset({7, 8, 9})
    hub = FakeHub()
    for now in range(30, 150, 30):
        machine.cpu += 29
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"], "only bob computes"
    lines = [json.loads(line) for line in desk.audit_file.read_text().splitlines()]
    assert {line["pid"] for line in lines if line["event"] == "stray"} == {9}


def test_a_notebook_of_the_engine_of_before_is_still_measured(desk: Desk, machine: Machine) -> None:
    hub = FakeHub()
    machine.use = GpuUse(frozenset({7}), None)  # a kernel that has loaded a library and waits
    for now in range(30, 150, 30):
        keeper.look(replace(desk, spawner="docker"), hub, RULES, True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"]


def test_the_lifetime_of_a_limit(desk: Desk, machine: Machine) -> None:
    hub = FakeHub(groups=["students"], last_activity=30)
    for now in (30, 41):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"]
    assert "it may run for 1 minute (limit students)" in desk.notices.of("alice")[""]


def test_a_user_chooses_less_than_the_limit(desk: Desk, machine: Machine) -> None:
    hub = FakeHub(groups=["students"], last_activity=9, hours=0.005)
    for now in (9, 20):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"]
    assert "you chose 0 hours; start it again when you need it" in desk.notices.of("alice")[""]


def test_a_limit_that_became_shorter_than_the_choice_counts(desk: Desk, machine: Machine) -> None:
    hub = FakeHub(groups=["students"], last_activity=30, hours=0.02)
    for now in (30, 41):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"] and "(limit students)" in desk.notices.of("alice")[""]


@pytest.mark.parametrize("jump", [86400.0, -86400.0])
def test_setting_the_time_ends_nobody(desk: Desk, machine: Machine, jump: float) -> None:
    start = 1_000_000.0
    hub = FakeHub(last_activity=start, started=start)
    for now in (start + 30, start + 90):
        keeper.look(desk, hub, RULES, True, now)  # type: ignore[arg-type]
    assert "ends at" in desk.notices.of("alice")[""]
    keeper.look(desk, hub, RULES, True, start + 95 + jump, jump)  # type: ignore[arg-type]
    assert not hub.stopped and desk.notices.of("alice") == {}
    # From now on idle time counts as ever.
    for later in (160, 190, 230):
        keeper.look(desk, hub, RULES, True, start + jump + later)  # type: ignore[arg-type]
    assert hub.stopped == ["alice/"]


@pytest.mark.parametrize("jump", [86400.0, -86400.0])
def test_setting_the_time_changes_no_lifetime(desk: Desk, machine: Machine, jump: float) -> None:
    start = 1_000_000.0
    hub = FakeHub(groups=["students"], last_activity=start, started=start)
    keeper.look(desk, hub, RULES, True, start + 5)  # type: ignore[arg-type]
    keeper.look(desk, hub, RULES, True, start + 10 + jump, jump)  # type: ignore[arg-type]
    entry = desk.use.read()["notebooks"]["alice/"]
    assert not hub.stopped and entry["ends"] == start + 36 + jump


def test_what_a_notebook_left_is_taken_back(
    desk: Desk, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The hub could not, as its disk was full or systemd did not answer."""
    over: list[str] = []
    monkeypatch.setattr(units, "is_over", lambda unit: unit in over)
    old = Leases(desk.leases._store.path, clock=lambda: time.time() - 60)
    old.take(SliceRequest("alice/", "1g.10gb", 1, Limit("x"), {}), "unit", [PIECE])
    hub = FakeHub(stopped=["alice/"])
    keeper.look(desk, hub, RULES, True, 30)  # type: ignore[arg-type]
    assert desk.leases.all(), "it still runs, though the hub does not know it"
    over.append("unit")
    keeper.look(desk, FakeHub(), RULES, True, 60)  # type: ignore[arg-type]
    assert desk.leases.all(), "the hub starts or stops it"
    desk.leases.take(SliceRequest("alice/", "1g.10gb", 1, Limit("x"), {}), "unit", [PIECE])
    keeper.look(desk, hub, RULES, True, 90)  # type: ignore[arg-type]
    assert desk.leases.all(), "it has been taken just now"
    old.take(SliceRequest("alice/", "1g.10gb", 1, Limit("x"), {}), "unit", [PIECE])
    keeper.look(desk, hub, RULES, True, 120)  # type: ignore[arg-type]
    assert not desk.leases.all() and events(desk)[-1] == "returned"


def test_while_the_gpus_do_not_answer_nothing_is_ended(desk: Desk, machine: Machine) -> None:
    hub = FakeHub()
    machine.failure = GpuQueryError("gone")
    with pytest.raises(GpuQueryError):
        keeper.look(desk, hub, RULES, True, 5000)  # type: ignore[arg-type]
    assert not hub.stopped and desk.use.read() == {}


def test_the_hubs_answer_is_read_page_by_page(monkeypatch: pytest.MonkeyPatch) -> None:
    server = {
        "ready": True,
        "started": "2026-01-01T00:00:00.5Z",
        "last_activity": "2026-01-01T01:00:00Z",
        "user_options": {},
    }
    pages = [
        [
            {
                "name": "a",
                "groups": ["g"],
                "servers": {
                    "": {**server, "user_options": {"hours": "2", "gpu": "1g"}},
                    "x": {**server, "ready": False},
                },
            }
        ],
        [{"name": "b", "groups": [], "servers": {"second": {**server, "last_activity": None}}}],
        [],
    ]
    asked: list[str] = []

    @contextmanager
    def answer(request: Request, timeout: float) -> Iterator[Any]:
        assert request.get_header("Authorization") == "token secret"
        asked.append(request.full_url)
        yield io.BytesIO(json.dumps(pages[len(asked) - 1]).encode())

    monkeypatch.setattr(keeper, "urlopen", answer)
    found = list(keeper.Hub("http://hub/api", "secret").servers())
    assert [entry.owner for entry in found if not entry.ready] == ["a/x"]
    assert [(entry.owner, entry.last_activity - entry.started) for entry in found if entry.ready] == [
        ("a/", 3599.5),
        ("b/second", 0),
    ]
    assert [entry.hours for entry in found if entry.owner in ("a/", "b/second")] == [2, 0]
    assert [entry.gpu for entry in found if entry.owner in ("a/", "b/second")] == [True, False]
    assert [url.partition("offset=")[2] for url in asked] == ["0", "1", "2"]


@pytest.mark.parametrize(
    ("said", "seconds"), [("1500000000", 1.5), ("[not set]", None), (str(2**64 - 1), None), ("", None)]
)
def test_cpu_time(monkeypatch: pytest.MonkeyPatch, said: str, seconds: float | None) -> None:
    monkeypatch.setattr(units, "_systemctl", lambda *arguments: said)
    assert units.cpu_seconds("a.service") == seconds


class FakeNvml:
    """A MIG device, a whole GPU, and nothing else."""

    NVMLError = pynvml.NVMLError
    NVMLError_NotFound = pynvml.NVMLError_NotFound
    NVMLError_NotSupported = pynvml.NVMLError_NotSupported
    NVMLError_FunctionNotFound = pynvml.NVMLError_FunctionNotFound

    def nvmlInit(self) -> None: ...

    def nvmlShutdown(self) -> None: ...

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        if uuid == "gone":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_FOUND)
        if uuid == "lost":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)
        return uuid

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: str) -> list[Any]:
        return [SimpleNamespace(pid=pid) for pid in (1, 2)]

    def nvmlDeviceGetUtilizationRates(self, device: str) -> Any:
        if device == "MIG":
            raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
        return type("Rates", (), {"gpu": 42})


def test_the_use_of_slices() -> None:
    found = gpu_use.measure(["MIG", "GPU", "gone"], FakeNvml())
    assert found == {"MIG": GpuUse(frozenset({1, 2}), None), "GPU": GpuUse(frozenset({1, 2}), 42)}
    with pytest.raises(GpuQueryError, match="the NVIDIA driver does not answer"):
        gpu_use.measure(["lost"], FakeNvml())
    assert gpu_use.measure(["lost", "GPU"], FakeNvml()) == {"GPU": GpuUse(frozenset({1, 2}), 42)}
    assert gpu_use.processes(["MIG", "gone"], FakeNvml()) == {"MIG": {1, 2}}


class OldNvml(FakeNvml):
    """The binding with a driver before R510."""

    nvmlDeviceGetComputeRunningProcesses_v2 = FakeNvml.nvmlDeviceGetComputeRunningProcesses_v3

    def nvmlDeviceGetComputeRunningProcesses_v3(self, device: str) -> list[SimpleNamespace]:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)


def test_programs_are_listed_with_drivers_before_r510() -> None:
    assert gpu_use.measure(["GPU"], OldNvml()) == {"GPU": GpuUse(frozenset({1, 2}), 42)}
    assert gpu_use.processes(["GPU"], OldNvml()) == {"GPU": {1, 2}}


@pytest.mark.parametrize(
    ("owner", "unit"),
    [
        ("alice/", "jupyterhub-notebook-alice.service"),
        ("alice/second", "jupyterhub-notebook-alice:second.service"),
        ("a.mount/", "jupyterhub-notebook-a.mount.service"),
    ],
)
def test_each_notebook_has_a_unit_of_its_own(owner: str, unit: str) -> None:
    assert units.name_of(owner) == unit
