"""Our parts of Slurm beside Slurm alone: `python -m lab.slurm_timing`.

On the hosts of the demo of a farm, in turns: the start of a job with our prolog, epilog and check of health
and without; a notebook by the hub and by a hub with batchspawner alone. Then thirty people at once, who have
notebooks and jobs on slices that no two of them may share, and a change of the slices of a node.
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import ssl
import statistics
import subprocess
import sys
import tarfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import cycle, pairwise

import click
from rich.table import Table

from lab.demo_farm import GPUS, HUB, USERS, Demo, parts
from lab.errors import LabError
from lab.farm import crowd
from lab.orchestrators import Unavailable, environment
from lab.stage import PROGRAMS, ROOT, console, for_newcomers
from lab.system import require_root, run
from lab.visitor import Visitor, trust

NAME = "slurm-timing"
USER = USERS[0]
PEOPLE = (*USERS, *(f"guest{number:02}" for number in range(1, 28)))
ROUNDS = 6
SLICE = "1g.10gb"
NODES = {profile: node for node, (_gpu, flavor) in GPUS.items() for _count, profile in parts(flavor)}
SLICES = [one for _gpu, flavor in GPUS.values() for count, one in parts(flavor) for _ in range(count)]
OTHER_FLAVOR = "3x 2g.20gb"
OURS, ALONE = "ours", "alone"
Seconds = dict[str, list[float]]  # of each of both
# Words of the hub about a cluster that does not answer.
UNREADY = "journalctl --unit=jupyterhub --output=cat --grep='is not known|is not queued|cannot be marked'"
FOLDER = "/opt/batchspawner"
PORT = 9088


@dataclass(frozen=True)
class Farm:
    """The hosts of the demo.

    Attributes:
        demo: which has made them.
        ssh_config: for them.
        address: of the machine of the hub.
    """

    demo: Demo
    ssh_config: str
    address: str

    @property
    def hub(self) -> str:
        """Address of the hub."""
        return self.demo.hub(self.address)

    @property
    def trusted(self) -> ssl.SSLContext:
        """Trusts the certificate of the hub."""
        return trust(self.demo.authority.read_text())

    def ask(self, host: str, command: str, data: bytes = b"") -> str:
        """Run a command on a host and return what it has printed.

        Raises:
            LabError: it failed.
        """
        words = ["ssh", "-F", self.ssh_config, host, command]
        done = subprocess.run(words, input=data, capture_output=True, check=False)
        if done.returncode:
            raise LabError(f"a command on {host} failed: {done.stderr.decode().strip()[-2000:]}")
        return done.stdout.decode()

    def jobs(self) -> Seconds:
        """Return seconds until a job starts."""
        program = (ROOT / "lab" / "farm" / "jobs.py").read_bytes()
        return json.loads(self.ask(HUB, f"python3 - {USER} gpu:{SLICE}:1 {ROUNDS}", program))

    def notebooks(self) -> Seconds:
        """Return seconds until a notebook answers."""
        self._serve_batchspawner()
        hubs = {OURS: self.hub, ALONE: f"http://{self.address}:{PORT}"}
        password = self.demo.passwords()[USER]
        found: Seconds = {OURS: [], ALONE: []}
        # The first of each fills caches.
        for number in range(ROUNDS + 1):
            for name, hub in hubs.items():
                with Visitor(hub, self.trusted) as visitor:
                    visitor.login_here(USER, password)
                    begun = time.monotonic()
                    visitor.spawn(gpu=SLICE if name == OURS else "")
                    found[name] += [time.monotonic() - begun] if number else []
                    visitor.stop()
        self.ask(HUB, "systemctl stop batchspawner")
        return found

    def _serve_batchspawner(self) -> None:
        (package,) = environment("batchspawner").parent.glob("lib/*/site-packages/batchspawner")
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(package, "batchspawner")
            archive.add(ROOT / "lab" / "farm" / "batchspawner.py", "config.py")
        for host in (HUB, *GPUS):
            unpack = f"mkdir --parents --mode=755 {FOLDER} && tar --extract --directory={FOLDER}"
            self.ask(host, unpack, packed.getvalue())
        settings = {
            "PATH": "/opt/jupyterhub/bin:/usr/bin:/bin",
            "PYTHONPATH": FOLDER,
            "BIND_URL": f"http://{self.address}:{PORT}/",
            "HUB_URL": f"http://{self.address}:{PORT + 1}",
            "PROXY_URL": f"http://127.0.0.1:{PORT + 2}",
            "GRES": f"gpu:{SLICE}:1",
        }
        given = " ".join(f"--setenv={name}={value}" for name, value in settings.items())
        unit = "systemd-run --quiet --collect --unit=batchspawner --property=RuntimeDirectory=batchspawner"
        self.ask(HUB, f"{unit} {given} /opt/jupyterhub/bin/jupyterhub --config={FOLDER}/config.py")
        wait = "curl --silent --fail --output /dev/null --retry 60 --retry-all-errors --retry-delay 1"
        run([*wait.split(), f"http://{self.address}:{PORT}/hub/login"])

    def crowd(self) -> float:
        """Have all people start a notebook at the same moment, and submit a job meanwhile.

        Returns:
            Seconds for which a notebook was waited for at most.

        Raises:
            LabError: a slice was used by two at once.
        """
        wishes = dict(zip(PEOPLE, cycle(SLICES)))
        with ThreadPoolExecutor(1) as beside:
            submitted = beside.submit(crowd.jobs, self.ask, HUB, NODES, wishes)
            try:
                uses, waited = crowd.notebooks(self.hub, self.trusted, self.demo.passwords(), wishes)
            except LabError as error:
                told = self.ask(HUB, f"{UNREADY} || true")
                raise LabError(f"{error}\nThe hub's log says why:\n{told}") from error
            uses += submitted.result()
        if wrong := crowd.shared(uses):
            raise LabError("; ".join(wrong))
        return max(waited)

    def repartition(self) -> list[float]:
        """Change the slices of a node.

        Returns:
            Seconds that the change takes on the node, then until the controllers have the new slices, and
            then until the node takes jobs.

        Raises:
            LabError: it failed; the terminal has what Ansible said.
        """
        command = [str(PROGRAMS / "ansible-playbook"), "-i", str(self.demo.inventory_file)]
        command += ["gpufarm.cluster.slurm_repartition", "-e", f"slurm_repartition_nodes={NODES[SLICE]}"]
        command += ["-e", json.dumps({"mig_partition_flavor": OTHER_FLAVOR})]
        given = {**self.demo.environment, **self.demo.slurm_on_bench}
        seen = []
        with subprocess.Popen(command, cwd=ROOT, env=given, stdout=subprocess.PIPE, text=True) as play:
            assert play.stdout is not None
            for line in play.stdout:
                if line.startswith(("PLAY [Partition", "PLAY [Hand", "PLAY [Resume", "PLAY RECAP")):
                    seen.append(time.monotonic())
        if play.returncode or len(seen) != 4:
            raise LabError("the slices could not be changed (see above)")
        return [later - before for before, later in pairwise(seen)]


def told(what: str, seconds: Seconds, table: Table) -> None:
    """Add a line of figures to a table."""
    ours, alone = (statistics.median(seconds[name]) for name in (OURS, ALONE))
    table.add_row(what, f"{ours:.2f}", f"{alone:.2f}", f"{ours / alone:.2f}")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Measure and print. Takes the machine for about a quarter of an hour."""
    require_root()
    demo = Demo(NAME, users=PEOPLE)
    table = Table(box=None, pad_edge=False)
    for column in ("median, in seconds", "with ours", "without", "ratio"):
        table.add_column(column, justify="left" if not table.columns else "right")
    try:
        demo.up()
        status = demo.bench(console.print).status()
        address = next(host["address"] for host in status["hosts"] if host["name"] == HUB)
        farm = Farm(demo, status["ssh_config"], address)
        console.print("jobs ...")
        told("a job starts", farm.jobs(), table)
        console.print("notebooks ...")
        told("a notebook answers", farm.notebooks(), table)
        out, _facts = for_newcomers()
        out.print(table)
        console.print("a crowd ...")
        longest = farm.crowd()
        console.print("other slices ...")
        node, controllers, resumed = farm.repartition()
    finally:
        demo.down()
    out.print(
        f"{len(PEOPLE)} people wanted {len(SLICES)} slices at once, and submitted a job each: all were served"
        f" within {longest:.0f} s, and no slice had two users."
    )
    out.print(
        f"Other slices: {node:.1f} s for the node, {controllers:.1f} s until the controllers have them, and"
        f" {resumed:.1f} s until the node takes jobs."
    )


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except (LabError, Unavailable) as problem:
        sys.exit(f"slurm_timing: {problem}")
