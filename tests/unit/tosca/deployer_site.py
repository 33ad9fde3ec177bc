"""A site of one machine, this one, and the deployer as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from click.testing import CliRunner
from gpufarm.cli import main

DATA = Path(__file__).parent / "data"
SERVICE = DATA / "service.yaml"


@dataclass(frozen=True)
class Answer:
    """Answer of a command."""

    status: int
    output: str
    error: str


@dataclass(frozen=True)
class Site:
    """A pool with this machine, a state folder, and a folder that the test service writes to."""

    root: Path

    @property
    def pool(self) -> Path:
        return self.root / "hosts.yml"

    @property
    def state(self) -> Path:
        return self.root / "state"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    def journal(self) -> list[str]:
        """The operations that ran, in order."""
        path = self.notes / "journal"
        return [" ".join(line.split()[:2]) for line in path.read_text().splitlines()] if path.exists() else []

    def remembered(self, name: str = "notes") -> dict[str, Any]:
        return json.loads((self.state / f"{name}.json").read_text())

    def machines(self, **machines: dict[str, Any]) -> None:
        """Write the inventory."""
        self.pool.write_text(yaml.safe_dump({"all": {"hosts": machines}}))

    def environment(self) -> dict[str, str]:
        return os.environ | {"GPUFARM_STATE_DIR": str(self.state)}

    def gpufarm(self, *arguments: str | Path, typed: str = "", **environment: str) -> Answer:
        """Run the command in this process; `typed` is what it reads from its standard input."""
        result = CliRunner().invoke(
            main,
            [str(argument) for argument in arguments],
            input=typed,
            env={"GPUFARM_STATE_DIR": str(self.state), **environment},
        )
        if result.exception and not isinstance(result.exception, SystemExit):
            raise result.exception
        return Answer(result.exit_code, result.stdout, result.stderr)

    def deploy(self, *arguments: str | Path, **environment: str) -> Answer:
        """Deploy the test service."""
        return self.gpufarm(
            "deploy",
            SERVICE,
            "--pool",
            self.pool,
            "--input",
            f"folder={self.notes}",
            *arguments,
            **environment,
        )

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a deployment of the test service as a process of its own."""
        command = [sys.executable, "-m", "gpufarm", "deploy", SERVICE, "--pool", self.pool]
        return subprocess.Popen(
            [*command, "--input", f"folder={self.notes}", *arguments],
            env=self.environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )


HERE = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
