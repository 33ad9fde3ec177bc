# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of administrators about the cluster: what is free, which notebooks run, and why others wait."""

from __future__ import annotations

from typing import Any

from jupyterhub.handlers.base import BaseHandler
from jupyterhub.scopes import needs_scope
from tornado import web

from gpufarm_hub.spawning.engine import EngineError

from . import client, cluster, engine, offers, reasons


class QueuePage(BaseHandler):  # type: ignore[misc]
    """The notebooks in the queue of the cluster, and on its nodes."""

    def initialize(self, partition: str) -> None:
        """Take the name of the partition; empty for the default one."""
        self.partition = partition

    @web.authenticated
    @needs_scope("admin-ui")  # type: ignore[untyped-decorator]
    async def get(self) -> None:
        """Show the page as it is now."""
        shown: dict[str, Any]
        try:
            found = await client.in_thread(cluster.read, self.partition)
            jobs = await client.in_thread(engine.JOBS.get)
        except EngineError as error:
            self.log.warning("Nothing is shown of the cluster: %s", error)
            shown = {"problem": "The cluster does not answer at the moment."}
        else:
            offered, missing = offers.offers(found.nodes)
            told = [(job, reasons.state(job)) for job in jobs if not job.is_over]
            shown = {"offers": offered, "missing": missing, "jobs": told}
        self.finish(await self.render_template("queue.html", **shown))
