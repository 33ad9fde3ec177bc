# SPDX-License-Identifier: GPL-3.0-or-later
"""Remembers every run of a deployment: who, when, what and how it ended, in two lines for each."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import socket
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from gpufarm import accounts, modes
from gpufarm.errors import GpufarmError, Interrupted
from gpufarm.state import Store, now


@dataclass
class Entry:
    """A run.

    Attributes:
        number: identifies it.
        began: time in ISO 8601.
        who: user and machine.
        what: the command and what it was to change; no values of inputs.
        ended: time in ISO 8601; empty while it runs and when it was killed.
        result: ``running``, ``done``, ``failed``, ``interrupted`` or ``killed``.
        failure: what went wrong; empty if nothing.
        done: number of steps that were done.
        log: file with Ansible's output; empty if Ansible was not needed.
    """

    number: str
    began: str
    who: str
    what: str
    ended: str = ""
    result: str = "running"
    failure: str = ""
    done: int = 0
    log: str = field(default="")


def _who() -> str:
    """The user, also behind sudo."""
    before, user = accounts.operator(), accounts.effective()
    return (
        f"{before} as {user}@{socket.gethostname()}" if before != user else f"{user}@{socket.gethostname()}"
    )


def _path(store: Store, name: str) -> Path:
    return store.file(name, "history", ".jsonl")


def _append(store: Store, name: str, entry: Entry) -> None:
    path = _path(store, name)
    try:
        store.directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        modes.make(path.parent)
        handle = modes.opened(path, os.O_WRONLY | os.O_APPEND)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(json.dumps(asdict(entry), ensure_ascii=False) + "\n")
    except OSError as error:
        raise GpufarmError(f"{path}: history cannot be written: {error.strerror}") from error


@contextlib.contextmanager
def recorded(store: Store, name: str, what: str) -> Iterator[Entry]:
    """Record a run.

    Args:
        store: the state.
        name: of the deployment, whose lock is held.
        what: the command and what it is to change.

    Yields:
        The entry, in which the run notes what it has done.
    """
    entry = Entry(secrets.token_hex(4), now(), _who(), what)
    _append(store, name, entry)
    try:
        yield entry
        entry.result = "done"
    except BaseException as error:
        interrupted = isinstance(error, Interrupted | KeyboardInterrupt)
        entry.result = "interrupted" if interrupted else "failed"
        entry.failure = error.message if isinstance(error, GpufarmError) else type(error).__name__
        raise
    finally:
        entry.ended = now()
        _append(store, name, entry)


def read(store: Store, name: str) -> list[Entry]:
    """List the runs of a deployment, also of one that is gone.

    Args:
        store: the state.
        name: of the deployment.

    Returns:
        The runs, the first one first; a line that was cut short by a kill is left out.
    """
    try:
        lines = _path(store, name).read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise GpufarmError(f"{_path(store, name)}: history cannot be read: {error}") from error
    found: dict[str, Entry] = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):
            entry = Entry(**json.loads(line))
            found[entry.number] = entry
    entries = list(found.values())
    for index, entry in enumerate(entries):
        # a lock lets only one run at a time, so a run is over when another one has begun
        if entry.result == "running" and (index < len(entries) - 1 or not store.is_locked(name)):
            entry.result = "killed"
    return entries
