# SPDX-License-Identifier: GPL-3.0-or-later
"""Independent clients work with the fakes as with Marathon and Chronos."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from lab import orchestrators
from lab.patience import PATIENCE

ROOT = Path(__file__).resolve().parents[3]
PASSWORD = "for-the-tests"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def answers(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextmanager
def running(module: str, user: str, *words: str) -> Iterator[int]:
    """Run a fake as a program, as it runs on a host, and yield its port."""
    port = free_port()
    program = subprocess.Popen(
        [sys.executable, "-m", module, *words, "--http_port", str(port), "--hostname", "127.0.0.1"],
        cwd=ROOT,
        env=os.environ | {"MESOSPHERE_HTTP_CREDENTIALS": f"{user}:{PASSWORD}"},
        stdout=subprocess.DEVNULL,
    )
    try:
        end = time.monotonic() + PATIENCE
        while not answers(port):
            assert program.poll() is None and time.monotonic() < end, f"{module} does not answer"
            time.sleep(0.1)
        yield port
    finally:
        program.terminate()
        program.wait(PATIENCE)


@pytest.fixture(scope="module")
def found() -> tuple[dict, dict]:
    try:
        oracle = orchestrators.environment("mesos_clients")
    except orchestrators.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))
    memory = ("--internal_store_backend", "mem", "--master", "zk://m/mesos")
    features = ("--enable_features", "gpu_resources")
    with ExitStack() as stack:
        marathon = stack.enter_context(running("lab.marathon.server", "marathon", *memory, *features))
        chronos = stack.enter_context(running("lab.chronos.server", "chronos", "--zk_hosts", "mem"))
        done = subprocess.run(
            [
                oracle / "python",
                Path(__file__).with_name("oracle.py"),
                f"http://127.0.0.1:{marathon}",
                f"127.0.0.1:{chronos}",
                PASSWORD,
            ],
            capture_output=True,
            text=True,
            check=False,
            timeout=2 * PATIENCE,
        )
    assert done.returncode == 0, done.stderr
    return tuple(json.loads(done.stdout))


def test_marathon(found: tuple[dict, dict]) -> None:
    told, _jobs = found
    assert told.pop("leader").startswith("127.0.0.1:")
    assert "MarathonStatusUpdateEvent" in told.pop("events")
    assert told == {
        "ping": "pong",
        "info": "1.11.24",
        "first event": "MarathonEventStreamAttached",
        "created": [2, {"a": "b"}, 1],
        "locked": 409,
        "tasks": 2,
        "endpoints": 2,
        "deployment": True,
        "rolled back": 2,
        "version": 2,
        "killed": "/ada/web",
        "invalid": 422,
        "group": ["/ben/one"],
        "gone": 404,
    }


def test_chronos(found: tuple[dict, dict]) -> None:
    _apps, told = found
    assert told == {
        "added": None,
        "dropped": ["gpus", "nonsense"],
        "runs": {"train": 1, "after": 1},
        "graph": "node,train,success,idle",
        "stat": 1,
        "left": [],
        "unknown": "No remaining Chronos servers t",
    }
