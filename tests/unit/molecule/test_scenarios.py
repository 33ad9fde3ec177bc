"""Which scenarios run for a change, which goes first, and what is remembered of those that ran."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[3] / "scripts"
MOLECULE = """\
#!/bin/sh
echo "$3" >>{order}
[ "$3" != hanging ] || {{ trap 'echo FAILED tests/test_until_now.py; exit 1' INT; sleep 600 & wait; }}
[ "$3" != broken ]
"""
HOSTS = ["e2e", "integration", "integration-slurm", "integration-tosca"]
TARGETS = ["other", "lint", "unit", "sanity", "mutants-changed", *HOSTS]
ALWAYS = ["unit", "lint", "sanity", "mutants-changed"]


class Checkout:
    """A checkout with scenarios, and a Molecule that only writes down what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self.order = root, root / "order"
        subprocess.run(["git", "init", "--quiet", root], check=True)
        (root / "scripts").mkdir()
        shutil.copy(SCRIPTS / "scenarios", root / "scripts/scenarios")
        shutil.copy(SCRIPTS / "affected", root / "scripts/affected")
        shutil.copytree(SCRIPTS / "proof", root / "scripts/proof")
        text = (root / "scripts/scenarios").read_text()
        (root / "scripts/scenarios").write_text(text.replace("AT_ONCE = ", "AT_ONCE = 1 or "))
        molecule = root / ".venv/bin/molecule"
        molecule.parent.mkdir(parents=True)
        molecule.write_text(MOLECULE.format(order=self.order))
        molecule.chmod(0o755)
        (root / "Makefile").write_text(f"{' '.join(TARGETS)}:\n\t@echo $@ >>{self.order}\n")

    def land(self) -> None:
        """Commit all, as a state that has landed."""
        (self.root / ".gitignore").write_text("/order\n/.venv/\n/.work/\n__pycache__/\n")
        self.git("add", "--all")
        author = ("-c", "user.name=test", "-c", "user.email=test@example.org")
        self.git(*author, "commit", "--quiet", "--message", "change")
        (self.root / ".ci").mkdir(exist_ok=True)
        (self.root / ".ci/landed").write_text(self.git("rev-parse", "HEAD"))

    def git(self, *words: str) -> str:
        return subprocess.run(
            ["git", "-C", self.root, *words], capture_output=True, text=True, check=True
        ).stdout

    def scenario(self, name: str, hosts: int, steps: int) -> None:
        folder = self.root / "molecule" / name
        folder.mkdir(parents=True)
        content = {
            "platforms": [{"name": f"host{number}"} for number in range(hosts)],
            "scenario": {"test_sequence": ["converge"] * steps},
        }
        (folder / "molecule.yml").write_text(json.dumps(content))

    def remember(self, seconds: dict[str, float]) -> None:
        (self.root / ".work").mkdir(exist_ok=True)
        (self.root / ".work/scenarios.json").write_text(json.dumps(seconds))

    @property
    def remembered(self) -> dict[str, float]:
        return json.loads((self.root / ".work/scenarios.json").read_text())

    def run(self, *words: str, script: str = "scenarios") -> subprocess.CompletedProcess[str]:
        self.order.write_text("")
        command = [sys.executable, str(self.root / "scripts" / script), *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    @property
    def ran(self) -> list[str]:
        return self.order.read_text().split()


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path)
    checkout.scenario("small", hosts=1, steps=4)
    checkout.scenario("large", hosts=3, steps=9)
    checkout.scenario("medium", hosts=2, steps=6)
    return checkout


def test_unknown_ones_go_by_their_hosts_and_steps_and_targets_first(checkout: Checkout):
    assert checkout.run("--beside", "other").returncode == 0
    assert checkout.ran == ["other", "large", "medium", "small"]
    assert set(checkout.remembered) == {"make other", "molecule large", "molecule medium", "molecule small"}


def test_what_took_longest_goes_first(checkout: Checkout):
    checkout.remember({"molecule small": 900, "molecule large": 5, "make other": 6})
    checkout.run("--beside", "other")
    assert checkout.ran == ["small", "medium", "other", "large"]


@pytest.mark.skipif(
    os.geteuid() != 0 or not Path("/proc/self/autogroup").exists(), reason="only root may favour a session"
)
def test_what_computes_all_the_time_is_favoured_among_sessions(checkout: Checkout):
    seen = "grep -q 'nice -10' /proc/self/autogroup"
    waits = f"for try in $$(seq 100); do {seen} && exit; sleep 0.1; done; exit 1"
    (checkout.root / "Makefile").write_text(f"unit:\n\t@{waits}\n\nother:\n\t@! {seen}\n")
    done = checkout.run("--beside", "unit", "--beside", "other", "small")
    assert done.stdout.endswith("jobs: 3 passed, 0 failed\n")


def test_a_failure_is_told_and_not_remembered(checkout: Checkout):
    checkout.scenario("broken", hosts=1, steps=1)
    checkout.remember({"molecule broken": 77, "molecule small": 900})
    done = checkout.run("broken", "large")
    assert done.returncode == 1
    assert "molecule broken: FAILED" in done.stdout
    assert done.stdout.endswith("jobs: 1 passed, 1 failed: molecule broken\n")
    assert checkout.remembered["molecule broken"] == 77
    assert checkout.remembered["molecule small"] == 900


