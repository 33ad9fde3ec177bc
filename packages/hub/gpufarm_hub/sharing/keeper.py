# SPDX-License-Identifier: GPL-3.0-or-later
"""End notebooks that nobody uses or whose time is over: ``python -m gpufarm_hub.sharing.keeper SETTINGS``.

A service of the hub: it asks the hub's REST API who uses what, NVML and the notebooks' engine what computes,
and has the hub stop notebooks that must end, also those of users without access. Its measurements
are kept in ``use.json``, for pages, metrics, and itself after a restart.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from gpufarm_hub import clock
from gpufarm_hub.spawning import engines
from gpufarm_hub.spawning.engine import Engine, EngineError
from gpufarm_hub.store import StoreError

from . import adoption, desk, keeping, recovery, strays
from .desk import Desk
from .devices import DeviceError
from .gpu_use import GpuUse, measure
from .keeping import Notebook, Rules
from .leases import Lease
from .slices import GpuQueryError, Gpus, Slice, count_by_profile

EVERY = 30  # seconds between two measurements
TIMEOUT = 60  # seconds that the hub may take to answer
STARTS = 20  # at once
PAGE = 100  # users per request, at most what the hub gives by default (JupyterHub.api_page_max_limit)

log = logging.getLogger("gpufarm_hub.keeper")


@dataclass(frozen=True)
class Server:
    """A notebook server as the hub's API tells it; when it is not ready its times mean nothing.

    In ``hours`` are those that its user chose; 0 if they did not choose. ``gpu`` tells whether they chose a
    slice.
    """

    owner: str
    groups: list[str]
    ready: bool
    started: float
    last_activity: float
    hours: float = 0
    gpu: bool = False


class Hub:
    """The hub's REST API.

    Args:
        url: of the API.
        token: of a service that may read and stop servers.
    """

    def __init__(self, url: str, token: str) -> None:
        self._url = url
        self._token = token

    def servers(self) -> Iterator[Server]:
        """Return the servers that run, start or stop."""
        offset = 0
        while users := self._ask("GET", f"/users?state=active&limit={PAGE}&offset={offset}"):
            offset += len(users)
            for user in users:
                for name, server in user["servers"].items():
                    started = _seconds(server["started"]) if server["ready"] else 0.0
                    yield Server(
                        owner=f"{user['name']}/{name}",
                        groups=user["groups"],
                        ready=server["ready"],
                        started=started,
                        last_activity=_seconds(server["last_activity"])
                        if server["last_activity"]
                        else started,
                        hours=_chosen(server["user_options"]),
                        gpu=bool((server["user_options"] or {}).get("gpu")),
                    )

    def start(self, owner: str) -> None:
        """Start a server with what its user has chosen the last time."""
        user, _slash, name = owner.partition("/")
        self._ask("POST", f"/users/{quote(user)}/servers/{quote(name)}")

    def stop(self, owner: str) -> None:
        """Stop a server; its slices are free then."""
        user, _slash, name = owner.partition("/")
        self._ask("DELETE", f"/users/{quote(user)}/servers/{quote(name)}")

    def look_for_leavers(self) -> None:
        """Have the hub ask who of those with a notebook may still come in; the notebooks of others end."""
        self._ask("POST", "/gpufarm/leavers")

    def _ask(self, method: str, path: str) -> Any:
        request = Request(  # noqa: S310 - the hub's own address, http on 127.0.0.1
            self._url + path, method=method, headers={"Authorization": f"token {self._token}"}
        )
        with urlopen(request, timeout=TIMEOUT) as answer:  # noqa: S310
            body = answer.read()
        return json.loads(body) if body else None


def _chosen(options: Any) -> float:
    """Return the hours in user options; 0 if there are none, or an earlier version took any text."""
    hours = str((options or {}).get("hours", ""))
    return float(hours) if re.fullmatch(r"[0-9]{1,6}(\.[0-9]+)?", hours, re.ASCII) else 0.0


def _seconds(iso: str) -> float:
    return datetime.fromisoformat(iso).timestamp()


def look(ours: Desk, hub: Hub, rules: Rules, use_gpu: bool, now: float, jump: float = 0.0) -> None:
    """Measure once, warn and end.

    Args:
        ours: the desk.
        hub: the hub.
        rules: when notebooks end.
        use_gpu: whether slices of this machine are leased.
        now: seconds since the epoch.
        jump: seconds by which the machine's time was set forward since the last look.

    Raises:
        OSError: the hub does not answer.
        GpuQueryError: the GPUs do not answer.
        EngineError: the engine of the notebooks does not answer.
        StoreError: the files cannot be used.
    """
    ours.use.mend()
    before = ours.use.read()
    gpus = adoption.agree(ours, log) if use_gpu else Gpus([], frozenset())
    leases = {lease.owner: lease for lease in ours.leases.all()}
    # A GPU that hangs must not be asked.
    held = [piece.uuid for lease in leases.values() for piece in lease.pieces if piece in gpus.slices]
    used = measure(held) if held else {}
    for lease in leases.values():
        if pieces := [piece for piece in lease.pieces if piece in gpus.slices]:
            _clear(ours, lease, pieces)
    notebooks = {}
    servers = list(hub.servers())
    recovery.drop_left(ours, list(leases.values()), {server.owner for server in servers}, log)
    for server in filter(lambda server: server.ready, servers):
        old = before.get("notebooks", {}).get(server.owner)
        if old and (old["started"] != server.started or "skipped" not in old):
            old = None  # of an earlier notebook, or of an earlier version of this program
        entry = _measure(server, ours.engine, leases.get(server.owner), used, old, now, jump)
        # Elsewhere than on this machine nobody measures slices.
        holds = entry["processes"] is not None if use_gpu else server.gpu
        if _check(ours, hub, rules, server, entry, holds, now):
            notebooks[server.owner] = entry
    with ours.use.change() as content:
        content.clear()
        content |= {"measured": now, "profiles": count_by_profile(gpus.slices), "notebooks": notebooks}


def _clear(ours: Desk, lease: Lease, pieces: list[Slice]) -> None:
    """End programs of users on the slices of somebody else's notebook."""
    try:
        strays.clear(ours, log, pieces)
    except DeviceError as error:
        log.warning("A slice of %s is not its own: %s", lease.unit, error)


