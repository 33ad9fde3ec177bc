"""Which of the scenarios goes first, and what is remembered of those that ran."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "scripts/scenarios"
MOLECULE = """\
#!/bin/sh
echo "$3" >>{order}
[ "$3" != broken ]
"""


class Checkout:
    """A checkout with scenarios, and a Molecule that only writes down what it was asked for."""

    def __init__(self, root: Path) -> None:
        self.root, self.order = root, root / "order"
        (root / "scripts").mkdir()
        shutil.copy(SCRIPT, root / "scripts/scenarios")
        text = (root / "scripts/scenarios").read_text()
        (root / "scripts/scenarios").write_text(text.replace("AT_ONCE = ", "AT_ONCE = 1 or "))
        molecule = root / ".venv/bin/molecule"
        molecule.parent.mkdir(parents=True)
        molecule.write_text(MOLECULE.format(order=self.order))
        molecule.chmod(0o755)
        (root / "Makefile").write_text(f"other:\n\t@echo other >>{self.order}\n")

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

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        self.order.write_text("")
        command = [sys.executable, str(self.root / "scripts/scenarios"), *words]
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


def test_a_failure_is_told_and_not_remembered(checkout: Checkout):
    checkout.scenario("broken", hosts=1, steps=1)
    checkout.remember({"molecule broken": 77, "molecule small": 900})
    done = checkout.run("broken", "large")
    assert done.returncode == 1
    assert "molecule broken: FAILED" in done.stdout and "jobs: 1 passed, 1 failed" in done.stdout
    assert checkout.remembered["molecule broken"] == 77
    assert checkout.remembered["molecule small"] == 900


def test_what_does_not_begin_in_time_is_named_and_has_not_failed(checkout: Checkout):
    done = checkout.run("--beside", "other", "--minutes", "0")
    assert (done.returncode, checkout.ran) == (0, [])
    assert "0 minutes were over: make other, molecule large, molecule medium, molecule small" in done.stdout
    assert "jobs: 0 passed, 0 failed" in done.stdout
    done = checkout.run("--beside", "other", "--minutes", "5")
    assert "left out" not in done.stdout
    assert checkout.ran[0] == "other" and sorted(checkout.ran[1:]) == ["large", "medium", "small"]


def test_the_order_is_one_of_chance_when_not_all_may_begin(checkout: Checkout):
    checkout.scenario("broken", hosts=1, steps=1)
    orders = set()
    while len(orders) < 3:  # of 24
        checkout.run("--minutes", "5")
        orders.add(tuple(checkout.ran))


def test_a_scenario_that_is_not_there_is_refused(checkout: Checkout):
    done = checkout.run("smal")
    assert done.returncode == 2
    assert "no scenario named smal; there are large, medium, small" in done.stderr
