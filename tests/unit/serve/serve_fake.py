# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of the deployer behind the same interface: its steps take a moment, and it remembers what it did.

Run as a program it is an attempt. Its folder has a file for each deployment, a lock for each, and a journal.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import filelock
from gpufarm.answers import Machine
from gpufarm.errors import GpufarmError, Interrupted, Locked
from gpufarm.serve import attempt

STEPS = ("server.create", "server.configure", "hub.configure")


@dataclass
class Step:
    name: str
    host: str = "gpu1"


@dataclass
class Done:
    tasks: list[str] = field(default_factory=list)
    seconds: float = 0.0


class FakeDeployer:
    """The fake. Inputs decide what happens: ``text: fail``, ``text: crash``, ``text: slow``."""

    def __init__(self, state: Path, _password: Path | None, warn: Callable[[str], None]) -> None:
        self.folder, self.warn = state, warn
        state.mkdir(parents=True, exist_ok=True)

    def names(self) -> list[str]:
        return [path.stem for path in self.folder.glob("*.json")]

    def outputs(self, name: str, *, indigo: bool) -> dict[str, Any]:
        return {"text": self.read(name)["inputs"].get("text", ""), "node_ip": "192.0.2.1"}

    def read(self, name: str) -> dict[str, Any]:
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text()) if path.exists() else {"steps": [], "inputs": {}, "status": ""}

    def write(self, name: str, state: dict[str, Any]) -> None:
        fresh = self.folder / f"{name}.{os.getpid()}"
        fresh.write_text(json.dumps(state))
        fresh.replace(self.folder / f"{name}.json")

    def note(self, line: str) -> None:
        with (self.folder / "journal").open("a") as file:
            file.write(line + "\n")

    @contextlib.contextmanager
    def locked(self, name: str) -> Iterator[None]:
        lock = filelock.FileLock(self.folder / f"{name}.lock")
        try:
            lock.acquire(timeout=0.1)
        except filelock.Timeout as error:
            raise Locked(f"deployment {name} is being changed by another run") from error
        try:
            yield
        except KeyboardInterrupt as error:
            raise Interrupted("interrupted") from error
        finally:
            lock.release()

    def step(self, name: str, step: str, text: str, listener: Any) -> None:
        listener.started(Step(step))
        time.sleep(3600 if text == "slow" else 0.03)
        if text == "crash":
            os.kill(os.getpid(), 9)
        if text == "fail" and step == STEPS[-1]:
            listener.failed(Step(step), "a task failed", Done())
            raise GpufarmError(f"{step} on gpu1: a task failed (log: /srv/gpufarm/logs/{name})")
        self.note(f"{step} of {name}")
        listener.finished(Step(step), Done(["one"], 0.1))

    def deploy(
        self, _template: str, _pool: Path, *, name: str, inputs: Any, group: str, listener: Any
    ) -> Any:
        with self.locked(name):
            state = self.read(name) | {"inputs": inputs, "status": "deploying", "group": group}
            self.write(name, state)
            for step in STEPS:
                if step not in state["steps"]:
                    self.step(name, step, inputs.get("text", ""), listener)
                    state["steps"].append(step)
                    self.write(name, state)
            self.write(name, state | {"status": "deployed"})
        machines = {"server": {"host": "gpu1", "address": "192.0.2.1"}}
        found = Machine("gpu1", "192.0.2.1", 8, 2**34, 2**40, "debian", "13", [])
        looked_at = {} if inputs.get("text") == "nothing to do" else {"server": found}
        return SimpleNamespace(deployment=SimpleNamespace(machines=machines), machines=looked_at)

    def update(self, name: str, *, inputs: Any, pool: Path, listener: Any) -> Any:
        state = self.read(name)
        self.write(name, state | {"steps": state["steps"][:1]})
        return self.deploy("", pool, name=name, inputs=inputs, group=state["group"], listener=listener)

    def hours(self, *, pool: Path, since: str, by: Any) -> Any:
        if (self.folder / "silent").exists():
            raise GpufarmError("the hours cannot be read: no machine answers")
        self.note(f"hours since {since}")
        told = {"month": "2026-11", "user": "ann", "source": "slurm", "machine": "ctl", "identity": "1"}
        hours = {"slice_hours": 1.0, "gpu_hours": 2.0, "cpu_hours": 3.0, "memory_gib_hours": 4.0}
        row = dict.fromkeys(by, "") | told | hours
        return SimpleNamespace(rows=[row], machines={"ctl": ""}, silent={})

    def console(self, name: str, *, pool: Path) -> Any:
        """Tell the content of the file of the deployment, which a test has written."""
        self.note(f"console of {name}")
        told = json.loads((self.folder / f"{name}.console").read_text())
        if "failure" in told:
            raise GpufarmError(told["failure"])
        return SimpleNamespace(tasks=[SimpleNamespace(**one) for one in told["tasks"]], silent=told["silent"])

    def show(self, name: str) -> Any:
        """Tell the machines: those for which there are steps."""
        nodes = {step.partition(".")[0] for step in self.read(name)["steps"]} & {"server"}
        return SimpleNamespace(machines=dict.fromkeys(nodes))

    def undeploy(self, name: str, *, pool: Path, forget: list[str], listener: Any) -> None:
        with self.locked(name):
            state = self.read(name)
            while state["steps"]:
                self.step(name, state["steps"][-1], "", listener)
                state["steps"].pop()
                self.write(name, state | {"status": "undeploying"})
            (self.folder / f"{name}.json").unlink(missing_ok=True)


if __name__ == "__main__":
    attempt.main(FakeDeployer)
