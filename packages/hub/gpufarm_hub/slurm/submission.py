# SPDX-License-Identifier: GPL-3.0-or-later
"""A notebook's job, as sbatch takes it. No I/O.

Nothing of a user is in the script: what they chose is in arguments, each of which has been compared with what
is offered, and everything that is secret the job fetches from the hub when it runs (`handover`).
"""

from __future__ import annotations

import hashlib
import json
import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, unquote

NAME = "jupyterhub"  # of the jobs of all notebooks, for people who look at the queue

# Of nodes with the role notebook_node: the role slurm_controller gives it to them, and jobs run on no others.
FEATURE = "notebooks"

END = "END_OF_SETTINGS"  # no JSON in one line is this


@dataclass(frozen=True)
class Order:
    """The needs of the job of a notebook.

    Attributes:
        owner: user and server name, ``alice/`` for the default server.
        uid: the user's.
        gid: of the group of new files.
        home: the user's home on nodes.
        cores: CPU cores; Slurm gives whole ones.
        memory: bytes.
        gpu: type of the GPUs or slices as Slurm knows it, such as ``1g.10gb``; empty for none.
        count: how many of them.
        minutes: for which the job may run; 0 for any number.
        partition: of Slurm; empty for the default one.
    """

    owner: str
    uid: int
    gid: int
    home: str
    cores: float
    memory: int
    gpu: str
    count: int
    minutes: int
    partition: str


def mark(order: Order) -> str:
    """Return what tells an order from others."""
    return hashlib.sha256(repr(order).encode()).hexdigest()[:16]


def hub_of(authority: bytes) -> str:
    """Return the name of a hub on its cluster.

    Args:
        authority: certificate of its authority for nodes, which each hub has made for itself.
    """
    return f"{NAME}-{hashlib.sha256(authority).hexdigest()[:16]}"


def note(order: Order, hub: str) -> str:
    """Return what tells whose notebook a job is, in letters that neither Slurm nor a terminal interprets.

    Args:
        order: of the job.
        hub: name of the hub (`hub_of`).
    """
    owner = "/".join(quote(part, safe="") for part in order.owner.split("/", 1))
    return f"{hub}:{owner}:{mark(order)}"


def read_note(text: str, hub: str) -> tuple[str, str] | None:
    """Return the owner and the mark in a note; None if it is not of this hub."""
    whose, _colon, rest = text.partition(":")
    owner, _colon, mark = rest.partition(":")
    return ("/".join(unquote(part) for part in owner.split("/", 1)), mark) if whose == hub else None


def noting(number: int, order: Order, hub: str) -> list[str]:
    """Return the command that notes at a job whose notebook it is.

    The comment of administrators is a text of a job that Slurm lets no user change (scontrol(1),
    AdminComment); sbatch does not take it.

    Args:
        number: of the job.
        order: of the job.
        hub: name of the hub (`hub_of`).
    """
    return ["scontrol", "update", f"JobId={number}", f"AdminComment={note(order, hub)}"]


def arguments(order: Order) -> list[str]:
    """Return the command that queues a job; it reads the script from its standard input (sbatch(1))."""
    # In names of files, "%" begins a pattern and a backslash anywhere means that there are none.
    log = f"{order.home}/.jupyterhub.log".replace("%", "%%")
    return [
        "sbatch",
        "--parsable",
        f"--uid={order.uid}",
        f"--gid={order.gid}",
        f"--job-name={NAME}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={math.ceil(order.cores)}",
        f"--mem={math.ceil(order.memory / 2**20)}M",
        f"--time={order.minutes}",
        *([f"--gres=gpu:{order.gpu}:{order.count}"] if order.gpu else []),
        f"--constraint={FEATURE}",
        *([f"--partition={order.partition}"] if order.partition else []),
        # A notebook that was lost with its node is not begun again elsewhere, where nobody looks for it.
        "--no-requeue",
        # Neither the hub's environment nor what a login shell of the user makes of it.
        "--export=NIL",
        "--input=none",
        f"--output={log}",
        "--open-mode=truncate",
        "--chdir=/",
    ]


def script(program: Sequence[str], settings: Mapping[str, Any]) -> str:
    """Return the script of every job.

    Args:
        program: that the job runs, with its arguments.
        settings: what it reads from its standard input; nothing secret, as Slurm keeps scripts.
    """
    return f"#!/bin/sh\nexec {shlex.join(program)} <<'{END}'\n{json.dumps(settings)}\n{END}\n"
