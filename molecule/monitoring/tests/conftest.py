"""The Prometheus under test, and visitors of the hub beside it."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from shlex import quote
from typing import Any
from urllib.parse import urlencode

import pytest
from testinfra.host import Host

from lab.patience import PATIENCE
from lab.visitor import Visitor, trust

IDENTITY = "/etc/gpufarm/monitoring"
CURL = (
    f"curl --silent --fail --cacert {IDENTITY}/cert.pem --cert {IDENTITY}/cert.pem --key {IDENTITY}/key.pem"
)
Query = Callable[[str], list[dict[str, Any]]]


@pytest.fixture
def query(host: Host) -> Query:
    """Ask Prometheus for what is so now: the series, each with its labels and value."""

    def ask(expression: str) -> list[dict[str, Any]]:
        url = f"https://localhost:9090/api/v1/query?{urlencode({'query': expression})}"
        answer = host.check_output(f"{CURL} {quote(url)}")
        return json.loads(answer)["data"]["result"]

    return ask


@pytest.fixture
def eventually(query: Query) -> Callable[[str], list[dict[str, Any]]]:
    """Wait until a query has an answer, and return it."""

    def wait(expression: str) -> list[dict[str, Any]]:
        end = time.monotonic() + PATIENCE
        while not (found := query(expression)):
            assert time.monotonic() < end, f"no series within {PATIENCE} s: {expression}"
            time.sleep(2)
        return found

    return wait


@pytest.fixture(scope="session")
def visit(bench: dict[str, Any], passwords: dict[str, str]) -> Iterator[Callable[[Host, str], Visitor]]:
    """Log users in; at the end their notebooks are stopped."""
    address = next(entry["address"] for entry in bench["hosts"] if entry["name"] == "mon12")
    with ExitStack() as stack:
        visitors: dict[str, Visitor] = {}

        def log_in(host: Host, name: str) -> Visitor:
            if name not in visitors:
                authority = host.file("/etc/jupyterhub/tls/ca.crt").content_string
                context = trust(authority, Path(bench["iam"]["ca_file"]).read_text())
                visitors[name] = stack.enter_context(Visitor(f"https://{address}:8888", context))
                visitors[name].login(name, passwords[name])
            return visitors[name]

        yield log_in
        for visitor in visitors.values():
            visitor.stop()