def _measure(
    server: Server,
    engine: Engine,
    lease: Lease | None,
    used: dict[str, GpuUse],
    old: dict[str, Any] | None,
    now: float,
    jump: float,
) -> dict[str, Any]:
    """Return what is remembered of a notebook; times are seconds since the epoch."""
    # A notebook that holds slices may be of another engine than those that are started now.
    unit = lease.unit if lease else engine.name_of(server.owner)
    cpu = engines.of(unit).cpu_seconds(unit)
    cores = None if cpu is None else 0.0
    elapsed = now - jump - old["measured"] if old else 0.0
    if cpu is not None and old and old["cpu_seconds"] is not None and elapsed > 0:
        cores = round(max(cpu - old["cpu_seconds"], 0.0) / elapsed, 3)
    mine = _use_of(lease, used) if lease else []
    processes = sum(len(use.processes) for use in mine) if lease else None
    known = [use.utilisation for use in mine if use.utilisation is not None]
    utilisation = max(known) if known else None
    working = keeping.is_working(processes, utilisation, cores)
    last = now if working else old["worked"] if old else server.started
    times = keeping.Times(old["skipped"], old["counted_from"], old["warned"]) if old else keeping.Times()
    times = keeping.after_jump(times, jump, now)
    return {
        "started": server.started,
        "measured": now,
        "cpu_seconds": cpu,
        "cores": cores,
        "processes": processes,
        "utilisation": utilisation,
        "working": working,
        "worked": last,
        "skipped": times.skipped,
        "counted_from": times.counted_from,
        "used": keeping.latest((last, server.last_activity, server.started, times.counted_from), now),
        "warned": times.warned,
        "ends": None,
    }


