"""How fast a bench of many hosts comes and goes on this machine: `python -m lab.scale [HOSTS]`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import rootfs
from lab.bench import Bench, cache_dir, state_dir
from lab.errors import LabError
from lab.spec import HostSpec

HOSTS = 32


def measure(count: int) -> dict[str, float]:
    """Boot hosts, log in to each, take them down.

    :param count: number of hosts.
    :returns: seconds of each phase, and MiB of memory that the running hosts take from this machine.
    :raises LabError: if a host does not come up or does not let one in.
    """
    bench = Bench("scale", state_dir(), cache_dir(), print)
    bench.down()
    specs = [HostSpec(f"node{index}") for index in range(1, count + 1)]
    rootfs.ensure(rootfs.recipe_for("bookworm", kernel=False), bench.cache, print)
    before = _available_mebibytes()
    try:
        results = {"up": _seconds(lambda: bench.up(specs))}
        results["memory_mebibytes"] = before - _available_mebibytes()
        results["up_again"] = _seconds(lambda: bench.up(specs))
        results["ssh_to_each"] = _seconds(lambda: _log_in(bench, [spec.name for spec in specs]))
    finally:
        down = _seconds(bench.down)
    return {**results, "down": down}


def _log_in(bench: Bench, names: list[str]) -> None:
    def true_on(name: str) -> int:
        return subprocess.run(["ssh", "-F", bench.ssh_config, name, "true"], check=False).returncode

    with ThreadPoolExecutor(max_workers=8) as pool:
        refused = [name for name, status in zip(names, pool.map(true_on, names), strict=True) if status]
    if refused:
        raise LabError(f"{len(refused)} of {len(names)} hosts refuse the login, the first is {refused[0]}")


def _seconds(work: Callable[[], object]) -> float:
    started = time.monotonic()
    work()
    return time.monotonic() - started


def _available_mebibytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) >> 10 for line in lines if line.startswith("MemAvailable:"))


def main() -> None:
    """Print the figures, one per line."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else HOSTS
    try:
        results = measure(count)
    except LabError as error:
        sys.exit(f"Error: {error}")
    print(f"{count} hosts")
    for name, value in results.items():
        unit = "MiB" if name == "memory_mebibytes" else "s"
        print(f"  {name.removesuffix('_mebibytes').replace('_', ' '):12} {value:8.1f} {unit}")


if __name__ == "__main__":
    main()
