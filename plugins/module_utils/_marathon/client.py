# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts for clients about a Marathon that the role marathon has set up. No I/O.

Sources: roles/marathon/templates/secrets.env.j2, and the environment that _marathon/settings.py writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

# Default of the role marathon, for a server that is not there yet.
PORT = 8443


def client(servers: Sequence[str], environments: Iterable[str] = (), secrets: str = "") -> dict[str, Any]:
    """Return how the servers are reached: `urls`, `user` and `password`, empty texts for what is not known.

    Args:
        servers: names of the machines.
        environments: the file `environment` of each; empty for one that is not there yet.
        secrets: the file `secrets/environment` of one of them.
    """
    texts = list(environments) or [""] * len(servers)
    user, _colon, password = _variables(secrets).get("MESOSPHERE_HTTP_CREDENTIALS", "").partition(":")
    return {
        "urls": [_url(name, _variables(text)) for name, text in zip(servers, texts, strict=True)],
        "user": user,
        "password": password,
    }


def _url(name: str, variables: dict[str, str]) -> str:
    host = variables.get("MARATHON_HOSTNAME", name)
    if "MARATHON_HTTP_PORT" in variables:
        return f"http://{host}:{variables['MARATHON_HTTP_PORT']}"
    return f"https://{host}:{variables.get('MARATHON_HTTPS_PORT', PORT)}"


def _variables(text: str) -> dict[str, str]:
    lines = (line.partition("=") for line in text.splitlines())
    return {name: value for name, sign, value in lines if sign}
