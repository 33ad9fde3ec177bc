# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The three jobs of Slurm that bring data in, use it, and take results out. No I/O.

Sources: sbatch(1); squeue(1), "%E"; scontrol(1), "Dependency".
"""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple

from .declared import StagingError

PROGRAM = "/opt/gpufarm/bin/gpufarm-stage"
# A copy that is killed, as for its memory, goes on where it was. So does one whose time is nearly up: it has
# the time of the partition for jobs that ask for none, as a site may limit what can be asked for. Where a
# comparison alone takes longer, that would never end. A lost node needs no help: Slurm queues its jobs again.
_SCRIPT = """\
why="was killed" most=3
trap 'why="ran out of time" most=100; kill "$copy"' USR1
{program} {way} {job} &
copy=$!
# A signal ends the wait, and the copy may go on.
while wait "$copy"; status=$?; kill -0 "$copy" 2>/dev/null; do :; done
if [ "$status" -gt 128 ]; then
  echo "$(date '+%F %T') stage-{way}: job $SLURM_JOB_ID $why"
  [ "$(grep -c ": job $SLURM_JOB_ID $why" {log})" -gt "$most" ] || scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
"""
# Slurm sends it 60 to 120 seconds before the end (sbatch(1), --signal); a copy needs a moment of these.
_SIGNAL = "--signal=B:USR1@60"


class Queued(NamedTuple):
    """A job that waits, as Slurm tells it: the jobs that it depends on, and its account."""

    depends: str
    account: str


def number(output: str) -> int:
    """Return the number of the job that ``sbatch --parsable`` has told.

    Raises:
        StagingError: there is none.
    """
    found = re.search(r"^([1-9][0-9]*)(;.*)?$", output, re.MULTILINE)
    if not found:
        raise StagingError(
            "sbatch has told no number of the job; leave out options such as --quiet and --test-only, and"
            " look with 'squeue --me' for a job that is held"
        )
    return int(found[1])


# How squeue is asked for `queued`.
QUEUED = ("squeue", "--noheader", "--format=%E|%a")


def queued(output: str) -> Queued:
    """Return what Slurm tells of a job, of which an array or a job of several parts may have more lines.

    Raises:
        StagingError: there is no such job.
    """
    lines = output.splitlines()
    if not lines:
        raise StagingError("Slurm does not know the job any more")
    depends, _bar, account = lines[0].partition("|")
    # Brackets tell whether a dependency is fulfilled, and a star stands for all tasks of an array.
    plain = re.sub(r"\([^)]*\)|_\*", "", depends)
    account = account.strip()
    return Queued(plain, "" if account == "(null)" else account)


def dependency(own: str, first: int) -> str:
    """Return what a job depends on: what its user asked for, and that its data are there.

    Args:
        own: what the user asked for; empty for nothing.
        first: number of the job that brings the data in.

    Raises:
        StagingError: the user asked for one of several, which cannot be added to.
    """
    if "?" in own:
        raise StagingError(f"the job depends on {own}, of which one is enough; depend on all, with commas")
    return ",".join([*([own] if own else []), f"afterok:{first}"])


def waits(output: str, first: int) -> bool:
    """Return whether all parts of a job wait for the job that brings the data in.

    Args:
        output: what `QUEUED` has told of the job.
        first: number of the job that brings the data in.
    """
    lines = output.splitlines()
    return bool(lines) and all(re.search(rf"\bafterok:{first}\b", line) for line in lines)


def copy_words(
    way: str, job: int, log: str, account: str, partition: str, more: tuple[str, ...]
) -> list[str]:
    """Return the command that submits a job which copies.

    Args:
        way: ``in`` or ``out``.
        job: number of the job whose data are copied.
        log: path of the file for its output.
        account: account of that job; empty for the user's default one.
        partition: partition of the site for copies; empty for the default one.
        more: further options of sbatch.
    """
    return [
        "sbatch",
        "--parsable",
        f"--job-name=stage-{way}-{job}",
        "--ntasks=1",
        "--cpus-per-task=1",
        "--mem=1G",
        "--requeue",
        _SIGNAL,
        "--kill-on-invalid-dep=yes",
        f"--output={log}",
        "--open-mode=append",
        "--chdir=/",
        *([f"--account={account}"] if account else []),
        *([f"--partition={partition}"] if partition else []),
        *more,
        "--wrap",
        _SCRIPT.format(program=PROGRAM, way=way, job=job, log=shlex.quote(log)),
    ]