@pytest.fixture
def changed(checkout: Checkout) -> Checkout:
    """A checkout in which the scenario `small` has changed since the last landing."""
    checkout.land()
    (checkout.root / "molecule/small/converge.yml").write_text("- hosts: all\n")
    return checkout


def test_what_a_change_affects_runs_and_what_always_runs(changed: Checkout):
    done = changed.run("--changed")
    assert done.returncode == 0, done.stderr
    assert changed.ran == [*ALWAYS, "small"]
    assert "files differ" in done.stdout and "jobs: 5 passed, 0 failed" in done.stdout


def test_what_a_change_affects_is_listed_with_the_reason(changed: Checkout):
    shutil.rmtree(changed.root / "molecule/medium")  # a scenario that is gone cannot run
    (changed.root / "molecule/small/converge.yml").write_text("- include_tasks: tasks/new.yml\n")
    (changed.root / "molecule/small/tasks").mkdir()
    (changed.root / "molecule/small/tasks/new.yml").write_text("- debug:\n")
    listed = changed.run(script="affected").stdout.splitlines()
    assert "make unit, make lint, make sanity, make mutants-changed: always run" in listed
    assert listed[2:5] == [
        "molecule small",
        "  molecule/small/converge.yml",
        "  molecule/small/tasks/new.yml",
    ]
    assert listed[5].startswith("not affected, proved longest ago first: make e2e, make integration")
    assert not changed.ran


def test_all_runs_where_nothing_has_landed(changed: Checkout):
    (changed.root / ".ci/landed").unlink()
    done = changed.run("--changed")
    assert "All jobs count as affected: there is no file .ci/landed" in done.stdout
    assert set(changed.ran) == {*TARGETS, "small", "medium", "large"} - {"other"}


def test_after_what_is_affected_others_have_their_turn(changed: Checkout):
    changed.run("--changed", "--begin", "5", "--others", "5")
    assert changed.ran == [*ALWAYS, "small", *HOSTS, "large", "medium"]
    changed.land()  # which affects `small`, and whose run has had four of the others
    (changed.root / "molecule/medium/converge.yml").write_text("- hosts: all\n")
    changed.land()
    changed.run("--changed", "--begin", "5", "--others", "5")
    assert changed.ran == [*ALWAYS, "large", "medium", *HOSTS, "small"]


def test_what_a_change_affects_and_does_not_begin_in_time_is_told_in_capitals(changed: Checkout):
    done = changed.run("--changed", "--begin", "0", "--others", "0")
    assert (done.returncode, changed.ran) == (0, ALWAYS)
    assert "AFFECTED, BUT NOT PROVED, AS THE TIME TO BEGIN WAS OVER: molecule small" in done.stdout
    left_out = f"{', '.join(f'make {name}' for name in HOSTS)}, molecule large, molecule medium"
    assert f"not affected, and left out as 0 minutes were over: {left_out}" in done.stdout
    assert "jobs: 4 passed, 0 failed" in done.stdout
    assert "BUT NOT PROVED" not in changed.run("--changed", "--begin", "5").stdout


def test_of_what_a_change_affects_what_was_proved_last_begins_last(changed: Checkout):
    changed.land()
    (changed.root / ".ci/extra").write_text("moves the state that has landed\n")
    changed.land()
    for name in ("small", "medium", "large"):
        (changed.root / f"molecule/{name}/converge.yml").write_text("- hosts: localhost\n")
    changed.run("--changed", "--begin", "5")
    assert changed.ran == [*ALWAYS, "large", "medium", "small"]  # the first landing affected small


def test_affected_targets_begin_before_what_takes_less(changed: Checkout):
    (changed.root / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    changed.run("--changed", "--begin", "5")
    assert changed.ran[0] == "unit" and set(changed.ran[1:3]) <= {*HOSTS}
    assert changed.ran.index("lint") > changed.ran.index("integration-tosca")


def test_a_scenario_on_a_virtual_machine_runs_where_it_is_affected(changed: Checkout):
    changed.scenario("shared_home_kernel", hosts=1, steps=1)
    changed.run("--changed", "--begin", "5", "--others", "0")
    assert changed.ran == [*ALWAYS, "small"]
    changed.run("--changed")
    assert set(changed.ran) == {*ALWAYS, "small", "shared_home_kernel"}
    changed.land()
    changed.run("--changed", "--begin", "5", "--others", "5")
    assert "shared_home_kernel" not in changed.ran


def test_what_still_runs_at_the_end_has_failed(changed: Checkout):
    changed.scenario("hanging", hosts=1, steps=1)
    done = changed.run("--changed", "--begin", "5", "--end", "0.1")
    assert done.returncode == 1
    assert "molecule hanging: FAILED" in done.stdout and "scenarios: ended after" in done.stdout
    assert "hanging: FAILED, its log says\n  FAILED tests/test_until_now.py" in done.stdout


def test_a_scenario_that_is_not_there_is_refused(checkout: Checkout):
    done = checkout.run("smal")
    assert done.returncode == 2
    assert "no scenario named smal; there are large, medium, small" in done.stderr
