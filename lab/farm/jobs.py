"""Seconds until jobs of Slurm start, with our programs and without, as JSON; runs on a controller.

usage: jobs.py USER GRES ROUNDS
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

CONFIGURATION = Path("/etc/slurm/slurm.conf")
PROGRAMS = re.compile(r"(?m)^(Prolog|Epilog|TaskProlog|HealthCheckProgram)=.*\n")
JOBS = 6  # of a round


def configure(text: str) -> None:
    """Hand a configuration to the nodes."""
    CONFIGURATION.write_text(text)
    subprocess.run(["scontrol", "reconfigure"], check=True)
    time.sleep(2)


def start(user: str, gres: str) -> float:
    """Return seconds until a job starts, which tells the time."""
    words = ["runuser", f"--user={user}", "--", "srun", "--chdir=/", f"--gres={gres}", "date", "+%s.%N"]
    begun = time.time()
    told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    return float(told) - begun


def main() -> None:
    """Measure and print."""
    user, gres, rounds = sys.argv[1:]
    ours = CONFIGURATION.read_text()
    alone, without = PROGRAMS.subn("", ours)
    if without != 4:
        sys.exit(f"{CONFIGURATION} has other programs than those that are left out")
    seconds: dict[str, list[float]] = {"ours": [], "alone": []}
    try:
        for _ in range(int(rounds)):
            for name, text in (("alone", alone), ("ours", ours)):
                configure(text)
                seconds[name] += [start(user, gres) for _ in range(JOBS)]
    finally:
        configure(ours)
    print(json.dumps(seconds))


if __name__ == "__main__":
    main()
