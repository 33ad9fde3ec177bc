"""Targets of the Makefile and jobs of `scripts/scenarios` run, in any folder of a clone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
PROGRAM = """\
import json, os, pathlib, sys
told = {"words": sys.argv[1:], **{name: os.environ.get(name) for name in ("ANSIBLE_CONFIG", "ANSIBLE_HOME")}}
told["home_is_there"] = os.path.isdir(told["ANSIBLE_HOME"] or "")
pathlib.Path(f"told-{os.getpid()}.json").write_text(json.dumps(told))
"""


class Checkout:
    """A checkout below a path with a blank, whose programs only tell how they were called."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "a checkout"
        (self.root / "scripts").mkdir(parents=True)
        shutil.copy(ROOT / "Makefile", self.root)
        shutil.copy(ROOT / "scripts/scenarios", self.root / "scripts")
        shutil.copytree(ROOT / "scripts/proof", self.root / "scripts/proof")
        self.program("scripts/setup", "#!/bin/sh\n")
        (self.root / "program.py").write_text(PROGRAM)
        subprocess.run(["git", "init", "--quiet", self.root], check=True)
        for name in ("molecule", "pytest"):
            start = shlex.join([sys.executable, str(self.root / "program.py")])
            self.program(f".venv/bin/{name}", f'#!/bin/sh\nexec {start} "$@"\n')

    def program(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)
        (self.root / name).chmod(0o700)

    def scenario(self, name: str) -> None:
        (self.root / "molecule" / name).mkdir(parents=True)
        (self.root / "molecule" / name / "molecule.yml").write_text("platforms: []\n")

    def run(self, *command: str, **environment: str) -> list[dict[str, Any]]:
        """Run a command under umask 077; return what the programs told, sorted by their arguments."""
        inherited = {name: value for name, value in os.environ.items() if name != "ANSIBLE_HOME"}
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**inherited, **environment},
            umask=0o077,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        told = [json.loads(file.read_text()) for file in self.root.glob("told-*.json")]
        return sorted(told, key=lambda one: one["words"])


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    checkout = Checkout(tmp_path)
    for name in ("one", "two"):
        checkout.scenario(name)
    return checkout


def test_a_target_runs_the_programs_and_the_ansible_of_its_checkout(checkout: Checkout):
    (told,) = checkout.run("make", "unit")
    assert told["words"] == ["-q", "-n", "2", "tests/unit", "tests/contract"]
    assert told["ANSIBLE_CONFIG"] == f"{checkout.root}/ansible.cfg"
    assert told["ANSIBLE_HOME"] == f"{checkout.root}/.work/ansible"


def test_every_job_has_a_home_of_ansible_of_its_own(checkout: Checkout):
    command = (sys.executable, "scripts/scenarios", "one", "two", "--beside", "unit")
    told = checkout.run(*command, ANSIBLE_HOME="/shared")
    assert [one["words"][-1] for one in told] == ["tests/contract", "one", "two"]
    homes = {one["ANSIBLE_HOME"] for one in told}
    assert len(homes) == 3 and "/shared" not in homes
    assert all(one["home_is_there"] for one in told)
    assert not any(Path(home).exists() for home in homes)


@pytest.mark.parametrize(
    ("opened", "passes"), [("molecule/one/molecule.yml", True), ("molecule/two/molecule.yml", False)]
)
def test_a_job_that_opens_what_is_not_among_its_inputs_fails(checkout: Checkout, opened: str, passes: bool):
    checkout.program(".venv/bin/molecule", f'#!/bin/sh\necho "$PWD/{opened}" >> "$PROOF_OPENED"\n')
    done = subprocess.run(
        [sys.executable, "scripts/scenarios", "one"],
        cwd=checkout.root,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode == 0) == passes, done.stdout + done.stderr
    assert (f"it opened what is not among its inputs: {opened}" in done.stdout) != passes


def test_the_end_says_again_why_jobs_failed(checkout: Checkout):
    checkout.program(".venv/bin/molecule", '#!/bin/sh\nseq 100\necho "no $3"; exit 1\n')
    done = subprocess.run(
        [sys.executable, "scripts/scenarios", "one", "two"],
        cwd=checkout.root,
        capture_output=True,
        text=True,
        check=False,
    )
    *_, told = done.stdout.split("whole log:")
    assert told.count("FAILED, its log says") == 2
    assert "  no one\nmolecule two" in told and "  no two\njobs: 0 passed, 2 failed" in told


FATAL = "fatal: [gpu1]: FAILED! => "
UNFIT = "FAILED molecule/one/tests/test_it.py::test_it - unfit"


@pytest.mark.parametrize(
    ("log", "says"),
    [
        # a refusal that was wanted, then one that was not, then a recap
        ([FATAL + "wanted", *"abc", "TASK [x]", FATAL + "unfit", *"0123456789"], FATAL + "unfit"),
        ([FATAL + "wanted", *"abc", UNFIT, *"0123456789"], UNFIT),
        ([FATAL + "unfit", "FAILED - RETRYING: [gpu1]: x", *"0123456789abcdefg"], FATAL + "unfit"),
        (["the only line"], "the only line"),
    ],
    ids=["a task", "a test", "a retry", "nothing known"],
)
def test_the_end_says_what_failed_and_no_recap(checkout: Checkout, log: list[str], says: str):
    (checkout.root / "log").write_text("\n".join(log))
    checkout.program(".venv/bin/molecule", "#!/bin/sh\ncat log; exit 1\n")
    done = subprocess.run(
        [sys.executable, "scripts/scenarios", "one"],
        cwd=checkout.root,
        capture_output=True,
        text=True,
        check=False,
    )
    *_, told = done.stdout.split("FAILED, its log says")
    assert f"  {says}" in told.splitlines()[:6]
    assert len(told.splitlines()) <= 14
