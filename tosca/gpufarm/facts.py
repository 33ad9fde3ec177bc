# SPDX-License-Identifier: GPL-3.0-or-later
"""Remembers for some minutes what machines have, so that they need not be asked again for every command."""

from __future__ import annotations

import contextlib
import hashlib
import json
import time
from collections.abc import Collection, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpufarm import ansible, pool
from gpufarm.pool import Gpu, Machine, Pool
from gpufarm.state import Store

# Seconds. Machines hardly change; what cannot be reached may be back in a moment.
FRESH = 600
SILENT = 60


def _path(store: Store, inventory: Path) -> Path:
    name = hashlib.sha256(str(inventory.resolve()).encode()).hexdigest()[:16]
    return store.directory / "facts" / f"{name}.json"


def _remembered(path: Path) -> dict[str, Any]:
    """Stored facts; a file that cannot be parsed counts as missing."""
    with contextlib.suppress(OSError, ValueError):
        found = json.loads(path.read_text())
        if isinstance(found, dict):
            return found
    return {}


def _key(variables: Mapping[str, Any]) -> str:
    """Fingerprint of how a machine is reached: behind another one there may be another machine."""
    reached = {name: value for name, value in variables.items() if name.startswith("ansible_")}
    return hashlib.sha256(json.dumps(reached, sort_keys=True, default=str).encode()).hexdigest()[:16]


def _machine(entry: dict[str, Any]) -> Machine:
    return Machine(**{**entry, "gpus": tuple(Gpu(**gpu) for gpu in entry["gpus"])})


def survey(
    store: Store, inventory: Path, *, only: Collection[str] | None = None, refresh: bool = False
) -> Pool:
    """Tell which machines there are, asking only those that have not been asked lately.

    Args:
        store: where answers are remembered; it is only read here.
        inventory: the inventory.
        only: hosts of interest; None for all.
        refresh: ask all of them.

    Returns:
        The machines.

    Raises:
        BadInput: the inventory cannot be read.
        GpufarmError: Ansible fails as a whole.
    """
    hosts = ansible.inventory(inventory)
    wanted = {host: hosts[host] for host in hosts if only is None or host in only}
    machines: dict[str, Machine] = {}
    silent: dict[str, str] = {}
    now = time.time()
    known = {} if refresh else _remembered(_path(store, inventory))
    for host, variables in wanted.items():
        entry = known.get(host)
        with contextlib.suppress(KeyError, TypeError):
            if entry is None or entry["key"] != _key(variables):
                continue
            age = now - entry["seen"]
            if "machine" in entry and 0 <= age < FRESH:
                machines[host] = _machine(entry["machine"])
            elif "silent" in entry and 0 <= age < SILENT:
                silent[host] = str(entry["silent"])
    asked = {host: wanted[host] for host in wanted if host not in machines and host not in silent}
    if asked:
        found = pool.look(inventory, asked)
        machines |= found.machines
        silent |= found.silent
    return Pool(
        inventory,
        {host: machines[host] for host in wanted if host in machines},
        {host: silent[host] for host in wanted if host in silent},
        hosts,
        frozenset(asked),
    )


def remember(store: Store, found: Pool, *, changed: Collection[str] = ()) -> None:
    """Write down what machines have.

    Args:
        store: where to.
        found: the machines.
        changed: hosts that have been changed since, and so have to be asked again.
    """
    path = _path(store, found.path)
    entries = _remembered(path)
    before = dict(entries)
    for host in found.asked:
        entries[host] = {"key": _key(found.hosts[host]), "seen": time.time()}
        if host in found.machines:
            entries[host]["machine"] = asdict(found.machines[host])
        else:
            entries[host]["silent"] = found.silent.get(host, "it does not answer")
    for host in changed:
        entries.pop(host, None)
    if entries != before:
        store.write(path, json.dumps(entries))
