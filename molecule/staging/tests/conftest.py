"""A user at the prompt of a login node, and the jobs of that user."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from testinfra.host import Host

STAGING = "/scratch/areas/users/ada/staging"


@dataclass
class User:
    """Ada, who submits jobs, with the time that these take."""

    host: Host
    eventually: Callable[[Callable[[], bool]], None]

    def run(self, command: str, *words: str, name: str = "ada") -> Any:
        """Run a command as a user."""
        return self.host.run(f"cd / && runuser -u {name} -- {command}", *words)

    def said(self, command: str, *words: str) -> str:
        """Run a command that works, and return what it says."""
        done = self.run(command, *words)
        assert done.rc == 0, done.stderr
        return str(done.stdout)

    def submit(self, script: str, options: str) -> list[str]:
        """Submit a job that runs a script of shell; return the numbers of stage-in, job and stage-out."""
        self.host.check_output("printf '#!/bin/sh\nset -eu\n%%s\n' %s >/tmp/job.sh", script)
        told = self.said(f"gpufarm-submit {options} -o /dev/null /tmp/job.sh it works")
        found = re.search(r"squeue --jobs=(\d+),(\d+),(\d+);", told)
        assert found, told
        return list(found.groups())

    def job(self, number: str) -> str:
        """Return what Slurm tells of a job."""
        return self.host.check_output(f"scontrol --oneliner show job {number}")

    def wait(self, number: str, state: str = "COMPLETED") -> None:
        """Wait until a job is in a state."""
        self.eventually(lambda: f"JobState={state} " in self.job(number))

    def log(self, number: str) -> str:
        """Return what the copies of a job have said."""
        return self.host.file(f"{STAGING}/{number}.log").content_string


@pytest.fixture
def ada(host: Host, eventually: Callable[[Callable[[], bool]], None]) -> User:
    """Return the user, on the machine that has Slurm, with an area and an empty folder in the store."""
    if host.check_output("hostname") != "staging13":
        pytest.skip("no Slurm here")
    host.check_output("su --login ada --command 'bash --login -i -c true'")
    host.check_output("rm -rf /bulk/ada/* /bulk/all/*")
    return User(host, eventually)
