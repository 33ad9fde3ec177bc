# SPDX-License-Identifier: GPL-3.0-or-later
"""Notebooks as jobs of Slurm, each with the GPUs or slices of a node that Slurm gives it."""

from __future__ import annotations

import asyncio
import contextlib
import math
import pwd
import time
from collections.abc import AsyncIterator, Callable, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jupyterhub.utils import utcnow
from traitlets import Dict, Unicode

from gpufarm_hub.people import accounts
from gpufarm_hub.spawning import deaths, form
from gpufarm_hub.spawning.engine import EngineError
from gpufarm_hub.spawning.spawner import NotebookSpawner, RefusedSpawnError

from . import certificates, client, cluster, engine, handover, job, offers, pages, reach, reasons, submission
from .client import Answer
from .cluster import Cluster

WAITS_FOR = timedelta(days=7)  # in the queue
LOOKS_EVERY = 2  # seconds; all notebooks share the answers of `engine`

# Seconds after the start of a job in which it must ask for what its notebook needs.
ASKS_WITHIN = 180
# Minutes that Slurm gives a notebook beyond what it may run for: it ends with a warning, by the keeper.
GRACE = 10

NO_NODES = "No machine of the cluster runs notebooks at the moment; tell its administrator."


def configure(c: Any, settings: Mapping[str, Any]) -> None:
    """Have the hub start notebooks with Slurm.

    Args:
        c: what ``get_config()`` returns in ``jupyterhub_config.py``.
        settings: those of the role.
    """
    own = settings["engines"]["slurm"]
    c.JupyterHub.spawner_class = SlurmSpawner
    # JupyterHub counts what waits in the queue, and would turn users away.
    c.JupyterHub.concurrent_spawn_limit = 0
    c.JupyterHub.extra_handlers.append((handover.PATH, handover.JobHandler))
    # In place of the page about the slices of this machine.
    c.JupyterHub.extra_handlers.insert(0, ("/slices", pages.QueuePage, {"partition": own["partition"]}))
    spawner = c.NotebookSpawner
    spawner.env_keep = ["LANG", "LC_ALL"]
    spawner.environment = {}
    spawner.hub_connect_url = own["hub_url"]
    spawner.start_timeout = int(WAITS_FOR.total_seconds())
    c.SlurmSpawner.slurm = own
    c.SlurmSpawner.certificates_folder = settings["nodes_folder"]


