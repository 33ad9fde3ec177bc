"""Tries whether tests notice a mutant, confined so that its mistake does no harm."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mutation.mutant import Mutant

HERE = Path(__file__).resolve().parent
NAMESPACES = ("unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child")
CPU_LIMIT = 240  # seconds of the processor, of one process; a mutant that loops forever ends there
HANGS_AFTER = 900  # seconds; a mutant that waits forever ends there
SURVIVED, NOTICED, BROKEN = 40, 41, 42  # exit statuses of try.sh


class Broken(Exception):
    """The tests decide nothing: they fail without a mistake too. The message has their output."""


class Unconfined(Exception):
    """Mutants cannot be run here so that they do no harm. The message is a sentence with the reason."""


@dataclass(frozen=True)
class Verdict:
    """Result of a mutant.

    Attributes:
        mutant: the mutant.
        noticed: whether a test failed because of it, or never ended.
        output: what the tests printed.
    """

    mutant: Mutant
    noticed: bool
    output: str


def check(root: Path, mutant: Mutant, commands: Sequence[Sequence[str]]) -> Verdict:
    """Run tests on a mutant.

    Args:
        root: the repository; it stays as it is.
        mutant: the mutant.
        commands: words for each call of pytest; the first that fails ends it.

    Raises:
        Broken: a test fails without the mistake too.
        Unconfined: no test was run.
    """
    if not commands:
        return Verdict(mutant, False, "no test comes to this file")
    confined = (*NAMESPACES, "sh", HERE / "sandbox.sh", root, str(CPU_LIMIT))
    tests = ["\t".join(words) for words in commands]
    process = subprocess.Popen(
        [*confined, "sh", HERE / "try.sh", mutant.path, *tests],
        cwd=root,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,  # a signal to the whole group of processes stays in there
        env={**os.environ, "PATH": f"{root}/.venv/bin:{os.environ['PATH']}", "PY_COLORS": "0"},
    )
    try:
        output, _ = process.communicate(mutant.text, timeout=HANGS_AFTER)
    except subprocess.TimeoutExpired:
        process.kill()  # and with it all processes of its namespace
        output, _ = process.communicate()
        return Verdict(mutant, True, output)
    if process.returncode == BROKEN:
        raise Broken(f"{mutant}: tests fail without this mistake too:\n{output[-3000:]}")
    if process.returncode not in (SURVIVED, NOTICED):
        said = (output.strip().splitlines() or ["it gave no reason"])[-1]
        raise Unconfined(
            f"Mistakes cannot be tried here, as the sandbox was not set up ({said}); run this as root where "
            "namespaces and overlay mounts are allowed, in a container one with CAP_SYS_ADMIN."
        )
    return Verdict(mutant, process.returncode == NOTICED, output)
