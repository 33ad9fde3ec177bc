# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the application as a server."""

from __future__ import annotations

import uvicorn

from gpufarm.serve.application import application
from gpufarm.serve.service import Service
from gpufarm.serve.settings import Settings

# Requests at once; more are told to come later. Seconds that a request has when the server ends.
AT_ONCE = 200
PATIENCE = 30


def run(settings: Settings) -> None:
    """Serve until a signal ends it.

    Args:
        settings: of the service.

    Raises:
        BadInput: the catalogue or the database is wrong.
    """
    uvicorn.run(
        application(Service(settings)),
        host=settings.address,
        port=settings.port,
        proxy_headers=True,
        forwarded_allow_ips="127.0.0.1,::1",
        server_header=False,
        limit_concurrency=AT_ONCE,
        timeout_graceful_shutdown=PATIENCE,
        h11_max_incomplete_event_size=65_536,
        access_log=False,
    )
