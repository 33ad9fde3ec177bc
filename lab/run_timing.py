"""Cost of runs on real hosts for the controller: `python -m lab.run_timing`.

A run that changes nothing, on one, four and 32 hosts; a run of every step, on one and four; and a repetition
of the demo's deployment.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from lab.bench import Bench, cache_dir, state_dir
from lab.demo import FLAVOR, TEMPLATE, Demo
from lab.errors import LabError
from lab.inventory import inventory
from lab.spec import HostSpec
from lab.spent import Figure, spent
from lab.stage import PROGRAMS, ROOT
from lab.system import require_root

HOSTS = (1, 4, 32)
# Every step on all of them would keep this machine busy for a quarter of an hour, with the work of the hosts.
FULL_ON = (1, 4)
NAME = "run-timing"
VARIABLES = {"nvidia_driver_source": "preinstalled", "mig_partition_flavor": FLAVOR}
UNCHANGED = "site, nothing to do"
FULL = "site, every step"

console = Console(stderr=True, highlight=False)


def on_hosts(folder: Path) -> dict[str, list[Figure]]:
    """Measure runs of the playbook `site` for GPU hosts.

    Args:
        folder: an empty one.

    Returns:
        The figures of each run, for each number of hosts.
    """
    bench = Bench(NAME, state_dir(), cache_dir(), lambda _text: None)
    names = [f"gpu{number}" for number in range(1, HOSTS[-1] + 1)]
    try:
        bench.up([HostSpec(name, gpus=("a100-80gb:1",), layers=("gpu",)) for name in names])
        hosts = inventory(bench.status())["_meta"]["hostvars"]
        pool = folder / "hosts.json"
        group = {"hosts": {name: hosts[name] for name in names}, "vars": VARIABLES}
        pool.write_text(json.dumps({"gpu_nodes": group}))
        command: list[str | Path] = [Path(sys.executable).with_name("ansible-playbook"), "-i", pool]
        command += [ROOT / "playbooks" / "site.yml", "--limit"]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}
        console.print(f"{len(names)} hosts are set up ...")
        spent([*command, "all"], environment, ROOT)
        runs: dict[str, list[Figure]] = {UNCHANGED: [], FULL: []}
        for count in HOSTS:
            console.print(f"runs on {count} of them ...")
            limited = [*command, ",".join(names[:count])]
            runs[UNCHANGED].append(spent(limited, environment, ROOT))
            if count in FULL_ON:
                runs[FULL].append(spent([*limited, "-e", "gpufarm_full_run=true"], environment, ROOT))
        return runs
    finally:
        bench.down()


def of_the_demo() -> Figure:
    """Measure the demo's deployment when there is nothing to do."""
    demo = Demo(f"{NAME}-demo")
    try:
        demo.up()
        again: list[str | Path] = [PROGRAMS / "gpufarm", "deploy", TEMPLATE, "--name", demo.name]
        return spent(again, demo.environment, ROOT)
    finally:
        demo.down()


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure and print. Takes the machine for some minutes: 32 hosts are set up."""
    require_root()
    demo = of_the_demo()
    with tempfile.TemporaryDirectory(prefix="gpufarm-timing-") as temporary:
        runs = on_hosts(Path(temporary))
    table = Table(box=None, pad_edge=False)
    table.add_column("seconds of CPU of the controller / by the clock")
    for count in HOSTS:
        table.add_column(f"{count} host{'s' * (count > 1)}", justify="right")
    for what, figures in {**runs, "gpufarm deploy ml_infn, nothing to do": [demo]}.items():
        table.add_row(what, *(f"{cpu:.1f} / {clock:.1f}" for cpu, clock in figures))
    out = Console(highlight=False)
    out.print(table)
    for what, figures in runs.items():
        one = figures[0][0]
        ratios = ", ".join(
            f"{count} hosts {cpu / one:.1f}" for count, (cpu, _) in zip(HOSTS[1:], figures[1:], strict=False)
        )
        out.print(f"{what}: times the CPU of one host: {ratios}")


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except LabError as problem:
        sys.exit(f"run_timing: {problem}")