def _use_of(lease: Lease, used: dict[str, GpuUse]) -> list[GpuUse]:
    """Return the use of each slice by the notebook that holds it.

    NVML tells how busy a slice is, and not by how much each of those who share it keeps it busy.
    """
    mine = [used[piece.uuid] for piece in lease.pieces if piece.uuid in used]
    if lease.notebooks == 1:
        return mine
    own = engines.of(lease.unit).processes(lease.unit)
    return [GpuUse(use.processes & own, None) for use in mine]


def _check(
    ours: Desk, hub: Hub, rules: Rules, server: Server, entry: dict[str, Any], holds_slices: bool, now: float
) -> bool:
    """Warn or end; tell whether the notebook goes on."""
    limit = ours.limit_of(server.owner.partition("/")[0], server.groups)
    chosen = bool(server.hours) and not 0 < limit.hours <= server.hours
    notebook = Notebook(
        owner=server.owner,
        started=server.started + entry["skipped"],
        used=entry["used"],
        holds_slices=holds_slices,
        hours=server.hours if chosen else limit.hours,
        limit="" if chosen else limit.name,
        warned=entry["warned"],
    )
    verdict = keeping.check(notebook, rules, now)
    entry["ends"] = verdict.ends
    if verdict.over:
        log.info("Ending the notebook %s: %s", server.owner, verdict.why)
        try:
            hub.stop(server.owner)
        except HTTPError as error:  # of this notebook; the others must still be looked at
            log.warning("The notebook %s goes on: %s", server.owner, error)
            return True
        ours.record("ended", server.owner, why=verdict.why)
        ours.notices.tell(server.owner, keeping.ended(verdict.why, now))
        return False
    if verdict.warn and entry["warned"] is None:
        ours.record("warned", server.owner, why=verdict.why)
        ours.notices.tell(server.owner, keeping.warning(verdict))
        entry["warned"] = now
    elif not verdict.warn and entry["warned"] is not None:
        ours.notices.clear(server.owner)
        entry["warned"] = None
    return True


def resume(ours: Desk, hub: Hub, before: frozenset[str]) -> frozenset[str]:
    """Have the hub take up notebooks that go on to wait while it was restarted.

    Args:
        ours: the desk.
        hub: the hub.
        before: owners of those that were left alone at the last look. A notebook that is left for the first
            time may have been stopped a moment ago.

    Returns:
        Owners of those that are left alone.

    Raises:
        OSError: the hub does not answer.
        EngineError: the engine of the notebooks does not answer.
    """
    engine = ours.engine
    waiting = {engine.owner_of(unit) for unit in engine.resumable()}
    left = frozenset(waiting - {server.owner for server in hub.servers()} if waiting else ())
    # The hub takes some seconds for each that goes on to wait.
    with ThreadPoolExecutor(STARTS) as pool:
        list(pool.map(partial(_start, hub), sorted(left & before)))
    return left


def _start(hub: Hub, owner: str) -> None:
    log.info("Starting the notebook %s, which waits, again", owner)
    try:
        hub.start(owner)
    except OSError as error:  # such as that the user must sign in
        log.warning("The notebook %s is not started again: %s", owner, error)


def main() -> None:
    """Look again and again."""
    logging.basicConfig(level=logging.INFO, format="%(name)s: %(message)s")
    settings = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rules = keeping.read_rules(settings)
    hub = Hub(os.environ["JUPYTERHUB_API_URL"], os.environ["JUPYTERHUB_API_TOKEN"])
    ours = desk.from_settings(settings)
    before = time.time() - clock.steady()
    left: frozenset[str] = frozenset()
    while True:
        after = time.time() - clock.steady()
        try:
            look(ours, hub, rules, settings["own_gpus"], time.time(), after - before)
            before = after
        except (OSError, GpuQueryError, EngineError, StoreError) as error:
            # Unknown use is no reason to end a notebook.
            log.warning("No notebook is ended now: %s", error)
        try:
            left = resume(ours, hub, left)
        except (OSError, EngineError) as error:
            log.warning("No notebook is started again now: %s", error)
        try:
            hub.look_for_leavers()
        except OSError as error:
            log.warning("Nobody was asked who may still come in: %s", error)
        time.sleep(EVERY)


if __name__ == "__main__":
    main()
