"""Leases are what running notebooks can reach, whatever has become of the file that remembers them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import logging
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from gpufarm_hub.people.accounts import NAME
from gpufarm_hub.sharing import adoption, devices, recovery, turns
from gpufarm_hub.sharing.desk import Desk
from gpufarm_hub.sharing.devices import DeviceError
from gpufarm_hub.sharing.leases import Lease, Leases
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.notices import Notices
from gpufarm_hub.sharing.shared import SharedProfile
from gpufarm_hub.sharing.slices import GpuQueryError, Gpus, Slice
from gpufarm_hub.sharing.waiting import SliceRequest
from gpufarm_hub.spawning import containers, engines, notebooks, units
from gpufarm_hub.spawning.container import GpuAccess, Plan, environment_of, given, host_config
from gpufarm_hub.spawning.engine import EngineError
from gpufarm_hub.store import JsonStore
from hypothesis import given as for_all
from hypothesis import strategies as st

LOG = logging.getLogger("test")
ALICE, BOB = units.name_of("alice/"), units.name_of("bob/second")
CAROL = containers.name_of("carol.d/")


def mig(instance: int) -> Slice:
    return Slice(f"MIG-{instance}", "1g.10gb", 0, instance, 0, 10 << 30)


def nodes(instance: int) -> frozenset[str]:
    """Device nodes of a slice: nodes of the GPU, of the GPU instance, and of the compute instance."""
    caps = (f"/dev/nvidia-caps/nvidia-cap{9 * instance + offset}" for offset in (3, 4))
    return frozenset(("/dev/nvidia0", *caps))


@dataclass
class Machine:
    """Slices 7 to 9 of one GPU; what runs, and what that can reach."""

    desk: Desk
    slices: list[Slice] = field(default_factory=lambda: [mig(instance) for instance in (7, 8, 9)])
    opens: dict[str, frozenset[str]] = field(default_factory=dict)
    revoked: list[str] = field(default_factory=list)
    nvml: bool = True
    lost: list[int] = field(default_factory=list)
    engine: bool = True

    def read_gpus(self) -> Gpus:
        if not self.nvml:
            raise GpuQueryError("the NVIDIA driver does not answer")
        slices = [piece for piece in self.slices if piece.gpu not in self.lost]
        problems = tuple(f"GPU {gpu} is lost" for gpu in self.lost)
        return Gpus(slices, frozenset(piece.gpu for piece in slices), problems=problems)

    def reach(self, prefix: str) -> dict[str, frozenset[str]]:
        if not self.engine:
            raise EngineError("it does not answer")
        return {unit: keys for unit, keys in self.opens.items() if unit.startswith(prefix)}

    def keys_of(self, piece: Slice) -> frozenset[str]:
        if piece not in self.slices:
            raise DeviceError("the driver does not know it")
        return frozenset([f"/dev/nvidia{piece.gpu}"]) if piece.whole else nodes(piece.gpu_instance or 0)

    def take(self, owner: str, unit: str, uuid: str) -> None:
        """Have a notebook that runs take a slice."""
        one = [piece for piece in self.slices if piece.uuid == uuid]
        self.desk.take(SliceRequest(owner, "1g.10gb", 1, Limit("students", slices=9), {}), unit, one)
        self.opens[unit] = nodes(one[0].gpu_instance or 0)

    def adopt(self) -> dict[str, list[str]]:
        """Start the hub; return who holds what."""
        adoption.adopt_running(self.desk, LOG)
        return self.held()

    def held(self) -> dict[str, list[str]]:
        return {lease.owner: [piece.uuid for piece in lease.pieces] for lease in self.desk.leases.all()}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "leases.json"


@pytest.fixture
def machine(path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    desk = Desk(
        Leases(path),
        Notices(path.with_name("notices.json")),
        JsonStore(path.with_name("use.json")),
        path.with_name("audit.jsonl"),
        [Limit("students", users=frozenset({"alice"}))],
    )
    made = Machine(desk)
    monkeypatch.setattr(engines, "IN_USE", path.with_name("engines"))
    engines.IN_USE.mkdir()
    (engines.IN_USE / "docker").touch()
    for engine, prefix in ((units, units.PREFIX), (containers, containers.PREFIX)):
        monkeypatch.setattr(engine, "reach", lambda prefix=prefix: made.reach(prefix))
        monkeypatch.setattr(engine, "is_over", lambda unit: unit not in made.opens)
        monkeypatch.setattr(engine, "revoke_devices", made.revoked.append)
    monkeypatch.setattr(adoption, "read_gpus", made.read_gpus)
    monkeypatch.setattr(recovery, "read_gpus", made.read_gpus)
    monkeypatch.setattr(devices, "keys_of", made.keys_of)
    return made


@pytest.mark.parametrize(
    "damage",
    [
        "",
        '{"leases": {"alice/"',
        "[]",
        '{"alice/": {}}',
        '{"leases": []}',
        '{"leases": {"alice/": {"unit": "a", "slices": [{"uuid": "MIG-7"}], "taken": "", "share": ""}}}',
        '{"leases": {"alice/": {"unit": "a", "slices": [], "taken": "yesterday", "share": ""}}}',
        '{"leases": {"alice/": {"unit": "a", "slices": [], "taken": "2026-11-23T10:00:00", "share": ""}}}',
        '{"leases": {"alice/": {"unit": "", "slices": [], "taken": "2026-11-23", "share": "", "hours": []}}}',
        '{"leases": {"alice/": {"unit": "", "slices": [{"uuid": "MIG-7", "profile": "1g.10gb", "gpu": 0, '
        '"gpu_instance": 7, "compute_instance": 0, "memory": 0}], "taken": "2026-11-23", "share": "", '
        '"notebooks": 0}}}',
        '{"queue": {"alice/": {"seen": 1e99}}}',
        '{"queue": {"alice/": 7}}',
    ],
)
def test_a_damaged_file_is_kept_aside_and_leases_come_from_what_runs(
    machine: Machine, path: Path, damage: str
) -> None:
    machine.opens = {ALICE: nodes(7), BOB: nodes(8), CAROL: frozenset({"MIG-9"})}
    path.write_text(damage)
    assert machine.adopt() == {"alice/": ["MIG-7"], "bob/second": ["MIG-8"], "carol.d/": ["MIG-9"]}
    assert path.with_name("leases.json.damaged").read_text() == damage
    assert {lease.owner: lease.share for lease in machine.desk.leases.all()} == {
        "alice/": "students",
        "bob/second": "everybody",
        "carol.d/": "everybody",
    }
    assert {lease.unit for lease in machine.desk.leases.all()} == machine.opens.keys()
    assert not any(turns.has_seat(piece, machine.desk.leases.all(), 1) for piece in machine.slices)


def test_a_file_that_was_removed(machine: Machine, path: Path) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    path.unlink()
    assert machine.adopt() == {"alice/": ["MIG-7"]}


def test_a_file_that_is_older_than_what_runs(machine: Machine, path: Path) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    before = machine.desk.leases.all()[0]
    machine.opens[ALICE] = nodes(7) | nodes(9)
    machine.opens[BOB] = nodes(8)
    assert machine.adopt() == {"alice/": ["MIG-7", "MIG-9"], "bob/second": ["MIG-8"]}
    after = machine.desk.leases.all()[0]
    assert (after.taken, after.share) == (before.taken, before.share)
    events = [json.loads(line) for line in machine.desk.audit_file.read_text().splitlines()]
    assert [(event["event"], event["user"]) for event in events[1:]] == [
        ("adopted", "alice"),
        ("adopted", "bob"),
    ]


def test_what_agrees_is_left_alone(machine: Machine, path: Path) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    machine.opens[BOB] = frozenset()  # a notebook without a slice
    before = path.read_bytes()
    machine.nvml = False
    assert machine.adopt() == {"alice/": ["MIG-7"]}
    assert path.read_bytes() == before and not machine.revoked


def test_a_whole_gpu(machine: Machine) -> None:
    machine.slices = [Slice("GPU-0", "Tesla T4", 0, None, None, 16 << 30)]
    machine.opens = {ALICE: frozenset({"/dev/nvidia0"})}
    assert machine.adopt() == {"alice/": ["GPU-0"]}


@pytest.mark.parametrize(
    "left", [nodes(5), frozenset({"MIG-5"}), frozenset({"/dev/nvidia0"}), nodes(7) | nodes(5)]
)
def test_what_reaches_slices_that_are_gone_loses_the_gpu(machine: Machine, left: frozenset[str]) -> None:
    """Nodes of a slice that is gone may become those of a new one."""
    unit = CAROL if "MIG-5" in left else ALICE
    machine.opens = {unit: left}
    assert machine.adopt() == {}
    assert machine.revoked == [unit]


def test_a_lease_of_slices_that_are_gone_is_ended_as_always(machine: Machine) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    machine.slices = [mig(8)]
    assert machine.adopt() == {"alice/": ["MIG-7"]} and not machine.revoked
    adoption.at_hub_start(machine.desk, LOG)
    assert machine.held() == {} and machine.revoked == [ALICE]


def test_while_nobody_can_tell_who_holds_what_no_slice_is_handed_out(machine: Machine, path: Path) -> None:
    machine.opens = {ALICE: nodes(7)}
    machine.nvml = False
    with pytest.raises(GpuQueryError):
        machine.adopt()
    machine.nvml, machine.engine = True, False
    with pytest.raises(EngineError):
        machine.adopt()
    path.write_text("x")
    with pytest.raises(EngineError):
        machine.adopt()
    machine.engine = True
    assert machine.adopt() == {"alice/": ["MIG-7"]}


def test_a_file_that_knows_all_that_runs_does_for_a_hub_without_gpus_or_engine(machine: Machine) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    machine.slices, machine.nvml = [], False
    assert machine.adopt() == {"alice/": ["MIG-7"]}
    machine.engine = False
    assert machine.adopt() == {"alice/": ["MIG-7"]}


def test_notebooks_that_ended_get_no_lease(machine: Machine, path: Path) -> None:
    path.write_text("x")
    assert machine.adopt() == {}
    machine.take("alice/", ALICE, "MIG-7")
    del machine.opens[ALICE]
    machine.adopt()
    adoption.at_hub_start(machine.desk, LOG)
    assert machine.held() == {}


@pytest.mark.parametrize(
    "damage", [None, '{"leases": {"alice/"', '{"leases": {}, "queue": {}}', '{"queue": {}}']
)
def test_no_slice_of_a_notebook_is_handed_out_when_the_file_is_changed_under_the_hub(
    machine: Machine, path: Path, damage: str | None
) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    if damage is None:
        path.unlink()
    else:
        path.write_text(damage)
    slices = adoption.agree(machine.desk, LOG).offered
    taken = machine.desk.take(SliceRequest("bob/", "1g.10gb", 1, Limit("x"), {}), "unit", slices)
    assert isinstance(taken, Lease) and taken.pieces == (mig(8),)
    assert machine.held() == {"alice/": ["MIG-7"], "bob/": ["MIG-8"]}


def test_a_file_that_knows_the_queue_only_does_not_know_who_holds_what(machine: Machine, path: Path) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    path.unlink()
    machine.desk.enter(SliceRequest("bob/", "1g.10gb", 1, Limit("x"), {}), machine.slices)
    machine.engine = False
    with pytest.raises(EngineError):
        adoption.agree(machine.desk, LOG)
    machine.engine = True
    adoption.agree(machine.desk, LOG)
    assert machine.held() == {"alice/": ["MIG-7"]}


@pytest.mark.parametrize("stored", [True, False])
def test_of_two_notebooks_with_one_slice_the_one_that_had_it_first_keeps_it(
    machine: Machine, path: Path, stored: bool
) -> None:
    machine.take("alice/", ALICE, "MIG-7")
    machine.opens[BOB] = nodes(7)
    if stored:
        content = json.loads(path.read_text())
        lease = content["leases"]["alice/"]
        content["leases"]["bob/second"] = {**lease, "unit": BOB, "taken": "2999-01-01T00:00:00+00:00"}
        path.write_text(json.dumps(content))
    adoption.agree(machine.desk, LOG)
    assert machine.held() == {"alice/": ["MIG-7"]} and machine.revoked == [BOB]
    assert "is gone: another notebook had it already" in machine.desk.notices.of("bob")["second"]


def test_a_hub_that_cannot_know_who_holds_what_starts_and_hands_out_nothing(
    machine: Machine, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.opens = {ALICE: nodes(7)}
    path.write_text("x")
    published: list[object] = []
    monkeypatch.setattr(machine.desk.leases, "_publish", published.append)
    machine.engine = False
    adoption.at_hub_start(machine.desk, LOG)
    assert not published, "else somebody might partition the slices of notebooks away"
    with pytest.raises(EngineError):
        adoption.agree(machine.desk, LOG)
    machine.engine = True
    adoption.agree(machine.desk, LOG)
    assert machine.held() == {"alice/": ["MIG-7"]} and published


def test_a_lease_that_changed_while_notebooks_were_looked_at_is_right(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody starts a notebook between two questions."""

    def reach() -> dict[str, frozenset[str]]:
        machine.take("alice/", ALICE, "MIG-7")
        return machine.opens

    monkeypatch.setattr(notebooks, "reach", reach)
    adoption.agree(machine.desk, LOG)
    assert [lease.share for lease in machine.desk.leases.all()] == ["students"]
    events = [json.loads(line)["event"] for line in machine.desk.audit_file.read_text().splitlines()]
    assert events == ["taken"]


