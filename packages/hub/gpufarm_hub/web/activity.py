# SPDX-License-Identifier: GPL-3.0-or-later
"""Activity of a notebook: the reports of its server, not every byte that passes the proxy."""

from __future__ import annotations

from typing import Any

from jupyterhub.proxy import ConfigurableHTTPProxy


class QuietProxy(ConfigurableHTTPProxy):  # type: ignore[misc]
    """Keeps the proxy's own times of activity from the hub.

    Every tab that is open anywhere keeps a web socket to its kernel alive, so to the proxy a notebook is
    active until its user shuts down the browser. The notebook's server knows of requests, kernels and
    terminals.
    """

    async def get_all_routes(self) -> dict[str, Any]:
        """Return the routes; the hub takes one without a time as one of a proxy that knows none."""
        routes: dict[str, Any] = await super().get_all_routes()
        for route in routes.values():
            route["data"].pop("last_activity", None)
        return routes
