# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-submit, which submits a job with the data that it declares."""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from ... import _quota as quota
from ..._host.io import timed
from ..._mounts.io.points import mounted
from .. import jobs
from ..declared import Declared, Request, StagingError, parse, shown
from . import stages, trees

_PATIENCE = 60.0  # seconds for an answer of Slurm
_LUSTRE = ("lustre", "fuse.lustre")

HELP = """\
Submits a job to Slurm, with the data that it needs and makes.

  gpufarm-submit --input STORE/PATH[:NAME] --output NAME:STORE/PATH [SBATCH-OPTIONS] job.sh [ARGUMENTS]

  --input STORE/PATH[:NAME]   is copied before the job gets its GPUs; the job finds it as $GPUFARM_STAGE/NAME.
                              Without :NAME it keeps its own. Write a colon behind a path that has one in it.
  --output NAME:STORE/PATH    the job leaves it as $GPUFARM_STAGE/NAME; it is copied to the store afterwards.
  --replace                   outputs take the place of what is in the store; otherwise they change nothing.
  --always                    takes outputs to the store also if the job fails. Without it, they stay in the
                              staging area then, and 'gpufarm-stage out NUMBER' takes them to the store.

Both may be given several times, and come before the options of sbatch, which has options of the same names:
write -- in front of the latter where that is not clear.

Three jobs are submitted: stage-in, which needs no GPU; the job, which begins when the data are there; and
stage-out. A copy that is interrupted goes on where it was, and each is compared with its source by checksums.
An array is one job in this: its tasks share the folder. See also: gpufarm-stage --help.

Stores of this machine: {stores}
"""


