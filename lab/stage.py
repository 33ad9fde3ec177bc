"""Shared by the demos: a bench that is brought up and removed, phases with their times, a way to end."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from lab import bench as benches
from lab.bench import Bench
from lab.errors import LabError
from lab.system import run, write_atomically

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent

console = Console(stderr=True, highlight=False)


def for_newcomers() -> tuple[Console, Table]:
    """Return where a demo tells its next steps, and an empty table for them: a name, and what to know."""
    facts = Table.grid(padding=(0, 2))
    facts.add_column(no_wrap=True)
    facts.add_column(overflow="fold")
    return Console(highlight=False, width=None if sys.stdout.isatty() else 120), facts


def line(text: str) -> None:
    """Print a line for a person who waits."""
    console.print(escape(text), soft_wrap=True)


@dataclass
class Stage:
    """A demo on this machine; its bench has its name.

    Attributes:
        name: of both.
        seconds: what each phase took.
    """

    name: str
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def directory(self) -> Path:
        """Files that the demo leaves for its user: timings, certificates."""
        return ROOT / ".work" / self.name

    @property
    def environment(self) -> dict[str, str]:
        """Environment of the programs of the product."""
        return {**os.environ, "LAB_BENCH": self.name, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")}

    @property
    def slurm_on_bench(self) -> dict[str, str]:
        """Variables by which the tasks that prepare Slurm on the bench find their files."""
        return {
            "ANSIBLE_HOST_PATTERN_MISMATCH": "ignore",  # groups that are not here
            "MOLECULE_PROJECT_DIRECTORY": str(ROOT),
            "MOLECULE_EPHEMERAL_DIRECTORY": str(self.directory),
        }

    def bench(self, say: Callable[[str], None]) -> Bench:
        """The bench of the demo."""
        return Bench(self.name, benches.state_dir(), benches.cache_dir(), say)

    def down(self) -> None:
        """Remove the bench and the demo's files, with what the deployer remembers of it."""
        self.bench(line).down()
        shutil.rmtree(self.directory, ignore_errors=True)
        line(f"bench and deployment {self.name} are gone; downloaded packages and images stay cached")

    def timings(self, *, cold: bool, started: bool) -> dict[str, Any]:
        """Write down what each phase took.

        Args:
            cold: whether the bench had to download its images.
            started: whether it started a host.
        """
        state = "cold" if cold else "fresh" if started else "warm"
        found = {"state": state, "seconds": self.seconds, "total": round(sum(self.seconds.values()), 1)}
        write_atomically(self.directory / "timings.json", json.dumps(found, indent=2) + "\n")
        return found

    def authorities(self, status: dict[str, Any], host: str, path: str, name: str) -> list[Path]:
        """Put the certificates of a service's and the provider's authority where the user finds them.

        Args:
            status: of the bench.
            host: machine of the service.
            path: of the certificate there.
            name: of the file for the user.
        """
        text = run(["ssh", "-F", status["ssh_config"], host, "cat", path])
        texts = {name: text, "iam-ca.crt": Path(status["iam"]["ca_file"]).read_text()}
        for file, content in texts.items():
            write_atomically(self.directory / file, content)
        return [self.directory / file for file in texts]

    def program(self, command: Sequence[str], environment: dict[str, str] | None = None) -> str:
        """Run a program of the product; what it says on standard error goes to the terminal.

        Args:
            command: name and arguments.
            environment: beside that of the demo.

        Returns:
            Its standard output.

        Raises:
            LabError: it failed; the terminal has all that it said.
        """
        given = {**self.environment, **(environment or {})}
        command = [str(PROGRAMS / command[0]), *command[1:]]
        pipe = subprocess.PIPE
        with subprocess.Popen(command, cwd=ROOT, env=given, stdout=pipe, text=True) as process:
            try:
                output, _ = process.communicate()
            except KeyboardInterrupt:
                process.wait()  # it was interrupted too, and leaves its state in order
                raise
        if process.returncode:
            sys.stderr.write(output)
            raise LabError("the service could not be set up (see above); the next run continues")
        return output

    @contextmanager
    def phase(self, name: str, title: str, moves: bool = True) -> Iterator[Callable[[str], None]]:
        """Show a phase while it runs, then its time; `moves` is off while a child draws its own progress."""
        console.print(f"[bold]{escape(title)}[/]")
        start = time.monotonic()
        spinner = console.status("") if moves and console.is_terminal else None

        def say(text: str) -> None:
            if spinner:
                spinner.update(escape(text))
            else:
                line(f"  {text}")

        with spinner or nullcontext():
            yield say
        self.seconds[name] = round(time.monotonic() - start, 1)
        console.print(f"  [green]done[/] in {self.seconds[name]:.1f} s")


def images_missing() -> bool:
    """Tell whether the bench has to download its images."""
    return not any(path.is_dir() for path in (benches.cache_dir() / "rootfs").glob("*"))


def commands(demo: Callable[..., Any], about: str, options: Sequence[click.Option] = ()) -> click.Group:
    """Return the commands `up` and `down` of a demo.

    Args:
        demo: makes it, from what the options are given.
        about: help of both.
        options: of `up`.
    """
    up = click.Command(
        "up",
        params=list(options),
        callback=lambda **given: demo(**given).up(),
        help="Bring the demo up, prove it, and tell how to use it. A second run changes nothing.",
    )
    down = click.Command(
        "down",
        callback=lambda: demo().down(),
        help="Remove all of the demo except downloaded packages and images.",
    )
    return click.Group(
        commands=[up, down], help=about, context_settings={"help_option_names": ["-h", "--help"]}
    )


def played(main: click.Command) -> None:
    """Run the command of a demo, and end with one sentence when something goes wrong."""
    try:
        main(standalone_mode=False)
    except (LabError, click.ClickException) as problem:
        message = problem.format_message() if isinstance(problem, click.ClickException) else str(problem)
        console.print(f"[bold red]demo:[/] {escape(message)}", soft_wrap=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        console.print("demo: interrupted; run it again to continue, or make clean to remove it")
        sys.exit(130)
