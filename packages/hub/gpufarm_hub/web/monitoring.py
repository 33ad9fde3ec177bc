# SPDX-License-Identifier: GPL-3.0-or-later
"""The hub's part in monitoring: who may read its metrics, and pages that show what Prometheus has kept."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from jupyterhub.handlers.base import BaseHandler
from jupyterhub.scopes import needs_scope
from tornado import web
from tornado.httpclient import AsyncHTTPClient, HTTPClientError

from . import plots

# Written by the role monitoring: where Prometheus is, what opens it, and what is plotted.
PAGE = Path("/etc/gpufarm/monitoring/page.json")
SERVICE = "gpufarm-monitoring"
TIMEOUT = 20  # seconds that Prometheus may take for one plot
# Name of the span in the page's address: its title, seconds, seconds between two points.
SPANS = {"hour": ("Hour", 3600, 30), "day": ("Day", 86400, 600), "week": ("Week", 604800, 3600)}


class MonitoringError(Exception):
    """Prometheus cannot be asked; the text is one sentence for the administrator."""


def configure(c: Any, settings: Mapping[str, Any]) -> None:
    """Add it to the hub's configuration, after everything else is there.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings: those of the role.
    """
    token = Path(settings["secrets_folder"], "monitoring_token").read_text(encoding="ascii").strip()
    c.JupyterHub.services.append({"name": SERVICE, "api_token": token, "display": False})
    c.JupyterHub.load_roles.append({"name": SERVICE, "services": [SERVICE], "scopes": ["read:metrics"]})
    # The hub calls it for each page, with the user who looks at it or None.
    c.JupyterHub.template_vars |= {"gpufarm_monitored": lambda _user: PAGE.exists()}
    c.JupyterHub.extra_handlers.append((r"/use", UsePage, {"page": PAGE}))


class Prometheus:
    """The Prometheus of this machine.

    Args:
        page: the file of settings that the role monitoring has written.

    Raises:
        MonitoringError: the file cannot be read.
    """

    def __init__(self, page: Path) -> None:
        try:
            self._settings = json.loads(page.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise MonitoringError(f"{page} cannot be read: {error}.") from error
        self.plots = [plots.Plot(**entry) for entry in self._settings["plots"]]

    async def series(self, query: str, start: float, end: float, step: float) -> list[plots.Series]:
        """Return what a query tells of a time; arguments are seconds since the epoch, and seconds."""
        answer = await self._ask("query_range", {"query": query, "start": start, "end": end, "step": step})
        return [
            plots.Series(one["metric"], [(float(when), float(value)) for when, value in one["values"]])
            for one in answer["result"]
        ]

    async def alerts(self) -> list[dict[str, str]]:
        """Return the alerts that are raised, the critical ones first: severity, sentence, next step."""
        told = [
            {"severity": one["labels"].get("severity", ""), **one["annotations"]}
            for one in (await self._ask("alerts", {}))["alerts"]
            if one["state"] == "firing"
        ]
        return sorted(told, key=lambda one: (one["severity"] != "critical", one.get("summary", "")))

    async def _ask(self, what: str, arguments: Mapping[str, Any]) -> Any:
        settings = self._settings
        try:
            answer = await AsyncHTTPClient().fetch(
                f"{settings['url']}/api/v1/{what}?{urlencode(arguments)}",
                ca_certs=settings["certificate"],
                client_cert=settings["certificate"],
                client_key=settings["key"],
                request_timeout=TIMEOUT,
            )
        except (HTTPClientError, OSError) as error:
            raise MonitoringError(f"Prometheus does not answer: {error}.") from error
        return json.loads(answer.body)["data"]


async def drawings(prometheus: Prometheus, span: str, now: float) -> list[plots.Drawing]:
    """Return all plots of a span that ends now."""
    _title, seconds, step = SPANS[span]
    end = now - now % step
    start = end - seconds
    # Four measurements at least are in a window, as for a rate some may be missing.
    window = f"{max(step, 300)}s"
    found = await asyncio.gather(
        *(
            prometheus.series(plot.query.replace("$window", window), start, end, step)
            for plot in prometheus.plots
        )
    )
    return [
        plots.draw(plot, series, start, end, step)
        for plot, series in zip(prometheus.plots, found, strict=True)
        if series or plot.empty
    ]


class UsePage(BaseHandler):  # type: ignore[misc]
    """Plots of the use of slices, GPUs and the machine, and the alerts; for administrators."""

    def initialize(self, page: Path) -> None:
        """Take the path of the settings."""
        self.page = page

    @web.authenticated
    @needs_scope("admin-ui")  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Show the page."""
        span = self.get_argument("span", "hour")
        if span not in SPANS:
            raise web.HTTPError(400, f"There is no span of time like that; choose one of {', '.join(SPANS)}.")
        if not self.page.exists():
            raise web.HTTPError(404, "This machine is not monitored.")
        try:
            prometheus = Prometheus(self.page)
            alerts, drawn = await asyncio.gather(prometheus.alerts(), drawings(prometheus, span, time.time()))
        except MonitoringError as error:
            self.log.error("No plots: %s", error)
            raise web.HTTPError(503, "The monitoring of this machine does not answer.") from error
        page = self.render_template(
            "use.html",
            drawings=drawn,
            alerts=alerts,
            spans=SPANS,
            span=span,
            colours=plots.COLOURS,
            dashes=plots.DASHES,
        )
        self.finish(await page)
