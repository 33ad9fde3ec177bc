# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Chromium without a window, for tests: it reaches some hosts and nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

PROGRAM = Path("/usr/bin/chromium")


@contextmanager
def chromium(home: Path, hosts: str, program: Path = PROGRAM) -> Iterator[Browser]:
    """Start Chromium, and end it.

    Args:
        home: folder for what it writes.
        hosts: pattern of the hosts that pages may load from; whatever is elsewhere fails.
        program: starts Chromium.
    """
    folders = dict.fromkeys(("HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"), str(home))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program,
            args=[
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--no-first-run",
                f"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE {hosts}",
            ],
            env={**folders, "PATH": "/usr/bin:/bin"},
        )
        yield browser
        browser.close()
