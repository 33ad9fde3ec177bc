"""The job runs as its owner on a slice of its own, and its files are the owner's."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from collections.abc import Callable

from testinfra.host import Host

REMEMBERED = "/var/lib/gpufarm/slurm_job/ada/train.json"


def test_it_has_run_once_as_it_was_asked_for(
    host: Host, eventually: Callable[[Callable[[], bool]], None]
) -> None:
    number = json.loads(host.file(REMEMBERED).content_string)["number"]
    state = f"scontrol --oneliner show job {number}"
    eventually(lambda: "JobState=FAILED" in host.check_output(state))
    told = host.check_output(state)
    for words in ("UserId=ada(2001)", "ExitCode=3:0", "TimeLimit=01:00:00", "gres/gpu:a30:1", "mem=64M"):
        assert words in told, words
    jobs = host.check_output("squeue --all --noheader --states=all --format=%%A=%%r").split()
    # Beside the one that the refusals have left.
    assert [job for job in jobs if not job.endswith("=BadConstraints")] == [f"{number}=NonZeroExitCode"]
    out = host.file(f"/home/ada/work/one/train-{number}.out")
    assert (out.content_string, out.user, out.group) == ("the loss is 0.1 on 0\n", "ada", "ada")
    assert host.file(f"/home/ada/work/one/train-{number}.err").content_string == "no such data\n"


def test_nobody_else_reads_what_is_remembered(host: Host) -> None:
    assert (host.file(REMEMBERED).user, host.file(REMEMBERED).mode) == ("root", 0o600)
    assert host.run("runuser -u ada -- cat %s", REMEMBERED).rc != 0
