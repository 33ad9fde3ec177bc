"""Units that a role starts run again after a boot, and its files for systemd are used."""

from __future__ import annotations

import re
from pathlib import Path, PurePath

import pytest
from harness import CASES, Run
from harness.life import run, set_up

ROLES = Path(__file__).resolve().parents[2] / "roles"
SYSTEMD = PurePath("/etc/systemd/system")
EVERY_ROLE = pytest.mark.parametrize("role", sorted(CASES))


def full_name(name: str) -> str:
    """Return a unit's name with its kind, as systemd completes it."""
    return name if PurePath(name).suffix else f"{name}.service"


def started(run: Run) -> set[str]:
    """Return the units that a run starts."""
    return {
        full_name(call.args["name"])
        for call in run.calls
        if call.action == "ansible.builtin.systemd_service"
        and call.args.get("state") in ("started", "restarted")
    }


@EVERY_ROLE
def test_units_that_a_role_starts_are_enabled(role: str) -> None:
    host, _ = set_up(role)
    static = {name for name, text in host.units_written() if "[Install]" not in text}
    running = {name for name, unit in host.units.items() if unit.running}
    assert not [name for name in running - static if not host.units[name].enabled]


@EVERY_ROLE
def test_units_that_a_role_writes_are_started(role: str) -> None:
    host, first = set_up(role)
    files = {
        PurePath(path): file.content
        for path, file in host.files.items()
        if SYSTEMD in PurePath(path).parents and file.kind == "file"
    }
    # A timer or an automount starts the service or mount of its name; other units start what they name. Of a
    # template, programs that the role writes start instances.
    programs = [file.content for path, file in host.files.items() if path.endswith(".py")]
    names = {re.sub("@.*", "@", PurePath(name).stem) for name in started(first)}
    unused = {
        path.name
        for path in files
        if path.parent == SYSTEMD
        and path.stem not in names
        and not any(path.name in text for other, text in files.items() if other != path)
        and not (path.stem.endswith("@") and any(path.stem in text for text in programs))
    }
    assert not unused


@EVERY_ROLE
def test_units_that_can_start_with_the_machine_do(role: str) -> None:
    host, _ = set_up(role)
    texts = dict(host.units_written())
    for name, text in texts.items():
        known = host.unit(name)
        assert known.enabled == ("[Install]" in text), name
        if known.enabled and "Type=oneshot" in text:
            assert "RemainAfterExit=yes" in text, f"{name} would start anew with each run of the role"
    assert not host.unread, "systemd has not read them"


@EVERY_ROLE
def test_units_have_the_folders_and_programs_that_they_use(role: str) -> None:
    host, _ = set_up(role)
    texts = dict(host.units_written())
    made = {
        word
        for text in texts.values()
        for line in re.findall(r"RuntimeDirectory=(.*)", text)
        for word in line.split()
    }
    # A folder of a mode that systemd gives to no parent of a RuntimeDirectory=.
    made |= {
        folder
        for text in texts.values()
        for folder in re.findall(
            r"^ExecStartPre=.*/install --directory .*/run/([\w.-]+)$", text, re.MULTILINE
        )
    }
    for name, text in texts.items():
        for line in re.findall(r"^Exec\w+=(.*)", text, re.MULTILINE):
            for folder in re.findall(r"(?:%t|/run)/([\w.-]+)/", line):
                assert folder in made, f"{name}: nothing makes /run/{folder}"
            for path in re.findall(r"(?<![\w/])/opt/[\w./-]+|(?<![\w/])/etc/[\w./-]+", line):
                there = ".target.wants/" in path or any(  # systemd makes those
                    f"{path}/".startswith(f"{one}/") or one.startswith(f"{path}/") for one in host.files
                )
                assert there, f"{name}: nothing makes {path}"


@EVERY_ROLE
def test_units_require_what_is_there(role: str) -> None:
    host, _ = set_up(role)
    for name, text in host.units_written():
        required = " ".join(re.findall(r"^(?:Requires|BindsTo)=(.*)", text, re.MULTILINE)).split()
        services = [one for one in required if one.endswith(".service")]
        assert not [one for one in services if not host.knows(one)], f"systemd would not start {name}"


@EVERY_ROLE
def test_a_service_starts_anew_when_its_unit_has_changed(role: str) -> None:
    host, _ = set_up(role)
    before = {name: unit.time for name, unit in host.units.items()}
    own = [
        name
        for name, text in host.units_written()
        if "RuntimeDirectory=" in text and "Type=oneshot" not in text
    ]
    for name in own:
        host.alter(f"/etc/systemd/system/{name}")
    run(role, host)
    late = [name for name in own if name in before and host.units[name].time <= before[name]]
    assert not late
    assert all(host.units[name].enabled for name in own if name in before), "they start with the machine"
    assert not host.unread, "systemd has not read them"


@EVERY_ROLE
def test_units_of_other_roles_follow_what_they_are_part_of(role: str) -> None:
    host, _ = set_up(role)
    texts = [path.read_text() for path in ROLES.glob("*/templates/*.service.j2")]
    followed = {name for text in texts for name in re.findall(r"^PartOf=(.+)", text, re.MULTILINE)}
    before = {name: unit.time for name, unit in host.units.items() if name in followed}
    if before:
        gone = run(role, host, {f"{role}_state": "absent"})
        assert not gone.failed, gone.refusal
    late = [name for name, time in before.items() if host.units[name].time <= time]
    assert not [name for name in late if host.units[name].running], "neither stopped nor started anew"
