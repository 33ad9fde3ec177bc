"""The hook of the role mpi at the tasks of jobs: how they are started, unless their user says otherwise."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from harness.life import set_up

HOOK = "/etc/gpufarm/slurm/task_prolog.d/mpi"


@pytest.mark.parametrize(
    ("chosen", "told"), [({}, "export SLURM_MPI_TYPE=pmix\n"), ({"SLURM_MPI_TYPE": "none"}, "")]
)
def test_tasks_are_started_by_pmix_unless_the_user_says_otherwise(
    chosen: dict[str, str], told: str, tmp_path: Path
) -> None:
    """Slurm takes lines that begin with export (slurm.conf(5), TaskProlog), and ends the task if it fails."""
    host, _ = set_up("mpi")
    program = tmp_path / "hook"
    program.write_text(host.files[HOOK].content)
    done = subprocess.run(["/bin/sh", program], env=chosen, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == (told, "")
