# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbers for Prometheus, without names of users and deployments."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from gpufarm.serve.database import Database
from gpufarm.serve.deployments import Deployments
from gpufarm.serve.quotas import Quotas
from gpufarm.serve.runs import Runs
from gpufarm.serve.statuses import Status

_STATES = ("queued", "running", "done", "failed", "cancelled")


class _Stock:
    """Counts what the database has when somebody asks."""

    def __init__(self, database: Database) -> None:
        self._deployments = Deployments(database, Quotas(), "")
        self._runs = Runs(database, "")

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        deployments = GaugeMetricFamily("gpufarm_serve_deployments", "Deployments.", labels=["status"])
        found = self._deployments.counts()
        for status in Status:
            deployments.add_metric([status.value], found.get(status.value, 0))
        yield deployments
        runs = GaugeMetricFamily("gpufarm_serve_runs", "Runs of the deployer.", labels=["state"])
        found = self._runs.counts()
        for state in _STATES:
            runs.add_metric([state], found.get(state, 0))
        yield runs


class Metrics:
    """The numbers of a server."""

    def __init__(self, database: Database) -> None:
        """Begin to count.

        Args:
            database: with the tables.
        """
        self._registry = CollectorRegistry()
        self._registry.register(_Stock(database))
        self.requests = Counter(
            "gpufarm_serve_requests_total", "Requests.", ["method", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "gpufarm_serve_request_seconds", "Duration of requests.", registry=self._registry
        )

    def text(self) -> bytes:
        """Write the numbers.

        Returns:
            The text that Prometheus reads.

        Raises:
            Unavailable: the database does not answer.
        """
        return generate_latest(self._registry)
