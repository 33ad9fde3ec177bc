# SPDX-License-Identifier: GPL-3.0-or-later
"""A worker: claims runs, has each carried out in a process, posts callbacks, has hours and output read."""

from __future__ import annotations

import logging
import os
import secrets
import socket
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any

from gpufarm.serve import consoles, prune
from gpufarm.serve.callbacks import Poster
from gpufarm.serve.child import Child
from gpufarm.serve.database import Unavailable
from gpufarm.serve.gathering import Reader
from gpufarm.serve.listening import Listening
from gpufarm.serve.outbox import Message, Outbox
from gpufarm.serve.refusals import Refused
from gpufarm.serve.runs import Claim, Ending, Lost, Runs
from gpufarm.serve.service import Service
from gpufarm.serve.statuses import Kind

LOG = logging.getLogger("gpufarm.serve")
PROGRAM = (sys.executable, "-m", "gpufarm.serve.attempt")
# Seconds between two looks at the queue, and between two looks at what a run has told.
PAUSE = 1.0
# Seconds between two looks for rows that are too old.
TIDY = 3600.0


class Worker:
    """A worker. Several of them share the queue."""

    def __init__(self, service: Service, program: Sequence[str] = PROGRAM) -> None:
        """Prepare.

        Args:
            service: with the settings and the database.
            program: that carries out an attempt.
        """
        self.name = f"{socket.gethostname()[:80]} {os.getpid()} {secrets.token_hex(4)}"
        self._service = service
        self._program = program
        self._lease = float(service.settings.lease)
        self._runs = Runs(service.database, service.settings.url)
        self._outbox = Outbox(service.database)
        self._poster = Poster(service.settings)
        self._reader = Reader(service, program)
        self._listening = Listening(service, program)
        self._stop = threading.Event()
        self._drained = threading.Event()

    def drain(self) -> None:
        """Have `run` end when the run that is under way is over; no other one begins."""
        self._drained.set()

    def stop(self) -> None:
        """Have `run` end soon; a run that is under way goes back to the queue."""
        self._stop.set()

    def run(self) -> None:
        """Work until `stop` or `drain` is called."""
        beside = [
            threading.Thread(target=self._post, daemon=True),
            threading.Thread(target=self._reader.run, args=(self._stop,), daemon=True),
            threading.Thread(target=self._listening.run, args=(self._stop,), daemon=True),
        ]
        for thread in beside:
            thread.start()
        LOG.info("worker %s is ready", self.name)
        while not self._stop.is_set() and not self._drained.is_set():
            try:
                claim = self._runs.claim(self.name, self._lease)
            except Unavailable as error:
                LOG.error("%s", error.message)
                claim = None
            if claim:
                self._carried_out(claim)
            else:
                self._stop.wait(PAUSE)
        self._stop.set()
        for thread in beside:
            thread.join()

    def _order(self, claim: Claim) -> dict[str, Any]:
        found, settings = claim.deployment, self._service.settings
        # The template and the inputs may be lost; the deployer removes by those that it remembers.
        removing = claim.kind is Kind.DELETE
        sealed = {} if removing else self._service.secrets(found)
        template = "" if removing else str(self._service.offers.named(found.template).path)
        return {
            "kind": claim.kind.value,
            "name": found.uuid,
            "template": template,
            "inputs": {**found.parameters, **sealed},
            "group": found.user_group,
            "force": claim.force,
            **settings.order(),
        }

    def _carried_out(self, claim: Claim) -> None:
        try:
            self._carry_out(claim)
        except Exception:  # such as a lost key; the other deployments go on
            LOG.exception("%s of %s cannot be carried out", claim.kind, claim.deployment.uuid)
            why = "the run cannot be carried out; the operator of this service finds the reason in the log"
            self._end(claim, Ending(well=False, reason=why))

    def _carry_out(self, claim: Claim) -> None:
        LOG.info("%s of %s: attempt %d", claim.kind, claim.deployment.uuid, claim.attempt)
        try:
            child = Child(self._program, self._order(claim))
        except Refused as error:
            self._end(claim, Ending(well=False, reason=error.message))
            return
        try:
            self._attend(claim, child)
        except Exception:
            child.kill()
            raise

    def _attend(self, claim: Claim, child: Child) -> None:
        held, reason, log = time.monotonic(), "", ""
        while not child.wait(PAUSE):
            log += child.log()
            removing = claim.kind is Kind.DELETE  # half a removal helps nobody
            limit = self._service.settings.timeout if removing else claim.deployment.timeout
            if self._stop.is_set():
                reason = "the worker stops"
            elif not reason and time.time() > claim.began + limit * 60:
                reason = f"the run was stopped after {limit} minutes; ask for more with timeoutMins"
            try:
                if log or time.monotonic() > held + self._lease / 4:
                    if self._runs.beat(claim, self._lease, log) and not reason:
                        reason = "the run was stopped by another request"
                    held, log = time.monotonic(), ""
            except Unavailable as error:
                LOG.error("%s", error.message)
                if time.monotonic() > held + self._lease * 0.8:  # soon another worker may take it
                    child.kill()
            except Lost:
                LOG.error("%s of %s was lost to another worker", claim.kind, claim.deployment.uuid)
                child.kill()
            if reason:
                child.stop()
        self._conclude(claim, child, reason, log + child.log())

    def _conclude(self, claim: Claim, child: Child, reason: str, log: str) -> None:
        told = child.ending
        if told is None:
            why = reason or f"the deployer gave no answer ({child.death()}); see the log of the workers"
            ending = Ending(well=False, reason=why, log=log)
        elif told["well"]:
            ending = Ending(True, told.get("reason", ""), told["outputs"], told["resources"], log=log)
        else:
            stopped = told.get("stopped") and reason
            held = told.get("held")
            ending = Ending(well=False, reason=reason if stopped else told["reason"], held=held, log=log)
        if self._stop.is_set() and not ending.well and (told is None or told.get("stopped")):
            self._insist(lambda: self._runs.release(claim, log))
        else:
            self._end(claim, ending)

    def _end(self, claim: Claim, ending: Ending) -> None:
        if not ending.well:
            LOG.info("%s of %s: %s", claim.kind, claim.deployment.uuid, ending.reason)
        self._insist(lambda: self._runs.finish(claim, ending))

    def _insist(self, write: Any) -> None:
        """Write the end of a run when the database answers, unless another worker has taken the run."""
        while True:
            try:
                write()
                return
            except Lost:
                return
            except Unavailable as error:
                LOG.error("%s", error.message)
                if self._stop.wait(PAUSE):
                    return  # the lease ends, and another worker continues

    def _post(self) -> None:
        tidy = time.monotonic()
        while not self._stop.is_set():
            try:
                if time.monotonic() >= tidy:
                    tidy = time.monotonic() + TIDY
                    prune.forget(self._service.database, self._service.settings.keep)
                    consoles.expire(self._service.database)
                message = self._outbox.take()
                if message:
                    self._deliver(message)
                    continue
            except Unavailable as error:
                LOG.error("%s", error.message)
            except Exception:  # the other messages go on
                LOG.exception("callbacks cannot be posted")
            self._stop.wait(PAUSE)

    def _deliver(self, message: Message) -> None:
        failure, final = "the message cannot be written", True
        try:
            failure, final = self._poster.post(message.url, message.body)
        except Exception:
            LOG.exception("callback to %s", message.url)
        if failure:
            LOG.error("callback to %s: %s", message.url, failure)
        self._outbox.settled(message, failure, final=final)
