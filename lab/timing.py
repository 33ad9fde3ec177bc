"""How long the demo takes, cold and warm, and where the time goes: `python -m lab.timing`."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from lab.errors import LabError
from lab.stage import ROOT
from lab.system import require_root

STEP = re.compile(r"^(\S+) on \S+: ok, .*?, (\d+) s$", re.MULTILINE)  # what gpufarm deploy says of each step
RUNS = ("cold", "new bench", "again")

console = Console(stderr=True, highlight=False)


def make(checkout: Path, target: str, environment: dict[str, str]) -> tuple[float, str]:
    """Make a target in a checkout and take its time.

    Args:
        checkout: the folder with the Makefile.
        target: such as "demo".
        environment: all of the environment.

    Returns:
        Seconds, and what it wrote.

    Raises:
        LabError: it failed; the message has its last line.
    """
    start = time.monotonic()
    done = subprocess.run(
        ["make", target],
        cwd=checkout,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = [line for line in done.stdout.splitlines() if line.strip() and not line.startswith("make:")]
        raise LabError(f"make {target} failed: {lines[-1] if lines else 'no output'}")
    return time.monotonic() - start, done.stdout


def demo_times(checkout: Path, environment: dict[str, str]) -> dict[str, float]:
    """Seconds of each phase of one `make demo`, and of each step of its deployment."""
    seconds, output = make(checkout, "demo", environment)
    file = checkout / ".work" / environment["LAB_BENCH"] / "timings.json"
    phases = json.loads(file.read_text())["seconds"]
    times = {"setup": seconds - sum(phases.values()), "bench": phases["bench"], "service": phases["service"]}
    times |= {f"  {step}": float(taken) for step, taken in STEP.findall(output)}
    return {**times, "check": phases["check"], "all": seconds}


def table(times: dict[str, dict[str, float]]) -> Table:
    """The figures as a table: a row for each phase or step, a column for each run."""
    result = Table(box=None, pad_edge=False)
    result.add_column("seconds")
    for run in times:
        result.add_column(run, justify="right")
    for row in dict.fromkeys(row for run in times.values() for row in run):
        result.add_row(row, *(f"{run[row]:.1f}" if row in run else "" for run in times.values()))
    return result


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Time `make demo` with nothing downloaded, with a new bench, and once more; then the bench itself.

    Works in a copy of the checkout with caches and state of its own, and removes them.
    """
    require_root()
    with tempfile.TemporaryDirectory(prefix="gpufarm-timing-", dir="/var/tmp") as temporary:
        folder = Path(temporary)
        checkout = folder / "checkout"
        ignored = shutil.ignore_patterns(".venv", ".work", ".git", "*_cache", "__pycache__", "*.egg-info")
        shutil.copytree(ROOT, checkout, symlinks=True, ignore=ignored)
        environment = {
            **os.environ,
            "LAB_BENCH": "timing",
            "LAB_STATE_DIR": str(folder / "state"),
            "LAB_CACHE_DIR": str(folder / "cache"),
            "UV_CACHE_DIR": str(folder / "uv"),
            "PIP_NO_CACHE_DIR": "1",
            "npm_config_cache": str(folder / "npm"),
        }
        times = {}
        try:
            for run in RUNS:
                console.print(f"make demo, {run} ...")
                times[run] = demo_times(checkout, environment)
                if run == "cold":
                    make(checkout, "clean", environment)
        finally:
            make(checkout, "clean", environment)
    Console(highlight=False).print(table(times))
    sys.exit(subprocess.run([sys.executable, "-m", "lab.scale"], cwd=ROOT, check=False).returncode)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except LabError as problem:
        sys.exit(f"timing: {problem}")
    except (KeyboardInterrupt, click.Abort):
        sys.exit(130)
