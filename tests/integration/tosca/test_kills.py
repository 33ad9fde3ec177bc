# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed with signal 9 again and again, at any moment, a deployment comes to its end and leaves no secret."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from pathlib import Path

import yaml
from gpufarm.state import Store

DATA = Path(__file__).resolve().parents[2] / "unit" / "tosca" / "data"
HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
WORDS = ("hunter1", "hunter2", "hunter3")
KILLS = 12


class Deployment:
    """Three notes on this machine, of which each has a secret."""

    def __init__(self, folder: Path) -> None:
        self.state, self.notes = folder / "state", folder / "notes"
        self.pool, self.inputs = folder / "hosts.yml", folder / "inputs.yaml"
        self.notes.mkdir()
        self.pool.write_text(yaml.safe_dump({"all": {"hosts": {"here": HERE}}}))
        accounts = [{"user": "ada", "password": "hunter1"}]
        given = {"phrase": "hunter2", "access_token": "hunter3", "accounts": accounts}
        self.inputs.write_text(yaml.safe_dump(given | {"folder": str(self.notes), "seconds": 1}))

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "gpufarm", *arguments],
            env=os.environ | {"GPUFARM_STATE_DIR": str(self.state)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str | Path) -> str:
        process = self.start(*arguments)
        output, _none = process.communicate()
        assert process.returncode == 0, output
        return output

    def killed_after(self, seconds: float, *arguments: str | Path) -> None:
        process = self.start(*arguments)
        time.sleep(seconds)
        process.kill()
        process.communicate()

    def leaks(self) -> list[Path]:
        """Files on disk with a secret in them; links into memory are not followed."""
        files = [path for path in self.state.rglob("*") if path.is_file() and not path.is_symlink()]
        return [path for path in files if any(word in path.read_text(errors="replace") for word in WORDS)]

    def orphans(self) -> list[str]:
        listing = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        return [line for line in listing.splitlines() if f"{self.state}/runs/" in line]


def test_killed_again_and_again(tmp_path: Path) -> None:
    chance = random.Random(1)
    made = Deployment(tmp_path)
    deploy = ("deploy", DATA / "safe.yaml", "--pool", made.pool, "--inputs", made.inputs)
    began = time.monotonic()
    made.run(*deploy)
    whole = time.monotonic() - began
    made.run("undeploy", "safe", "--yes")
    for _count in range(KILLS):
        made.killed_after(chance.uniform(0, whole), *deploy)
        assert made.leaks() == []
        assert "Traceback" not in made.run("status")
    made.run(*deploy)
    assert (made.notes / "first").read_text() == "hunter2" and (made.notes / "ledger").is_file()
    assert made.orphans() == []
    for _count in range(KILLS // 4):
        made.killed_after(chance.uniform(0, whole), "undeploy", "safe", "--yes")
        assert made.leaks() == []
        if "safe" not in made.run("status"):
            break
    else:
        made.run("undeploy", "safe", "--yes")
    assert made.orphans() == [] and not (made.notes / "first").exists()
    store = Store(made.state)
    assert not store.run_path("safe").is_symlink() and store.names() == []
