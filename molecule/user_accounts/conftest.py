"""Logins from the controller."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.patience import PATIENCE


@pytest.fixture
def login(facts: dict[str, Any]) -> Callable[[str, str, str], subprocess.CompletedProcess[str]]:
    """Run a command as a user of the host, over SSH and with one of the keys."""
    folder = Path(os.environ["MOLECULE_EPHEMERAL_DIRECTORY"])

    def run(user: str, key: str, command: str) -> subprocess.CompletedProcess[str]:
        options = ["BatchMode=yes", "IdentitiesOnly=yes", "IdentityAgent=none", "StrictHostKeyChecking=no"]
        options += ["UserKnownHostsFile=/dev/null", "LogLevel=ERROR", "ControlPath=none"]
        words = [word for option in options for word in ("-o", option)]
        argv = ["ssh", "-F", "none", *words, "-i", str(folder / key), f"{user}@{facts['address']}", command]
        return subprocess.run(argv, capture_output=True, text=True, check=False, timeout=PATIENCE)

    return run
