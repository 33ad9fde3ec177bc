"""The command gpufarm-health: its output, its exit statuses, its memory and its hooks."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._cordon.io import folder
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.io import command, store
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.kernel_log import parse_message
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import Machine
from health_readings import gpu, machine

Run = Callable[..., int]
HOT = machine(gpu(temperature=91))
WARM = machine(gpu(temperature=84))
WELL = machine(gpu())
HUNG = machine(gpu(hung_in="nvmlX"))
UNKNOWN = machine(gpu(), events=None, log_error="No journal.")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on a machine that is in a given state."""
    monkeypatch.setattr(store.read, "__defaults__", (tmp_path,))
    monkeypatch.setattr(store.write, "__defaults__", (tmp_path,))
    monkeypatch.setattr(store.write_verdicts, "__defaults__", (tmp_path,))
    monkeypatch.setattr(store.lock.__wrapped__, "__defaults__", (tmp_path,))  # type: ignore[attr-defined]
    monkeypatch.setattr(command, "SETTINGS", tmp_path / "none.json")
    monkeypatch.setattr(folder, "FOLDER", tmp_path / "cordons")

    def run_on(state: Machine, *arguments: str, **settings: Any) -> int:
        monkeypatch.setattr(command, "read_machine", lambda _settings, _before, _level=0: state)
        file = tmp_path / "settings.json"
        file.write_text(json.dumps(settings))
        return command.main(["--settings", str(file), *arguments])

    return run_on


@pytest.mark.parametrize(("state", "code"), [(WELL, 0), (WARM, 1), (HOT, 2), (UNKNOWN, 3)])
def test_exit_codes_are_those_of_nagios(run: Run, state: Machine, code: int) -> None:
    assert run(state) == code


def test_a_prolog_passes_over_what_is_milder(run: Run) -> None:
    assert run(WARM, "--fail-from", "critical") == 0
    assert run(UNKNOWN, "--fail-from", "critical") == 0
    assert run(HOT, "--fail-from", "critical") == 2


def test_json_is_whole(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    run(HOT, "--format", "json")
    data = json.loads(capsys.readouterr().out)
    assert data["status"] == "critical"
    assert {"check": "temperature", "status": "critical"}.items() <= next(
        one for one in data["findings"] if one["check"] == "temperature"
    ).items()


def test_reading_alone_leaves_no_trace(run: Run, tmp_path: Path) -> None:
    run(HOT, drain_command=["touch", str(tmp_path / "drained")], textfile=str(tmp_path / "gpu.prom"))
    assert {path.name for path in tmp_path.iterdir()} == {"settings.json"}


def test_recording_writes_metrics_and_the_baseline(run: Run, tmp_path: Path) -> None:
    assert run(WARM, "--record", textfile=str(tmp_path / "gpu.prom")) == 1
    assert "gpufarm_health_status 1" in (tmp_path / "gpu.prom").read_text()
    assert store.read(tmp_path).counters["GPU-1"]["pcie_replays"] == 0


def test_recording_writes_the_verdicts_for_services_that_hand_out_gpus(run: Run, tmp_path: Path) -> None:
    assert run(HOT, "--record") == 2
    file = tmp_path / "verdicts.json"
    told = json.loads(file.read_text())
    assert abs(told["time"] - time.time()) < 60
    assert told["gpus"]["GPU-1"]["status"] == "critical"
    assert told["gpus"]["GPU-1"]["reason"].startswith("temperature: ")
    assert file.stat().st_mode & 0o777 == 0o644
    run(WELL, "--record")
    assert json.loads(file.read_text())["gpus"] == {"GPU-1": {"status": "ok", "reason": ""}}


def test_hooks_run_once_at_each_change(run: Run, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    hook = tmp_path / "hook"
    hook.write_text(f'#!/bin/sh\necho "$1 $GPUFARM_HEALTH_STATUS" >> {calls}\n')
    hook.chmod(0o755)
    hooks = {"drain_command": [str(hook), "drain"], "resume_command": [str(hook), "resume; rm -rf x"]}
    for state in (WELL, HUNG, HUNG, UNKNOWN, HUNG, WARM, WELL):
        run(state, "--record", **hooks)
    assert calls.read_text().splitlines() == ["drain critical", "resume; rm -rf x warning"]


def test_a_hook_that_fails_is_told_and_tried_again(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(HUNG, "--record", drain_command=["false"]) == 2
    assert "The hook 'false' failed with code 1" in capsys.readouterr().err
    assert run(HUNG, "--record", drain_command=["/no/such"]) == 2
    assert "cannot be run (No such file" in capsys.readouterr().err
    run(HUNG, "--record", drain_command=["touch", str(tmp_path / "drained")])
    assert (tmp_path / "drained").exists()
    assert run(WELL, "--record", resume_command=["false"]) == 3


def test_metrics_without_a_folder_are_told(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(WELL, "--record", textfile="/no/such/folder/gpu.prom") == 3
    assert "The metrics cannot be written to /no/such/folder/gpu.prom" in capsys.readouterr().err


def test_errors_that_were_dealt_with_are_passed_over(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    event = parse_message("NVRM: Xid (PCI:0000:07:00): 95, Uncontained", 5)
    later = parse_message("NVRM: Xid (PCI:0000:07:00): 48, DBE", 9)
    assert event is not None and later is not None
    assert run(machine(gpu(), events=[event])) == 2
    assert run(machine(gpu(), events=[event]), "--acknowledge") == 0
    assert "1 logged error(s) acknowledged." in capsys.readouterr().out
    assert run(machine(gpu(), events=[event])) == 0
    assert run(machine(gpu(), events=[event, later])) == 2
    assert run(machine(gpu(), events=[event], boot_id="boot-2")) == 2


def test_settings_that_cannot_be_read_are_unknown(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(WELL, thresholds={"heat": 1}) == 3
    assert "There is no threshold 'heat'" in capsys.readouterr().err
    (tmp_path / "broken.json").write_text("{")
    assert command.main(["--settings", str(tmp_path / "broken.json")]) == 3
    assert command.main(["--settings", str(tmp_path / "missing.json")]) == 3


def test_help_teaches(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["--help"])
    text = capsys.readouterr().out
    assert "exit statuses" in text and "Slurm" in text
