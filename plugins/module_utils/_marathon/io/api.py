# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of the modules to Marathon, and waiting for results.

Sources: mesosphere/marathon, releases/1.11, docs/rest-api: PUT of an app is a patch unless
partialUpdate=false; 409 while a deployment holds the app; a deployment that is done is no longer listed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from typing import Any, Callable
from urllib.parse import quote

from ..._cluster.io.http import ClusterClient, ClusterError, Connection, Refused
from ..wait import stalled

FIRST_PAUSE, LONGEST_PAUSE = 0.5, 5.0  # seconds between looks at a deployment
LOCKED = 409


class Stalled(ClusterError):
    """A deployment did not come to its end in time; the text says why."""


class Marathon:
    """A Marathon, whichever of its instances leads."""

    def __init__(
        self,
        client: ClusterClient,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make one.

        Args:
            client: how it is reached.
            sleep: waits some seconds.
            clock: tells the time in seconds.
        """
        self.client, self._sleep, self._clock = client, sleep, clock

    @classmethod
    def at(cls, connection: Connection) -> Marathon:
        """Return the Marathon that a connection leads to."""
        return cls(ClusterClient(connection, "Marathon"))

    def read(self, path: str) -> Any:
        """Return what a resource tells.

        Raises:
            ClusterError: it tells nothing.
        """
        return self.client.request("GET", path).json()

    def app(self, path: str) -> dict[str, Any]:
        """Return an app, empty when there is none."""
        answer = self.client.request("GET", "/v2/apps" + quote(path), expect=(200, 404))
        return answer.json()["app"] if answer.status == 200 else {}

    def group(self, path: str) -> dict[str, Any]:
        """Return a group with all in it, empty when there is none."""
        answer = self.client.request("GET", "/v2/groups" + quote(path), expect=(200, 404))
        return answer.json() if answer.status == 200 else {}

    def change(self, method: str, path: str, body: Any, force: bool, seconds: float) -> str:
        """Change an app or a group, after other deployments have let go of it.

        Args:
            method: PUT or DELETE.
            path: of the resource, with its query, if any.
            body: what is sent, None for nothing.
            force: whether a deployment that holds it is given up.
            seconds: how long to wait for such a deployment.

        Returns:
            The number of the deployment; empty for none.

        Raises:
            Stalled: it was held all the time.
            ClusterError: Marathon refuses.
        """
        mark = "&" if "?" in path else "?"
        target = path + mark + "force=true" if force else path
        end, pause = self._clock() + seconds, FIRST_PAUSE
        # A leader that dies may have removed it, and the next one is asked again.
        done = (200, 201, 202, 404) if method == "DELETE" else (200, 201, 202)
        while True:
            try:
                answer = self.client.request(method, target, body, expect=done).json() or {}
                return str(answer.get("deploymentId", ""))
            except Refused as error:
                if error.status == 422:
                    raise ClusterError(explain_invalid(error.text)) from error
                if error.status != LOCKED:
                    raise
                if self._clock() + pause > end:
                    raise Stalled(self._locked(error.text, path)) from error
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def wait(self, deployment: str, seconds: float) -> None:
        """Wait until a deployment is done.

        Raises:
            Stalled: it is not within these seconds.
        """
        end, pause = self._clock() + seconds, FIRST_PAUSE
        while True:
            found = [one for one in self.read("/v2/deployments") if one["id"] == deployment]
            if not found:
                return
            if self._clock() + pause > end:
                raise Stalled(
                    f"Deployment {deployment} is not done after {seconds:g} seconds, and goes on:"
                    f" {self.reasons(found[0])}."
                )
            self._sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def reasons(self, deployment: Mapping[str, Any]) -> str:
        """Return what the apps of a deployment wait for."""
        queue = {item["app"]["id"]: item for item in self.read("/v2/queue")["queue"] if item.get("app")}
        said: list[str] = []
        for path in deployment.get("affectedApps", ()):
            app = self.app(path)
            if app:
                item: Mapping[str, Any] | None = queue.get(path)
                said.append(f"{path} {stalled(app, item)}")
        return "; ".join(said) or "its apps are being stopped"

    def _locked(self, text: str, path: str) -> str:
        try:
            numbers = [one["id"] for one in json.loads(text)["deployments"]]
        except (KeyError, TypeError, ValueError):
            numbers = []
        held = [one for one in self.read("/v2/deployments") if one["id"] in numbers]
        name = path.partition("?")[0].replace("/v2/apps", "").replace("/v2/groups", "")
        number = " and ".join(numbers) or "of another"
        why = "; ".join(self.reasons(one) for one in held) or "which has just ended"
        return f"{name} is held by deployment {number} ({why}); wait for it, or set force to give it up."


def explain_invalid(text: str) -> str:
    """Return a refusal of a definition (HTTP status 422) in one sentence."""
    try:
        details = json.loads(text)["details"]
        said = [f"{one.get('path', '/')}: {', '.join(one.get('errors', ()))}" for one in details]
    except (KeyError, TypeError, ValueError):
        said = [" ".join(text.split())[:500]]
    return f"Marathon does not take the definition: {'; '.join(said).rstrip('.')}."