def test_a_gpu_that_is_lost_costs_nobody_a_lease_and_its_slices_are_given_to_nobody(machine: Machine) -> None:
    lost = [Slice(f"GPU-{n}", "Tesla T4", n, None, None, 16 << 30) for n in (1, 2)]
    machine.slices += lost
    machine.desk.take(SliceRequest("alice/", "Tesla T4", 1, Limit("x"), {}), ALICE, lost[:1])
    machine.opens = {ALICE: frozenset({"/dev/nvidia1"}), BOB: frozenset({"/dev/nvidia2"})}
    machine.lost = [1, 2]
    offered = adoption.agree(machine.desk, LOG).offered
    assert [piece.uuid for piece in offered] == ["MIG-7", "MIG-8", "MIG-9"]
    assert machine.held() == {"alice/": ["GPU-1"]} and not machine.revoked
    machine.lost = []
    adoption.agree(machine.desk, LOG)
    assert machine.held() == {"alice/": ["GPU-1"], "bob/second": ["GPU-2"]}


USERS = st.from_regex(NAME, fullmatch=True)
SERVERS = st.text(st.characters(exclude_characters="/", exclude_categories=["Cc", "Cs"]), max_size=12)


@for_all(user=USERS, server=SERVERS)
@pytest.mark.parametrize("engine", [units, containers])
def test_the_owner_is_read_from_the_unit(engine: engines.Engine, user: str, server: str) -> None:
    owner = f"{user}/{server}"
    assert engine.owner_of(engine.name_of(owner)) == owner