def _slurm(words: Sequence[str]) -> str:
    """Return what a program of Slurm says, without options that the user has for sbatch in the environment.

    Raises:
        StagingError: it fails; the text has its reason.
    """
    names = ("HOME", "LOGNAME", "PATH", "USER", "SLURM_CONF")
    environment = {name: os.environ[name] for name in names if name in os.environ}
    try:
        done = subprocess.run(
            list(words),
            check=False,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
            env={"LC_ALL": "C.UTF-8", **environment},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StagingError(f"{words[0]} gives no answer: {error}") from None
    if done.returncode:
        raise StagingError(f"{words[0]} has failed: {' '.join(done.stderr.split())}")
    return done.stdout


def _submit_held(words: Sequence[str]) -> int:
    """Submit the job as the user wants it, but held, and return its number.

    Raises:
        StagingError: sbatch has refused it.
    """
    try:
        done = subprocess.run(
            ["sbatch", "--parsable", "--hold", "--kill-on-invalid-dep=yes", *words],
            check=False,
            stdout=subprocess.PIPE,
            encoding="utf-8",
            errors="replace",
            timeout=_PATIENCE,
        )
    except OSError as error:
        raise StagingError(f"sbatch cannot be run: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise StagingError(
            "sbatch does not end; leave out --wait, and look with 'squeue --me' for a job that is held"
        ) from None
    if done.returncode:
        raise StagingError("sbatch has refused the job, so nothing was submitted")
    return jobs.number(done.stdout)


def _submit_all(request: Request, settings: Mapping[str, Any]) -> tuple[stages.Stage, int, int]:
    """Submit the job and both copies; all or nothing.

    Returns:
        The stage, and the numbers of the jobs stage-in and stage-out.

    Raises:
        StagingError: something was refused.
    """
    above = stages.folder(settings["areas"])
    job = _submit_held(request.words)
    made, stage = [job], stages.Stage(above, job)
    with contextlib.ExitStack() as undo:
        undo.callback(lambda: _end("scancel", *map(str, made)))
        stage.make(request.declared)
        undo.callback(_end, "rm", "-rf", "--one-file-system", "--", str(stage.path))
        queued = jobs.queued(_slurm([*jobs.QUEUED, f"--jobs={job}"]))
        after = "afterany" if request.declared.always else "afterok"
        for way, more in (("in", ("--hold",)), ("out", (f"--dependency={after}:{job}",))):
            words = jobs.copy_words(way, job, str(stage.log), queued.account, settings["partition"], more)
            made.append(jobs.number(_slurm(words)))
        depends = jobs.dependency(queued.depends, made[1])
        _slurm(["scontrol", "update", f"JobId={job}", f"Dependency={depends}"])
        if not jobs.waits(_slurm([*jobs.QUEUED, f"--jobs={job}"]), made[1]):
            raise StagingError(
                "a part of the job would not wait for its data; submit each part as a job of its own"
            )
        _slurm(["scontrol", "release", f"{made[1]},{job}"])
        undo.pop_all()
    return stage, made[1], made[2]


def _end(*words: str) -> None:
    """Run a program that takes back what was done, whatever it says."""
    with contextlib.suppress(OSError):
        subprocess.run(words, check=False, stdin=subprocess.DEVNULL)


def _check(declared: Declared, settings: Mapping[str, Any]) -> list[str]:
    """Check what can be known before the job, and return a line for each input.

    Raises:
        StagingError: something is missing, unreadable, too large or in the way.
    """
    stores, size, number, lines = settings["stores"], 0, 0, []
    for one in declared.inputs:
        found = trees.content(trees.resolved(stores, one.place), str(one.place))
        size, number = size + found.size, number + found.number
        lines.append(f"{one.place}, {found.size / 1e9:.3f} GB in {found.number} files")
    for one in declared.outputs:
        goal = trees.resolved(stores, one.place)
        if os.path.lexists(goal) and not declared.replace:
            raise StagingError(f"{one.place} is there already; give another place, or --replace")
        if not os.access(goal.parent, os.W_OK | os.X_OK):
            raise StagingError(f"you may not write to the folder of {one.place}")
    _check_room(settings["areas"], size, number)
    return lines


def _check_room(areas: str, size: int, number: int) -> None:
    """Refuse inputs that the area has no room for.

    Raises:
        StagingError: there is too little room.
    """
    above = stages.folder(areas)
    free = os.statvfs(above)
    room, files = free.f_bavail * free.f_frsize, free.f_favail if free.f_files else number
    mount = mounted(areas)
    if mount is not None:
        by_lustre = mount.kind in _LUSTRE
        name = pwd.getpwuid(os.getuid()).pw_name
        try:
            told = timed.run(quota.use_command(name, mount.path, by_lustre), _PATIENCE)
        except OSError:  # no program, so no quota that a user could ask for
            told = timed.Answer(None, "", "")
        left = quota.left(told.output, mount.path)
        if left is not None:
            room, files = min(room, left.size), min(files, left.files)
    if size > room:
        raise StagingError(
            f"the inputs have {size / 1e9:.3f} GB, and {above} has room for {room / 1e9:.3f} GB; remove what"
            " you do not need there ('gpufarm-stage' lists jobs with data), or declare less"
        )
    if number > files:
        raise StagingError(
            f"the inputs are {number} files, and you may have {files} more in {above}; pack them"
        )


def _tell(stage: stages.Stage, first: int, last: int, lines: Sequence[str], declared: Declared) -> str:
    inputs = "; ".join(lines) or "no inputs"
    outputs = "; ".join(f"{shown(one.name)} to {one.place}" for one in declared.outputs) or "no outputs"
    when = "when the job has ended" if declared.always else "if the job succeeds"
    rest = "" if declared.always else f"If it fails, its results stay there: gpufarm-stage out {stage.job}\n"
    return (
        f"stage-in   {first}  {inputs}\n"
        f"job        {stage.job}  begins when the data are in {stage.path}, its $GPUFARM_STAGE\n"
        f"stage-out  {last}  {outputs}, {when}\n"
        f"{rest}"
        f"To watch: squeue --jobs={first},{stage.job},{last}; what the copies say: {stage.log}\n"
    )


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status. Errors are one sentence on the standard error."""
    try:
        settings = stages.settings()
        request = parse(sys.argv[1:] if words is None else words, settings["stores"])
        if request.helps:
            sys.stdout.write(
                HELP.format(
                    stores=", ".join(f"{name} ({path})" for name, path in sorted(settings["stores"].items()))
                )
            )
            return 0
        if not request.words and sys.stdin.isatty():
            raise StagingError("there is no job; name its file, see gpufarm-submit --help")
        lines = _check(request.declared, settings)
        stage, first, last = _submit_all(request, settings)
        sys.stdout.write(_tell(stage, first, last, lines, request.declared))
    except StagingError as error:
        sys.stderr.write(f"gpufarm-submit: {shown(str(error))}.\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"gpufarm-submit: the data cannot be looked at: {shown(str(error))}.\n")
        return 1
    except KeyboardInterrupt:
        sys.stderr.write("gpufarm-submit: interrupted; nothing was submitted.\n")
        return 130
    return 0
