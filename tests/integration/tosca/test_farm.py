# SPDX-License-Identifier: GPL-3.0-or-later
"""32 hosts, three waves, and one host that loses its power in the middle: nobody else is touched twice."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from lab import bench as benches
from lab.bench import Bench
from lab.inventory import inventory
from lab.patience import PATIENCE
from lab.spec import HostSpec

FARM = Path(__file__).parent / "farm" / "farm.yaml"
HEAD, LOST = "h01", "h20"
HOSTS = [HostSpec(f"h{number:02}") for number in range(1, 33)]

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(os.geteuid() != 0, reason="makes mounts and network namespaces: needs root"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    made = Bench("farm", tmp_path_factory.mktemp("lab"), benches.cache_dir(), lambda _text: None)
    try:
        made.up(HOSTS)
        yield made
    finally:
        made.down()


@pytest.fixture
def pool(bench: Bench, tmp_path: Path) -> Path:
    path = tmp_path / "hosts.yml"
    path.write_text(yaml.safe_dump({"all": {"hosts": inventory(bench.status())["_meta"]["hostvars"]}}))
    return path


def start(folder: Path, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpufarm", *arguments],
        env=os.environ | {"GPUFARM_STATE_DIR": str(folder / "state")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def entries(bench: Bench) -> dict[str, list[str]]:
    """Setups on each host, by the first words, each as often as it happened."""
    found = {}
    for host in bench.hosts():
        path = host.root / "var/lib/farm-journal"
        found[host.name] = (
            [line.split()[0] for line in path.read_text().splitlines()] if path.exists() else []
        )
    return found


def done(folder: Path) -> list[str]:
    """The steps that are remembered as done."""
    path = folder / "state" / "farm.json"
    steps = json.loads(path.read_text())["steps"] if path.exists() else {}
    return [name for name, step in steps.items() if step["digest"]]


def test_a_host_that_loses_its_power(bench: Bench, pool: Path, tmp_path: Path) -> None:
    workers = {host.name for host in HOSTS} - {HEAD}
    lost = bench.host(LOST)
    hold = lost.root / "etc/farm-holds-tool"
    hold.touch()

    run = start(tmp_path, "deploy", FARM, "--pool", pool)
    deadline = time.monotonic() + PATIENCE
    while len(done(tmp_path)) < len(workers) and run.poll() is None:
        if time.monotonic() > deadline:
            run.terminate()
        time.sleep(0.2)
    assert run.poll() is None, run.communicate()
    bench.network.detach(lost.name, lost.address)
    _output, error = run.communicate(timeout=PATIENCE)
    assert run.returncode == 1
    assert f"{LOST} cannot be reached" in error and "not run because of that: list.configure" in error
    assert error.count("cannot be reached") == 1
    expected = {name: ["base", "tool"] for name in workers} | {LOST: ["base"], HEAD: []}
    assert entries(bench) == expected

    lost.stop()
    hold.unlink()
    assert bench.up(HOSTS) == [LOST]
    resumed = start(tmp_path, "resume", "farm")
    _output, error = resumed.communicate(timeout=PATIENCE)
    assert resumed.returncode == 0, error
    assert entries(bench) == expected | {LOST: ["base", "tool"], HEAD: ["list"]}
