"""What a role starts is there again after a boot, and what it writes for systemd is used."""

from __future__ import annotations

from functools import cache
from pathlib import PurePath

import pytest
from harness import CASES, Run

SYSTEMD = PurePath("/etc/systemd/system")
# Roles whose servers start one after the other compare their files with what runs; here nothing runs.
NOTHING_RUNS = {
    "Service | Look for files that are newer than what runs": {
        "rc": 1,
        "stdout": "",
        "stdout_lines": [],
        "stderr": "",
    }
}


@cache
def first_run(role: str) -> Run:
    """Run a role on a host where nothing of it runs."""
    return CASES[role].with_answers(NOTHING_RUNS).run(role)


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


def enabled(run: Run) -> set[str]:
    """Return the units that a run enables."""
    return {
        full_name(call.args["name"])
        for call in run.calls
        if call.action == "ansible.builtin.systemd_service" and call.args.get("enabled") is True
    }


def written(run: Run) -> dict[PurePath, str]:
    """Return what a run writes for systemd: the text of each file by its path."""
    files: dict[PurePath, str] = {}
    for call in run.calls:
        if call.action == "gpufarm.cluster.text_files":
            files |= {PurePath(call.args["folder"], name): text for name, text in call.args["files"].items()}
        elif call.action in ("ansible.builtin.copy", "ansible.builtin.template"):
            files[PurePath(call.args["dest"])] = call.args.get("content", "")
    return {path: text for path, text in files.items() if path.is_relative_to(SYSTEMD)}


@pytest.mark.parametrize("role", sorted(CASES))
def test_units_that_a_role_starts_are_enabled(role: str) -> None:
    run = first_run(role)
    assert started(run) <= enabled(run)


@pytest.mark.parametrize("role", sorted(CASES))
def test_units_that_a_role_writes_are_started(role: str) -> None:
    run = first_run(role)
    files = written(run)
    # A timer or an automount starts the service or mount of its name; other units start what they name.
    names = {PurePath(name).stem for name in started(run)}
    unused = {
        path.name
        for path in files
        if path.parent == SYSTEMD
        and path.stem not in names
        and not any(path.name in text for other, text in files.items() if other != path)
    }
    assert not unused
