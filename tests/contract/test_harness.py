"""The harness does what Ansible does: the same tasks run, are skipped and refuse, in the same words."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import run_role

ROOT = Path(__file__).resolve().parents[2]
ANSIBLE_PLAYBOOK = Path(sys.executable).with_name("ansible-playbook")
# Includes, loops, conditions, run_once and facts of other hosts on the way to a refusal.
REFUSED: dict[str, dict[str, Any]] = {
    "zookeeper": {
        "zookeeper_servers": [{"id": 1, "name": "localhost"}, {"id": 1, "name": "other"}],
        "zookeeper_settings": {"tickTme": 2000},
        "zookeeper_client_port": 64181,
    },
    "monitoring": {"monitoring_readers": ["no certificate"], "monitoring_port": 64090},
    "container_request": {"container_request_owner": "Ada", "container_request_gpus": -1},
}


def real(role: str, variables: Mapping[str, Any], folder: Path) -> list[tuple[str, str, str]]:
    """Name, status and message of each task as ansible-playbook runs the role on this machine."""
    task = {"name": "Run it", "ansible.builtin.include_role": {"name": f"gpufarm.cluster.{role}"}}
    own = {"ansible_python_interpreter": sys.executable}
    play = {"hosts": "all", "gather_facts": False, "vars": {**variables, **own}, "tasks": [task]}
    playbook = folder / "playbook.yml"
    playbook.write_text(json.dumps([play]))
    done = subprocess.run(
        [ANSIBLE_PLAYBOOK, "-i", "localhost,", "-c", "local", playbook],
        env={
            **os.environ,
            "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"),
            "ANSIBLE_HOME": str(folder),
            "ANSIBLE_STDOUT_CALLBACK": "ansible.posix.json",
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    tasks = json.loads(done.stdout[done.stdout.index("{") :])["plays"][0]["tasks"]
    return [(one["task"]["name"], *outcome(one["hosts"]["localhost"])) for one in tasks]


def outcome(result: Mapping[str, Any]) -> tuple[str, str]:
    status = "skipped" if result.get("skipped") else "failed" if result.get("failed") else "ok"
    return status, result.get("msg", "") if status == "failed" else ""


@pytest.mark.parametrize("role", REFUSED)
def test_a_role_does_what_it_does_under_ansible_playbook(role: str, tmp_path: Path) -> None:
    run = run_role(role, REFUSED[role], hosts={"localhost": {"ansible_connection": "local"}})
    assert run.failed == ("localhost",)
    assert [
        (
            step.name.removeprefix("gpufarm.cluster."),
            step.status,
            step.message if step.status == "failed" else "",
        )
        for step in run.steps
    ] == [
        (name.removeprefix("gpufarm.cluster."), *rest) for name, *rest in real(role, REFUSED[role], tmp_path)
    ]
