# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-stage, which copies data of jobs. Jobs run it, and users where a copy has failed."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from ..declared import Declared, StagingError, shown
from . import copying, stages, trees

HELP = """
Data of jobs that were submitted with gpufarm-submit.

  gpufarm-stage             your jobs with data in the staging area, and the last line of the log of each
  gpufarm-stage in 17       bring in the inputs of job 17, or go on with that
  gpufarm-stage out 17      take its outputs to the store, or go on with that, and remove its folder

Slurm runs the last two. Run them yourself where a copy has failed, or to keep what a failed job has left.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpufarm-stage", description=HELP, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in (("in", "bring in the inputs of a job"), ("out", "take out its outputs")):
        command = commands.add_parser(name, help=text)
        command.add_argument("job", type=_number, help="number of the job")
    commands.add_parser("check", help="tell whether the areas and the stores of this machine are there")
    return parser


def _number(text: str) -> int:
    """Return the number of a job.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a job, such as 17")
    return int(text)


def _list(areas: str) -> Iterator[str]:
    above = stages.folder(areas)
    for path in sorted(above.iterdir(), key=lambda path: path.name.zfill(20)):
        log = above / f"{path.name}.log"
        if path.name.isdigit() and path.is_dir():
            lines = log.read_text(errors="replace").splitlines() if log.exists() else []
            yield f"{path.name:>8}  {shown(lines[-1]) if lines else 'nothing was copied so far'}"


def _say(text: str) -> None:
    """Tell the time and what is done; Slurm writes it into the log of the job."""
    sys.stdout.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text}\n")
    sys.stdout.flush()


def _bring_in(stage: stages.Stage, declared: Declared, stores: dict[str, str]) -> None:
    for one in declared.inputs:
        source = trees.resolved(stores, one.place)
        size, number = trees.content(source, str(one.place))
        copying.bring(source, stage.path, one.name, stage.job, replace=False)
        _say(f"stage-in: {one.place} is there as {shown(one.name)}: {size / 1e9:.3f} GB in {number} files")


def _take_out(stage: stages.Stage, declared: Declared, stores: dict[str, str]) -> None:
    """Take out all outputs that can be, and keep the stage unless these are all.

    Raises:
        StagingError: some cannot; the text has the reason of each.
    """
    failed = []
    for one in declared.outputs:
        try:
            source = stage.path / one.name
            size, number = trees.content(source, f"the output {shown(one.name)}")
            goal = trees.resolved(stores, one.place)
            copying.bring(source, goal.parent, goal.name, stage.job, declared.replace)
            _say(f"stage-out: {shown(one.name)} is in {one.place}: {size / 1e9:.3f} GB in {number} files")
        except StagingError as error:
            failed.append(str(error))
    if failed:
        raise StagingError(f"{'; '.join(failed)}. All is kept in {stage.path}: gpufarm-stage out {stage.job}")
    subprocess.run(["rm", "-rf", "--one-file-system", "--", stage.path], check=True)


def _comment(job: str, text: str) -> None:
    """Tell a reason where users look: in the comment of a job. Slurm may be away, or the job over."""
    words = ["scontrol", "update", f"JobId={job}", f"Comment={text[:300]}"]
    try:
        subprocess.run(words, check=False, timeout=30, stdin=subprocess.DEVNULL, capture_output=True)
    except (OSError, subprocess.TimeoutExpired):
        return


def _copy(options: argparse.Namespace, settings: Mapping[str, Any]) -> None:
    stage = stages.Stage(stages.folder(settings["areas"]), options.job)
    try:
        with stage.alone() as declared:
            {"in": _bring_in, "out": _take_out}[options.command](stage, declared, settings["stores"])
    except StagingError as error:
        text = f"stage-{options.command} failed: {error}"
        # The job of the inputs never starts then; that of the outputs is the one that runs.
        job = str(options.job) if options.command == "in" else os.environ.get("SLURM_JOB_ID", "")
        if job.isdigit() and "SLURM_JOB_ID" in os.environ:
            _comment(job, text)
        raise StagingError(text) from None


def _check(settings: Mapping[str, Any]) -> None:
    if not Path(settings["areas"]).is_dir():
        raise StagingError(f"there is no folder {settings['areas']}")
    for store in settings["stores"]:
        trees.folder_of(settings["stores"], store)


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; return its exit status. Errors are one sentence on the standard error."""
    os.umask(0o077)
    options = _parser().parse_args(words)
    try:
        settings = stages.settings()
        if options.command in ("in", "out"):
            _copy(options, settings)
        elif options.command == "check":
            _check(settings)
        else:
            for line in _list(settings["areas"]):
                sys.stdout.write(f"{line}\n")
    except StagingError as error:
        sys.stderr.write(f"gpufarm-stage: {shown(str(error))}.\n")
        return 1
    except (OSError, subprocess.CalledProcessError) as error:
        sys.stderr.write(f"gpufarm-stage: the data cannot be copied: {shown(str(error))}.\n")
        return 1
    return 0
