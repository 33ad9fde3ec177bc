# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks a Prometheus server for numbers."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import requests
from requests.adapters import HTTPAdapter

from gpufarm.errors import BadInput, GpufarmError

# Seconds to connect and to answer; a query that takes longer would be of no use for a decision.
PATIENCE = (5, 15)


class _Named(HTTPAdapter):
    """Expects a server to prove another name than the one in the URL."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__()

    def init_poolmanager(self, *words: Any, **options: Any) -> None:
        super().init_poolmanager(*words, server_hostname=self.name, assert_hostname=self.name, **options)


@dataclass(frozen=True)
class Prometheus:
    """A server.

    Attributes:
        url: such as ``https://monitor.example.org:9090``.
        ca_file: certificate (PEM) that signs the server's; None for the system's own store.
        certificate: files with a certificate (PEM) that the server knows and with its key; None for none. The
            servers of the role monitoring answer nobody without one.
        server_name: name that the server's certificate must have; None for the one in the URL. Servers of the
            role monitoring are called "gpufarm-monitoring" under any address.
    """

    url: str
    ca_file: Path | None = None
    certificate: tuple[Path, Path] | None = None
    server_name: str | None = None

    def ask(self, query: str) -> float:
        """Evaluate a query now (Prometheus HTTP API, "Instant queries").

        Args:
            query: in PromQL; it has to give one number.

        Returns:
            The number, which may be NaN.

        Raises:
            BadInput: the query is wrong or gives none or several numbers.
            GpufarmError: the server does not answer.
        """
        with requests.Session() as session:
            session.trust_env = False  # environment variables would win over the certificate given here
            session.verify = str(self.ca_file) if self.ca_file else True
            session.cert = (str(self.certificate[0]), str(self.certificate[1])) if self.certificate else None
            if self.server_name:
                session.mount("https://", _Named(self.server_name))
            try:
                answer = session.get(
                    f"{self.url.rstrip('/')}/api/v1/query", params={"query": query}, timeout=PATIENCE
                )
                found = answer.json()
            except (requests.RequestException, OSError) as error:
                raise GpufarmError(f"{self.url} does not answer as Prometheus does: {error}") from error
        if not isinstance(found, dict) or found.get("status") != "success":
            why = found.get("error") if isinstance(found, dict) else f"HTTP status {answer.status_code}"
            raise BadInput(f"{self.url} refuses the query {query}: {why}")
        data = found["data"]
        values = (
            [data["result"]]
            if data["resultType"] == "scalar"
            else [entry["value"] for entry in data["result"] if "value" in entry]
        )
        if len(values) != 1:
            raise BadInput(
                f"the query {query} gives {len(values)} numbers instead of one; aggregate it, as with sum(), "
                "and say what holds where there is no series, as with `or vector(0)`"
            )
        return float(values[0][1])
