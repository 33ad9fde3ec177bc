# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake of the deployer: its steps end when the test says so. Run as a program it is an attempt."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from gpufarm.serve import attempt

EPOCHS = "".join(f"epoch {number}: loss {2.5 / number:.4f}\n" for number in range(91, 101))
CONSOLE = (
    ("succeeded", "", f"{EPOCHS}the model is in /lustre/home/ann/model-100.pt\n", ""),
    (
        "failed",
        "Command exited with status 1",
        "epoch 1: " + "x" * 3000,
        "RuntimeError: CUDA out of memory <b>\n",
    ),
    ("succeeded", "", EPOCHS, "a warning\n"),
)
JOB = "of a job, which has no groups"
STEPS = ("server.configure", "partitions.configure", "hub.configure")


class Fake:
    """The fake. A step waits until its folder has a file ``go``; ``made`` there is what is deployed."""

    def __init__(self, state: Path, _password: Path | None, _warn: Callable[[str], None]) -> None:
        self.folder = state

    def names(self) -> list[str]:
        return [path.stem for path in self.folder.glob("*.made")]

    def outputs(self, name: str, *, indigo: bool) -> dict[str, Any]:
        groups = (self.folder / f"{name}.made").read_text()
        if groups == JOB:
            return {"job_name": "ann.train"}
        return {
            "jupyter_endpoint": "https://gpu1.example.org:8888/",
            "node_ip": "192.0.2.1",
            "jupyter_groups": groups,
            "gpu_slices": ["4x 1g.6gb"],
        }

    def run(self, steps: tuple[str, ...], listener: Any) -> None:
        for step in steps:
            named = SimpleNamespace(name=step, host="gpu1")
            listener.started(named)
            while not (self.folder / "go").exists():
                time.sleep(0.1)
            listener.finished(named, SimpleNamespace(tasks=["one"], seconds=1.0))

    def deploy(
        self, _template: str, _pool: Path, *, name: str, inputs: Any, group: str, listener: Any
    ) -> Any:
        self.run(STEPS, listener)
        (self.folder / f"{name}.made").write_text(inputs.get("iam_groups", JOB))
        machines = {"server": {"host": "gpu1", "address": "192.0.2.1"}} if "iam_groups" in inputs else {}
        return SimpleNamespace(deployment=SimpleNamespace(machines=machines), machines={})

    def hours(self, *, pool: Path, since: str, by: tuple[str, ...]) -> Any:
        first = datetime.now(UTC).replace(day=1)
        months = [first, first - timedelta(days=1), first - timedelta(days=40)]
        rows = []
        for number, (month, share) in enumerate(zip(months, (0.8, 1.0, 0.6), strict=True)):
            for user, profile, most in (
                ("ann", "1g.10gb", 41.5),
                ("ann", "", 12.0),
                ("bob", "3g.40gb", 7.25),
            ):
                hours = most * share
                held = {"slice_hours": hours if profile else 0.0, "gpu_hours": 0.0 if profile else hours}
                named = {"month": f"{month:%Y-%m}", "user": user, "group": "physics", "source": "slurm"}
                told = {"machine": "ctl", "profile": profile, "identity": f"{number} {user} {profile}"}
                rows.append({**named, **told, **held, "cpu_hours": 4 * hours, "memory_gib_hours": 16 * hours})
        silent = {"hub1": "Failed to connect to the host via ssh: Connection timed out"}
        return SimpleNamespace(rows=rows, machines={"ctl": "", "hub1": ""}, silent=silent)

    def console(self, name: str, *, pool: Path) -> Any:
        now = time.time()
        tasks = []
        for number, (state, reason, stdout, stderr) in enumerate(CONSOLE):
            begun = now - 600 - number * 86400
            texts = {
                "node": "job",
                "machine": f"gpu{number + 1}",
                "state": state,
                "reason": reason,
                "unread": "",
            }
            own = {"id": f"ct:{int(begun * 1000)}:0:ann.train:", "begun": begun, "ended": begun + 540}
            tasks.append(SimpleNamespace(**texts, **own, stdout=stdout, stderr=stderr, cut=["stdout"]))
        return SimpleNamespace(tasks=tasks, silent={})

    def undeploy(self, name: str, *, pool: Path, forget: list[str], listener: Any) -> None:
        self.run(STEPS[::-1], listener)
        (self.folder / f"{name}.made").unlink()


if __name__ == "__main__":
    attempt.main(Fake)
