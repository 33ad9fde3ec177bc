"""Hosted CI: its jobs call targets of the Makefile, may do little, and try what the collection accepts."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
GITHUB = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
GITLAB = (ROOT / ".gitlab-ci.yml").read_text()
INSTALL = "apt-get update && apt-get install --yes --no-install-recommends ca-certificates git make python3"


def github() -> dict[str, list[str]]:
    """The commands of each job, with each value of its matrix."""
    found = {}
    for name, job in yaml.safe_load(GITHUB)["jobs"].items():
        commands = [step["run"] for step in job["steps"] if "run" in step and step["run"] != INSTALL]
        matrix = {key.upper(): values for key, values in job.get("strategy", {}).get("matrix", {}).items()}
        found[name] = _filled(commands, matrix)
    return found


def gitlab() -> dict[str, list[str]]:
    """The same of GitLab; what extends another job has its own commands."""
    jobs = {name: job for name, job in yaml.safe_load(GITLAB).items() if "script" in job}
    return {
        name: _filled(job["script"], *job.get("parallel", {}).get("matrix", ())) for name, job in jobs.items()
    }


def _filled(commands: list[str], matrix: dict[str, list[str]] | None = None) -> list[str]:
    for name, values in (matrix or {}).items():
        commands = [re.sub(rf'"?\${name}"?', value, command) for command in commands for value in values]
    return commands


def test_both_services_do_the_same() -> None:
    assert github() == gitlab()
    assert yaml.safe_load(GITLAB)["default"]["before_script"] == [INSTALL]


def test_jobs_only_call_targets_of_the_makefile() -> None:
    targets = set(re.findall(r"^([a-z0-9-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for job, commands in github().items():
        for command in commands:
            called = re.fullmatch(r"make ([a-z-]+)( ANSIBLE=[\d.]+)?", command)
            assert called and called[1] in targets, f"{job}: {command}"


def test_every_release_of_ansible_that_was_tried_is_locked_and_run() -> None:
    table = (ROOT / "docs" / "compatibility.md").read_text()
    tried = re.findall(r"^\| ((2\.\d+)\.\d+) \|", table, re.MULTILINE)
    assert github()["ansible"] == [f"make unit-ansible ANSIBLE={minor}" for _release, minor in tried]
    for release, minor in tried:
        assert (
            f"\nansible-core=={release} " in f"\n{(ROOT / f'requirements/ansible/{minor}.lock').read_text()}"
        )


def test_actions_are_known_by_their_commits() -> None:
    used = re.findall(r"uses: (.*)", GITHUB)
    assert used
    assert all(re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action) for action in used)


def test_jobs_may_only_read_and_know_no_secret() -> None:
    assert yaml.safe_load(GITHUB)["permissions"] == {"contents": "read"}
    jobs: dict[str, Any] = yaml.safe_load(GITHUB)["jobs"]
    assert not [name for name, job in jobs.items() if "permissions" in job]
    assert "secrets." not in GITHUB
    assert GITHUB.count("actions/checkout@") == GITHUB.count("persist-credentials: false")


def test_machines_of_the_project_run_nothing_of_a_fork() -> None:
    jobs: dict[str, Any] = yaml.safe_load(GITHUB)["jobs"]
    own = {name: job["if"] for name, job in jobs.items() if job["runs-on"] != "ubuntu-24.04"}
    assert own.keys() == {"changed", "nightly"}
    assert "github.event.pull_request.head.repo.full_name == github.repository" in own["changed"]
    assert "github.event_name == 'schedule'" in own["nightly"]
    rules = yaml.safe_load(GITLAB)["changed"]["rules"]
    assert "$CI_MERGE_REQUEST_SOURCE_PROJECT_ID == $CI_PROJECT_ID" in rules[0]["if"]