def test_devices_that_units_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    """As `systemctl show --property=Id,ActiveState,DeviceAllow PATTERN` of Debian 12 lists them."""
    said = "\n".join(
        [
            *(
                "DeviceAllow=/dev/nvidiactl rw",
                "DeviceAllow=/dev/nvidia0 rw",
                "DeviceAllow=/dev/nvidia-uvm rw",
            ),
            *("DeviceAllow=/dev/nvidia-caps/nvidia-cap66 r", "DeviceAllow=char-pts rw"),
            *(f"Id={ALICE}", "ActiveState=active", ""),
            *(f"Id={BOB}", "ActiveState=deactivating", ""),
            *("DeviceAllow=/dev/nvidia1 rw", "Id=over.service", "ActiveState=failed"),
        ]
    )
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: said)
    assert units.reach() == {
        ALICE: {"/dev/nvidia0", "/dev/nvidia-caps/nvidia-cap66"},
        BOB: frozenset(),
    }
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: "")
    assert units.reach() == {}


def test_processes_of_a_unit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    group = f"/jupyterhub.slice/{ALICE}"
    for pid, path in (("7", group), ("8", f"{group}/kernel"), ("9", f"{group}x"), ("10", "/")):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(f"4:memory:/other\n0::{path}\n")
    (tmp_path / "11").mkdir()
    # A user with control groups of their own gives them any name.
    for pid, name in (("12", b"\xff"), ("13", f"\f0::{group}".encode())):
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_bytes(b"0::/user.slice/user@1000.service/" + name + b"\n")
    monkeypatch.setattr(units, "PROC", tmp_path)
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: group)
    assert units.processes(ALICE) == {7, 8}
    monkeypatch.setattr(units, "_systemctl", lambda *_arguments: "")
    assert units.processes(ALICE) == frozenset()


