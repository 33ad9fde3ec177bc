# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program gpufarm-mesos-metrics: write the metrics of a master of Mesos for the node exporter."""

from __future__ import annotations

import base64
import http.client
import json
import os
import ssl
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..._host.io.files import replace_file
from ..mesos import Master, leads, render

SECONDS = 10.0  # for one request
LONGEST_ANSWER = 64 << 20  # bytes
LOOK = "look into 'journalctl -u mesos-master'"


class NotTold(Exception):
    """The master does not answer a request; a sentence says why."""


class _Stays(urllib.request.HTTPRedirectHandler):
    """Follows to no other master: each is asked by the program on its own machine."""

    def redirect_request(self, *_request: Any) -> None:
        """Return no further request."""


def main() -> int:
    """Write the metrics once; the exit status is 1 if the master did not tell everything.

    The command line has the path of the file with the metrics. The environment is that of the master, and
    the folder of credentials has the secret of the principal `operator`.
    """
    master, problem = Master(), ""
    try:
        secret = Path(os.environ["CREDENTIALS_DIRECTORY"], "operator").read_text(encoding="utf-8").strip()
        master, problem = _ask(_Server(os.environ, secret))
    except NotTold as error:
        problem = str(error)
    replace_file(Path(sys.argv[1]), render(master, problem, time.time()), 0o644)
    if problem:
        sys.stderr.write(f"{problem}\n")
    return int(bool(problem))


def _ask(server: _Server) -> tuple[Master, str]:
    """Return what a master tells, and why it is not all, empty if it is.

    Raises:
        NotTold: the master does not answer.
    """
    snapshot = server.get("/metrics/snapshot")
    if not leads(snapshot):
        return Master(snapshot, taken=server.has_leader()), ""
    try:
        agents, quotas = server.call("GET_AGENTS"), server.call("GET_QUOTA")
        roles = server.get("/master/roles").get("roles") or []
    except NotTold as error:
        return Master(snapshot), str(error)
    return Master(snapshot, taken=True, agents=agents, quotas=quotas, roles=roles), ""


class _Server:
    """The master of this machine.

    Args:
        environment: the options of the master, in variables that it reads itself.
        secret: that of the principal `operator`.
    """

    def __init__(self, environment: Mapping[str, str], secret: str) -> None:
        authority = environment.get("LIBPROCESS_SSL_CA_FILE")
        scheme = "https" if authority else "http"
        self.url = f"{scheme}://{environment['MESOS_HOSTNAME']}:{environment['MESOS_PORT']}"
        pair = base64.b64encode(f"operator:{secret}".encode()).decode()
        self.headers = {"Authorization": f"Basic {pair}", "Accept": "application/json"}
        handlers: list[Any] = [urllib.request.ProxyHandler({}), _Stays()]
        if authority:
            context = ssl.create_default_context(cafile=authority)
            handlers.append(urllib.request.HTTPSHandler(context=context))
        self.opener = urllib.request.build_opener(*handlers)

    def get(self, path: str) -> dict[str, Any]:
        """Return the answer to a request for a path.

        Raises:
            NotTold: there is none.
        """
        return self._json(urllib.request.Request(self.url + path, headers=self.headers))  # noqa: S310

    def call(self, kind: str) -> dict[str, Any]:
        """Return the answer to a call of the operator API, such as ``GET_AGENTS``.

        Raises:
            NotTold: there is none.
        """
        request = urllib.request.Request(  # noqa: S310
            self.url + "/master/api/v1",
            data=json.dumps({"type": kind}).encode(),
            headers={**self.headers, "Content-Type": "application/json"},
        )
        found: dict[str, Any] = self._json(request).get(kind.lower()) or {}
        return found

    def has_leader(self) -> bool:
        """Return whether the master, which does not lead itself, knows the one that does.

        Raises:
            NotTold: the master does not answer.
        """
        try:
            self.get("/master/redirect")
        except NotTold as error:
            status = getattr(error.__cause__, "code", 0)
            if status == http.client.TEMPORARY_REDIRECT:
                return True
            if status == http.client.SERVICE_UNAVAILABLE:
                return False
            raise
        return True

    def _json(self, request: urllib.request.Request) -> dict[str, Any]:
        asked = request.full_url
        try:
            with self.opener.open(request, timeout=SECONDS) as answer:
                text = answer.read(LONGEST_ANSWER)
            found = json.loads(text) if text.strip() else {}
        except urllib.error.HTTPError as error:
            error.close()
            raise NotTold(f"{asked} answers with the HTTP status {error.code}; {LOOK}.") from error
        except (OSError, http.client.HTTPException) as error:
            raise NotTold(f"{asked} does not answer: {getattr(error, 'reason', error)}; {LOOK}.") from error
        except ValueError as error:
            raise NotTold(f"{asked} does not answer with JSON; {LOOK}.") from error
        if not isinstance(found, dict):
            raise NotTold(f"{asked} does not answer with an object of JSON; {LOOK}.")
        return found
