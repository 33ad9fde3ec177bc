# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests of the modules to Chronos.

Sources: mesos/chronos at 3.0.2, docs/docs/api.md, Iso8601JobResource.scala, JobManagementResource.scala
(statuses: 204 when done, 400 and 500 with a stack trace of Java else).
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ..._cluster.io.http import ClusterClient, ClusterError, Connection, Refused
from ..job import lost, request, starts_at_once


class Chronos:
    """A Chronos, whichever of its instances leads."""

    def __init__(self, client: ClusterClient) -> None:
        """Make one.

        Args:
            client: how it is reached.
        """
        self.client = client

    @classmethod
    def at(cls, connection: Connection) -> Chronos:
        """Return the Chronos that a connection leads to."""
        return cls(ClusterClient(connection, "Chronos"))

    def jobs(self) -> list[dict[str, Any]]:
        """Return all jobs."""
        return self.client.request("GET", "/v1/scheduler/jobs").json() or []

    def job(self, name: str) -> dict[str, Any]:
        """Return a job, empty when there is none.

        An unknown name is answered by an error that does not differ from others, so the list is asked.
        """
        return next((job for job in self.jobs() if job["name"] == name), {})

    def summary(self) -> list[dict[str, Any]]:
        """Return what the jobs do."""
        answer = self.client.request("GET", "/v1/scheduler/jobs/summary").json() or {}
        return list(answer.get("jobs", ()))

    def delete(self, name: str) -> None:
        """Remove a job, and end what runs of it."""
        try:
            self.client.request("DELETE", "/v1/scheduler/job/" + quote(name), expect=(200, 204))
        except Refused:
            # A leader that dies may have removed it, and the next one is asked again.
            if self.job(name):
                raise

    def put(self, wanted: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
        """Create or replace a job, and return it as Chronos has kept it.

        A job with GPUs is switched on only when Chronos has kept them, or it would run without.

        Args:
            wanted: the definition.
            before: the job as it was, which is put back when Chronos drops a part; empty for none.

        Raises:
            ClusterError: Chronos refuses, or has dropped a part.
        """
        if wanted.get("gpus") and "gpus" not in before:
            self._check({**wanted, "disabled": True}, before)
        return self._check(wanted, before)

    def _check(self, wanted: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
        self._post(wanted)
        found = self.job(wanted["name"])
        dropped = lost(wanted, found)
        if not dropped:
            return found
        if before:
            self._post(before)
        elif found:
            self.delete(wanted["name"])
        if "gpus" in dropped:
            raise ClusterError(
                f"This Chronos has dropped gpus from the job {wanted['name']}, as the stock version does, so"
                " the job was not kept; use a build with the patch for GPUs (Chronos pull request 810), or"
                " run it on Marathon."
            )
        raise ClusterError(
            f"This Chronos has dropped {' and '.join(dropped)} from the job {wanted['name']}, so the job was"
            " not kept; leave it out, or use a version that knows it."
        )

    def _post(self, job: Mapping[str, Any]) -> None:
        path, body = request(job)
        try:
            self.client.request("POST", path, body, (200, 204), repeatable=not starts_at_once(job))
        except Refused as error:
            if error.status in (401, 403):
                raise
            first = first_line(error.text)
            raise ClusterError(f"Chronos does not take the job {job['name']}: {first}.") from error


def first_line(text: str) -> str:
    """Return what a stack trace of Java begins with, which says it all."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        text = json.loads(text)["message"]
    return text.strip().split("\n")[0][:500].rstrip(".")
