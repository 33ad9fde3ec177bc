# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command gpufarm-gateway: follow Marathon and keep the routes of HAProxy as its apps ask for them.

Every event, and a look from time to time, brings the gateway up to date. It runs until it is ended.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ..._host.io.files import replace_file
from ..routes import Settings
from .haproxy import Haproxy, HaproxyError, taken
from .marathon import Account, Marathon, MarathonError
from .names import Names
from .update import Gateway, Places, Report

# A look without an event: what was missed is not missed for long, and what HAProxy refused is tried again.
RESYNC = 60.0  # seconds
# A deployment of hundreds of tasks is a handful of reloads, and a task that ends is out within a second.
BETWEEN = 0.5  # seconds
SHORTEST, LONGEST = 0.5, 15.0  # seconds until the next try to get events
MODE = 0o644  # of the file that the role and administrators read
SILENCE = 90.0  # seconds; Marathon keeps its connections alive much more often


def say(text: str) -> None:
    """Tell the journal."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def follow(marathon: Marathon, dirty: threading.Event, ended: threading.Event) -> None:
    """Set an event whenever something may have changed, and whenever events were missed.

    Args:
        marathon: whose events.
        dirty: is set.
        ended: ends it, at the next word of Marathon.
    """
    pause, turn, told = SHORTEST, 0, ""
    while not ended.is_set():
        url = marathon.urls[turn % len(marathon.urls)]
        try:
            for name in marathon.events(url, SILENCE):
                told = ""
                if not name:
                    say(f"Following the events of {url}.")
                pause = SHORTEST
                dirty.set()
                if ended.is_set():
                    return
        except MarathonError as error:
            if str(error) != told:
                told = str(error)
                say(f"{told}; trying again.")
                dirty.set()
        turn += 1
        # Not all gateways at the same moment, when a leader is gone.
        ended.wait(pause * random.uniform(0.5, 1.5))  # noqa: S311
        pause = min(pause * 2, LONGEST)


class Follower:
    """Updates the gateway and tells about it."""

    def __init__(self, marathon: Marathon, gateway: Gateway, status: Path) -> None:
        """Take Marathon, the gateway, and the file that tells how things are."""
        self.marathon = marathon
        self.gateway = gateway
        self.status = status
        self._told: set[str] = set()
        self._report = Report()

    def look(self) -> str:
        """Update once.

        Returns:
            Problem of the whole update; empty if there is none.
        """
        failure = ""
        try:
            self._report = self.gateway.update(self.marathon.apps())
        except (MarathonError, HaproxyError, OSError) as error:
            failure = f"The routes stay as they are: {error}."
        report = self._report
        if report.reloaded and not failure:
            say(f"{len(report.routes)} route(s) are served.")
        self._tell({*report.problems, *report.notes, *([failure] if failure else [])})
        document = {
            "looked_at": datetime.now(timezone.utc).isoformat(timespec="seconds"),
            "failure": failure,
            "problems": report.problems,
            "notes": report.notes,
            "routes": [
                {
                    "app": route.app,
                    "port_index": route.index,
                    "places": [f"https://{place}" for place in route.places],
                    "port": route.port,
                    "tasks": len(route.servers),
                }
                for route in report.routes
            ],
        }
        try:
            replace_file(self.status, json.dumps(document, indent=1) + "\n", MODE)
        except OSError as error:
            say(f"{self.status} cannot be written ({error}).")
        return failure

    def _tell(self, sentences: set[str]) -> None:
        """Tell what is new; the same sentence every minute would hide the others."""
        for sentence in sorted(sentences - self._told):
            say(sentence)
        self._told = sentences


def built(document: dict[str, Any], password: str) -> tuple[Marathon, Follower]:
    """Put the parts together.

    Args:
        document: the settings, as the role writes them.
        password: of the account at Marathon.

    Returns:
        Marathon, and who follows it.
    """
    account = Account(document["user"], password, document["ca_file"])
    marathon = Marathon(document["urls"], account)
    first, last = document["ports"]
    gateway = Gateway(
        Settings(tuple(document["groups"]), document["host"], (first, last)),
        Places(Path(document["folder"]), document["certificate"], document["listen"]),
        Haproxy(Path(document["base"]), Path(document["socket"])),
        Names().addresses,
        taken,
    )
    return marathon, Follower(marathon, gateway, Path(document["status"]))


def main() -> None:
    """Run the program."""
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    password = ""
    if document["user"]:
        # systemd.exec(5), LoadCredential=: readable by this service only.
        folder = Path(os.environ["CREDENTIALS_DIRECTORY"])
        password = (folder / "marathon_password").read_text(encoding="utf-8").rstrip("\n")
    marathon, follower = built(document, password)
    dirty, ended = threading.Event(), threading.Event()
    threading.Thread(target=follow, args=(marathon, dirty, ended), daemon=True).start()
    while True:
        # Cleared before the look: what happens during it leads to another.
        dirty.clear()
        failure = follower.look()
        time.sleep(BETWEEN)
        dirty.wait(5.0 if failure else RESYNC)
