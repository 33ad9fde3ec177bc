"""Fixtures of this scenario."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from testinfra.host import Host

INVENTORY = Path(__file__).resolve().parents[2] / "inventories" / "lab"


@pytest.fixture
def partition(host: Host) -> Iterator[Callable[..., str]]:
    """Partition the GPU and return what was said; at the end it is as it was."""
    name = host.check_output("hostname")

    def apply(flavor: str, keep_held: bool = False) -> str:
        command = [
            "ansible",
            name,
            "--inventory",
            str(INVENTORY),
            "--module-name",
            "gpufarm.cluster.mig_partition",
        ]
        command += ["--args", f"flavor='{flavor}' keep_held={keep_held}"]
        done = subprocess.run(command, check=not keep_held, stdout=subprocess.PIPE, text=True)
        return done.stdout

    yield apply
    apply("1x 3g.40gb, 2x 1g.10gb")