class SlurmSpawner(NotebookSpawner):
    """Starts a notebook under the user's own account as a job of Slurm."""

    slurm = Dict(help="Settings of the role for this engine.").tag(config=True)
    certificates_folder = Unicode(help="Folder of the authority for notebooks on nodes.").tag(config=True)

    user_options: Any  # JupyterHub's own trait
    _cluster: Cluster | None = None
    _job = 0
    # The hub was restarted before the job had asked for what its notebook needs.
    _is_left = False
    _arrived: asyncio.Future[str]

    async def have_account(self) -> None:
        """Make sure that the user has an account that the nodes know, too; the hub makes none."""
        try:
            state = await self.user.get_auth_state() or {}
            await asyncio.to_thread(accounts.check_shared, self.user.name, state.get("uid"))
        except accounts.AccountError as error:
            raise RefusedSpawnError(str(error), "account", 403) from error

    async def in_thread(self, ask: Callable[..., Answer], *arguments: Any) -> Answer:
        """Ask Slurm in a thread of its own."""
        return await client.in_thread(ask, *arguments)

    async def look(self) -> None:
        """Ask Slurm for the cluster."""
        self._cluster = None
        try:
            self._cluster = await client.in_thread(cluster.read, self.slurm["partition"])
        except EngineError as error:
            self.log.error("It is not known what the cluster offers: %s", error)
            raise RefusedSpawnError(
                "The cluster does not answer; try again later, or tell its administrator.", "engine", 503
            ) from error

    @property
    def most_hours(self) -> float:
        """Hours for which a notebook of the user may run; 0 for any number."""
        hours = self._cluster.partition.hours if self._cluster else 0.0
        return min(filter(None, (super().most_hours, hours)), default=0.0)

    async def resource_fields(self) -> str:
        """Return the form's fields with the numbers of GPUs and slices that are free right now."""
        with contextlib.suppress(RefusedSpawnError):
            await self.look()
        render = partial(
            form.render,
            self.memory_offered,
            cpu_choices=self.cpu_choices,
            hours=self.most_hours,
            ends=self._ends(),
            why_unknown="the queue of the cluster has other jobs, too",
        )
        if self._cluster is None:
            return render([], problem="The cluster does not answer at the moment.")
        if not self._cluster.nodes:
            return render([], problem=NO_NODES)
        if not self.use_gpu:
            return render(None)
        found, missing = offers.offers(self._cluster.nodes)
        left = self.limit.slices - self._held()
        return render(found, self.limit.slices, chosen=form.preselected(found, left), missing=missing)

    def apply_more(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Check what is chosen of the cluster."""
        more = super().apply_more(options)
        nodes = self._cluster.nodes if self._cluster else ()
        if not nodes:
            raise form.ChoiceError(NO_NODES)
        if kind := options.get("gpu", ""):
            count = int(options.get("slices", 1))
            if refusal := offers.refusal(nodes, kind, count, self._held(), self.limit):
                raise form.ChoiceError(refusal)
        return more

    def _held(self) -> int:
        """Return how many GPUs or slices the user's other notebooks have, or wait for."""
        others = (other for other in self.user.spawners.values() if other is not self and other.active)
        chosen = (other.user_options for other in others)
        return sum(int(options.get("slices", 1)) for options in chosen if options.get("gpu"))

    async def end_earlier(self) -> None:
        """End an earlier job, unless it waits for this very start: the hub was restarted meanwhile."""
        self._is_left = False
        order = self._order()
        found = await client.in_thread(engine.job_of, engine.name_of(self.owner))
        if found and found.mark == submission.mark(order) and found.may_ask(job.PATIENCE, time.time()):
            self._job = found.number
        else:
            self._job = 0
            await self._end()

    def _order(self) -> submission.Order:
        account = pwd.getpwnam(self.user.name)
        choice = self._choice
        hours = float(choice.hours or self.most_hours)
        most = self._cluster.partition.hours if self._cluster else 0.0
        minutes = min(60 * hours + GRACE, 60 * most or math.inf) if hours else 0
        return submission.Order(
            owner=self.owner,
            uid=account.pw_uid,
            gid=self.file_group_id(account.pw_gid),
            home=account.pw_dir,
            cores=self.cpu_limit,
            memory=self.mem_limit,
            gpu=choice.gpu,
            count=choice.slices,
            minutes=int(minutes),
            partition=self.slurm["partition"],
        )

    async def launch(self) -> str:
        """Queue the job, wait until it runs and has asked what to do; return the notebook's address."""
        order = self._order()
        if not self._job:
            queued = asyncio.ensure_future(client.in_thread(self._submit, order))
            try:
                self._job = await asyncio.shield(queued)
            except asyncio.CancelledError:
                await asyncio.wait([queued])  # a stop comes next, and has to find the job
                raise
        self.log.info("The notebook %s is job %d", self.owner, self._job)
        self._arrived = asyncio.get_running_loop().create_future()
        handover.EXPECTED[self._job] = handover.Expected(order.uid, self._hand_over)
        try:
            url = await self._arrival()
        finally:
            handover.EXPECTED.pop(self._job, None)
        await self._listening(url)
        # Time in the queue is not time in which the notebook runs, and the hub ends it when that is over.
        self.orm_spawner.started = utcnow(with_tz=False)
        if not self.user_options.get("hours") and self.most_hours:
            self.user_options = {**self.user_options, "hours": f"{self.most_hours:g}"}
            self.orm_spawner.user_options = self.user_options
        return url

    def _submit(self, order: submission.Order) -> int:
        settings = {
            "hub": self.hub_connect_url,
            "authority": Path(self.certificates_folder, "ca.crt").read_text(encoding="ascii"),
        }
        program = [f"{self.slurm['node_venv']}/bin/python", "-I", "-m", job.__name__]
        try:
            return engine.submit(order, submission.script(program, settings))
        except client.RefusedError as error:
            self.log.error("Slurm does not take the notebook of %s: %s", self.owner, error)
            raise RefusedSpawnError(reasons.refused(str(error)), "engine", 409) from error
        except EngineError as error:
            self.log.error("The notebook of %s is not queued: %s", self.owner, error)
            raise RefusedSpawnError(
                "The cluster does not answer; try again later, or tell its administrator.", "engine", 503
            ) from error

    async def _arrival(self) -> str:
        """Return the notebook's address when its job has asked for what it needs.

        Raises:
            RefusedSpawnError: the job is over, can never begin, or does not ask.
        """
        while True:
            done, _pending = await asyncio.wait([self._arrived], timeout=LOOKS_EVERY)
            if done:
                return self._arrived.result()
            try:
                found = await client.in_thread(engine.job_of, engine.name_of(self.owner))
            except EngineError as error:
                self.log.warning("Taking the notebook of %s as waiting: %s", self.owner, error)
                continue
            if found is None or found.number != self._job or found.is_over:
                raise await self._refusal()
            if found.waits and found.reason == reasons.GONE:
                raise RefusedSpawnError(
                    "No machine of the cluster has what you chose any more, as slices were changed; start "
                    "the notebook with something else.",
                    "engine",
                    409,
                )
            if not found.waits and not found.may_ask(ASKS_WITHIN, time.time()):
                raise RefusedSpawnError(
                    f"The notebook began on {found.node}, but did not reach this service; tell the "
                    "administrator. The file .jupyterhub.log in your home may say why.",
                    "engine",
                    503,
                )

    async def _listening(self, url: str) -> None:
        """Wait until the notebook answers at its address, and nothing else there.

        Raises:
            RefusedSpawnError: the job is over, or the notebook does not answer.
        """
        place = urlsplit(url)
        folder, deadline = Path(self.certificates_folder), time.monotonic() + self.http_timeout
        while not await reach.answers(folder, self.owner, place.hostname or "", place.port or 0):
            with contextlib.suppress(EngineError):
                found = await client.in_thread(engine.job_of, engine.name_of(self.owner))
                if found is None or found.number != self._job or found.is_over:
                    raise await self._refusal()
            if time.monotonic() > deadline:
                raise RefusedSpawnError(
                    "The notebook began, but does not answer; start it again. The file .jupyterhub.log in "
                    "your home may say why.",
                    "engine",
                    503,
                )
            await asyncio.sleep(LOOKS_EVERY)

    async def _refusal(self) -> RefusedSpawnError:
        death = await client.in_thread(engine.death, engine.name_of(self.owner))
        if death is None:
            return RefusedSpawnError("The notebook was taken out of the queue.", "engine", 409)
        told = deaths.explain(death, self.mem_limit or 0)
        if death.cause == "home":
            return RefusedSpawnError(told, "engine", 503)
        return RefusedSpawnError(f"{told} The file .jupyterhub.log in your home may say more.", "engine", 503)

    async def _hand_over(self, request: handover.Request) -> dict[str, Any]:
        """Return what the job of this notebook gets.

        Raises:
            handover.HandoverError: it gets nothing now.
        """
        hours = self.most_hours
        lifetime = timedelta(hours=hours + 24) if hours else certificates.LIFETIME
        try:
            address = await client.in_thread(self._address)
            certificate = certificates.of_notebook(
                Path(self.certificates_folder),
                request.signing,
                handover.name_of(self.owner),
                address,
                datetime.now(UTC),
                lifetime,
            )
        except (EngineError, ValueError, OSError) as error:
            raise handover.HandoverError(str(error)) from error
        url = f"https://{f'[{address}]' if ':' in address else address}:{request.port}"
        variables = self.get_env()
        variables["JUPYTERHUB_SERVICE_URL"] = f"https://0.0.0.0:{request.port}{self.server.base_url}"
        if self._arrived.done():
            raise handover.HandoverError("it has been given already")
        self._arrived.set_result(url)
        return {
            "certificate": certificate,
            "environment": variables,
            "arguments": self.get_args(),
            "groups": self.groups,
        }

    def _address(self) -> str:
        engine.JOBS.forget()  # the job may have begun since
        found = engine.job_of(engine.name_of(self.owner))
        if not found or not found.node:
            raise EngineError(f"it is not known where job {self._job} runs")
        return cluster.address_of(found.node, cluster.read(self.slurm["partition"]).nodes)

    async def poll(self) -> int | None:
        """Return None while any process of the notebook is left, or waits in the queue.

        A job that waits when the hub is restarted goes on to wait. The hub takes its start as failed, and the
        keeper has it started again.
        """
        if self._check_pending and not self._started:
            self._is_left = True
        if self._is_left:
            return 0
        try:
            return await super().poll()
        except Exception:
            # JupyterHub takes an error for the end, and would end the notebook.
            self.log.exception("Taking the notebook %s as running", self.owner)
            return None

    async def settle(self) -> None:
        """End what is left of a notebook, unless its job waits for another start."""
        if not self._is_left:
            await super().settle()

    async def give_up(self) -> None:
        """Take a job out of the queue that waits for another start, also one that the hub has forgotten."""
        self._is_left = False
        await self.settle()

    async def progress(self) -> AsyncIterator[dict[str, Any]]:
        """Tell the user why the notebook waits, and when it is expected to begin."""
        before = ""
        while True:
            with contextlib.suppress(EngineError):
                found = await client.in_thread(engine.job_of, engine.name_of(self.owner))
                # Slurm still knows the job of an earlier start, until that of this one is queued.
                own = found if found and found.number == self._job else None
                told = reasons.of(own) if own else "Your notebook is being prepared."
                if told != before and not (own and own.is_over):
                    yield {"progress": 60 if own and not own.waits else 20, "message": told}
                    before = told
            await asyncio.sleep(LOOKS_EVERY)
