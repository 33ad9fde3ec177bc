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

NAME = "jupyterhub"  # of the jobs of all notebooks, by which squeue finds them

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


def comment(order: Order) -> str:
    """Return what a job tells of its notebook, in letters that neither Slurm nor a terminal interprets."""
    owner = "/".join(quote(part, safe="") for part in order.owner.split("/", 1))
    return f"{owner} {mark(order)}"


def read_comment(text: str) -> tuple[str, str]:
    """Return the owner and the mark in a comment."""
    owner, _space, mark = text.partition(" ")
    return "/".join(unquote(part) for part in owner.split("/", 1)), mark


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
        f"--comment={comment(order)}",
        "--nodes=1",
        "--ntasks=1",
        f"--cpus-per-task={math.ceil(order.cores)}",
        f"--mem={math.ceil(order.memory / 2**20)}M",
        f"--time={order.minutes}",
        *([f"--gres=gpu:{order.gpu}:{order.count}"] if order.gpu else []),
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
