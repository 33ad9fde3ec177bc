# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-slurm-metrics: write the metrics of a Slurm cluster for the node exporter."""

from __future__ import annotations

import json
import socket
import sys
import time
from pathlib import Path
from typing import Any

from ..._host.io import timed
from ..._host.io.files import replace_file
from ..slurm import Cluster, controllers, render, reporter

# Only Slurm's own account and root see the jobs of all users (slurm.conf(5), PrivateData).
AS_SLURM = ("setpriv", "--reuid=slurm", "--regid=slurm", "--clear-groups", "--")
SECONDS = 20.0  # for one program
LOOK = "look into 'journalctl -u slurmctld'"


class NotTold(Exception):
    """Slurm does not answer a question; a sentence says why."""


def main() -> int:
    """Write the metrics once; the exit status is 1 if Slurm did not tell everything.

    The command line has the path of the file with the metrics.
    """
    up: dict[str, bool] = {}
    jobs = nodes = None
    associations = problem = ""
    try:
        up = controllers(_ask("scontrol", "ping", "--json"))
        leading = reporter(up)
        if not leading:
            problem = f"No controller of Slurm answers ({', '.join(up)}); {LOOK}."
        elif leading == socket.gethostname().partition(".")[0]:
            jobs = _ask("squeue", "--json")["jobs"]
            nodes = _ask("scontrol", "show", "nodes", "--json")["nodes"]
            associations = _run("scontrol", "show", "assoc_mgr", "flags=assoc", "--oneliner")
    except NotTold as error:
        problem = str(error)
    replace_file(
        Path(sys.argv[1]), render(Cluster(up, jobs, nodes, associations), problem, time.time()), 0o644
    )
    if problem:
        sys.stderr.write(f"{problem}\n")
    return int(bool(problem))


def _ask(*words: str) -> dict[str, Any]:
    """Return the answer of a program of Slurm.

    Raises:
        NotTold: it fails, does not end in time, or does not write JSON.
    """
    try:
        found: dict[str, Any] = json.loads(_run(*words))
    except ValueError as error:
        raise NotTold(
            f"'{' '.join(words)}' did not write JSON: {error}; Slurm 24.11 or later does."
        ) from error
    return found


def _run(*words: str) -> str:
    """Return what a program of Slurm printed.

    Raises:
        NotTold: it fails, or does not end in time.
    """
    told = " ".join(words)
    try:
        answer = timed.run([*AS_SLURM, *words], SECONDS)
    except OSError as error:
        raise NotTold(f"'{told}' cannot be started: {error.strerror}; install setpriv.") from error
    if answer.status is None:
        raise NotTold(f"'{told}' did not end within {SECONDS:.0f} seconds; {LOOK}.")
    if answer.status:
        reason = answer.errors.strip() or f"exit status {answer.status}"
        raise NotTold(f"'{told}' fails: {reason}; {LOOK}.")
    return answer.output