@pytest.mark.parametrize("access", [*GpuAccess, None])
def test_slices_that_a_container_was_given(access: GpuAccess | None) -> None:
    plan = Plan(1000, 1000, (), "/home/a", 1 << 30, 2, 100, "1G", "notebooks", access=access)
    plan = Plan(**{**vars(plan), "slices": ("MIG-7", "MIG-9") if access else ()})
    host = host_config(plan)
    inspected = {
        "HostConfig": {"DeviceRequests": host.get("device_requests"), "Runtime": host.get("runtime", "runc")},
        "Config": {"Env": [f"{name}={value}" for name, value in environment_of(plan).items()]},
    }
    assert given(inspected) == set(plan.slices)


TOGETHER = [SharedProfile("1g.10gb", 2, frozenset({"course"}))]
DAVE = units.name_of("dave/")


def test_notebooks_that_share_a_slice_keep_it_without_the_file(machine: Machine) -> None:
    machine.desk = replace(machine.desk, shared=TOGETHER)
    machine.opens = {ALICE: nodes(7), BOB: nodes(7), DAVE: nodes(8)}
    assert machine.adopt() == {"alice/": ["MIG-7"], "bob/second": ["MIG-7"], "dave/": ["MIG-8"]}
    assert {lease.owner: lease.notebooks for lease in machine.desk.leases.all()} == {
        "alice/": 2,
        "bob/second": 2,
        "dave/": 1,
    }, "whether dave accepts others is not known, so nobody comes"
    assert machine.revoked == []
    assert machine.adopt() == machine.held()


def test_of_too_many_on_a_shared_slice_the_last_loses_it(machine: Machine) -> None:
    machine.desk = replace(machine.desk, shared=TOGETHER)
    machine.opens = dict.fromkeys((ALICE, BOB, DAVE), nodes(7))
    assert len(machine.adopt()) == 2
    assert len(machine.revoked) == 1


def test_a_notebook_that_has_its_slice_alone_shares_it_with_nobody(machine: Machine) -> None:
    machine.desk = replace(machine.desk, shared=TOGETHER)
    machine.take("alice/", ALICE, "MIG-7")
    machine.opens[BOB] = nodes(7)
    assert machine.adopt() == {"alice/": ["MIG-7"]}
    assert machine.revoked == [BOB]
