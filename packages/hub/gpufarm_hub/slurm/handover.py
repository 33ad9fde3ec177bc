# SPDX-License-Identifier: GPL-3.0-or-later
"""Hands a job token, environment and certificate of its notebook, when it runs and proves whose it is.

So nothing secret is in what Slurm keeps of a job or shows of it, in arguments, or in files of a shared home.
The proof is a credential of munge, which every machine of the cluster has: the hub's munged confirms the user
id of the process that made it, and takes it once. The answer goes through TLS to a job that trusts no
authority but the hub's own.

A certificate names the owner of its notebook (`name_of`), and the proxy takes nothing else for the notebook:
a job of somebody else on the node may listen at its port, before it starts or when it has ended.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import subprocess
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from jupyterhub.apihandlers.base import APIHandler
from tornado import web

PATH = "/api/gpufarm/job"  # below the hub's prefix
LONGEST = 65536  # bytes of a credential; they have about 1,500
TIMEOUT = 20  # seconds that munged may take


class HandoverError(Exception):
    """A job gets nothing; the text is for the log."""


@dataclass(frozen=True)
class Request:
    """The request of a job.

    Attributes:
        uid: user id of its process, which munge has confirmed.
        job: number that the job claims to have.
        port: at which its notebook is going to listen.
        signing: request for a certificate (PEM, PKCS #10).
    """

    uid: int
    job: int
    port: int
    signing: str


@dataclass(frozen=True)
class Expected:
    """A job that the hub waits for.

    Attributes:
        uid: of the user whose notebook it is.
        answer: returns what the job gets, as JSON can hold it; once, as somebody else asks the second time.
    """

    uid: int
    answer: Callable[[Request], Awaitable[Mapping[str, Any]]]


EXPECTED: dict[int, Expected] = {}  # by the job's number


def name_of(owner: str) -> str:
    """Return the name in the certificate of a notebook.

    The proxy computes the same (roles/jupyterhub/files/proxy/nodes.mjs).

    Args:
        owner: user and server name; most of them are no names of hosts.
    """
    return f"{hashlib.sha256(owner.encode()).hexdigest()[:40]}.notebook"


def confirmed(credential: str) -> Request:
    """Return what is in a credential.

    Raises:
        HandoverError: munge does not confirm it, or it is none of a job.
    """
    command = ["unmunge", "--metadata=/dev/stderr", "--keys=STATUS,UID", "--numeric"]
    try:
        done = subprocess.run(
            command,
            check=False,
            capture_output=True,
            encoding="utf-8",
            errors="replace",
            timeout=TIMEOUT,
            input=credential,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise HandoverError(f"munge does not answer: {error}") from error
    told = dict(re.findall(r"^(STATUS|UID):\s+(.*)$", done.stderr, re.MULTILINE))
    if done.returncode or "UID" not in told:
        raise HandoverError(f"munge does not confirm a credential: {told.get('STATUS', done.stderr.strip())}")
    return read(int(told["UID"]), done.stdout)


def read(uid: int, payload: str) -> Request:
    """Return the request of a job.

    Args:
        uid: that munge has confirmed.
        payload: that the job has put into the credential.

    Raises:
        HandoverError: it is none of a job.
    """
    try:
        told = json.loads(payload)
        request = Request(uid, told["job"], told["port"], told["signing"])
    except (KeyError, RecursionError, TypeError, ValueError) as error:
        raise HandoverError(f"a credential of user id {uid} is not a job's ({error!r:.80})") from error
    numbers = (request.job, request.port)
    fit = all(isinstance(number, int) and not isinstance(number, bool) for number in numbers)
    if not fit or not isinstance(request.signing, str):
        raise HandoverError(f"a credential of user id {uid} has values of other types than a job's")
    if not 0 < request.port < 65536:
        raise HandoverError(f"a job of user id {uid} claims the port {request.port}")
    return request


class JobHandler(APIHandler):  # type: ignore[misc]
    """Answers jobs of notebooks that have started."""

    def check_xsrf_cookie(self) -> None:
        """Take requests without one: a job is no browser, and the credential is its proof."""

    async def post(self) -> None:
        """Answer POST /job, whose body is a credential of munge."""
        if len(self.request.body) > LONGEST:
            raise web.HTTPError(413)
        try:
            request = await asyncio.to_thread(confirmed, self.request.body.decode("ascii", "replace"))
        except HandoverError as error:
            self.log.warning("A job gets nothing: %s", error)
            raise web.HTTPError(403, "This is no credential of a job.") from error
        expected = EXPECTED.get(request.job)
        if expected is None:
            raise web.HTTPError(404, "This job is not waited for.")
        if expected.uid != request.uid:
            self.log.warning("User id %d claims job %d of user id %d", request.uid, request.job, expected.uid)
            raise web.HTTPError(403, "This is the job of somebody else.")
        try:
            answer = await expected.answer(request)
        except HandoverError as error:
            self.log.error("Job %d gets nothing: %s", request.job, error)
            raise web.HTTPError(503, "The hub cannot answer now.") from error
        self.set_header("Content-Type", "application/json")
        self.finish(json.dumps(answer))
