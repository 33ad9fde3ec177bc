# SPDX-License-Identifier: GPL-3.0-or-later
"""Hours of GPUs, slices, CPUs and memory that users held, read from machines with the playbook `usage`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from gpufarm import ansible
from gpufarm.answers import Hours
from gpufarm.errors import BadInput, GpufarmError
from gpufarm.instances import parsed
from gpufarm.prepare import Request
from gpufarm.question import ask
from gpufarm.state import Deployment

# Groups of machines that know who held what.
SLURM = "slurm_controllers"
HUBS = "jupyterhubs"
# All fields that a row may have.
FIELDS = ("month", "user", "group", "source", "profile", "machine", "identity")


class NoSources(BadInput):
    """There is no machine that knows who held what."""


@dataclass
class Sources:
    """Machines that know who held what.

    Attributes:
        pools: the inventories that name them.
        slurm: the controllers of each cluster of Slurm, any of which tells the jobs.
        hubs: machines with a hub.
        machines: all of these, each with the deployment that has it; empty for those of an inventory.
    """

    pools: list[Path] = field(default_factory=list)
    slurm: list[list[str]] = field(default_factory=list)
    hubs: list[str] = field(default_factory=list)
    machines: dict[str, str] = field(default_factory=dict)

    def add(self, pool: Path, slurm: Sequence[str], hubs: Sequence[str], deployment: str = "") -> None:
        """Add machines of an inventory.

        Args:
            pool: the inventory.
            slurm: controllers of one cluster of Slurm.
            hubs: machines with a hub.
            deployment: that has them; empty for none.
        """
        if not (slurm or hubs):
            return
        if pool not in self.pools:
            self.pools.append(pool)
        cluster = next((known for known in self.slurm if set(slurm) & set(known)), None)
        if cluster:
            cluster += [host for host in slurm if host not in cluster]
        elif slurm:
            self.slurm.append([*slurm])
        self.hubs += [host for host in hubs if host not in self.hubs]
        self.machines = {**dict.fromkeys([*slurm, *hubs], deployment), **self.machines}

    def missing(self, silent: Mapping[str, str]) -> dict[str, str]:
        """Return those of the machines that did not answer whose hours nobody else tells.

        Args:
            silent: why each did not.
        """
        untold = {host for cluster in self.slurm if silent.keys() >= set(cluster) for host in cluster}
        return {host: why for host, why in silent.items() if host in untold | set(self.hubs)}


def of_deployment(deployment: Deployment) -> tuple[Path, list[str], list[str]]:
    """Find the machines of a deployment that know who held what.

    Args:
        deployment: as it is remembered.

    Returns:
        Its inventory, its controllers of Slurm, and its machines with a hub.

    Raises:
        GpufarmError: its template cannot be read.
    """
    topology = Request.made(deployment).template
    found: dict[str, list[str]] = {SLURM: [], HUBS: []}
    for node in topology.nodes.values():
        hosts = found.get(node.inventory_group)
        if hosts is not None:
            machine = topology.machine_of(node.name)
            names = [name for name in deployment.machines if parsed(name)[0] == machine]
            hosts += [deployment.machines[name]["host"] for name in names]
    return Path(deployment.pool), found[SLURM], found[HUBS]


def sources(deployments: Sequence[Deployment], pool: Path | None, warn: Callable[[str], None]) -> Sources:
    """Find the machines that know who held what.

    Args:
        deployments: those of the state.
        pool: an inventory whose groups count too.
        warn: gets a sentence for each deployment that is left out.

    Returns:
        The machines.

    Raises:
        NoSources: there are none.
        BadInput: the inventory cannot be read.
    """
    found = Sources()
    for deployment in deployments:
        try:
            found.add(*of_deployment(deployment), deployment.name)
        except GpufarmError as error:
            warn(f"the hours of deployment {deployment.name} are missing in the report: {error.message}")
    if pool:
        groups = ansible.members(pool)
        found.add(pool.absolute(), groups.get(SLURM, []), groups.get(HUBS, []))
    if not found.pools:
        raise NoSources(
            "nothing keeps hours: no deployment has a hub or a controller of Slurm; name an inventory with "
            f"machines in {HUBS} or {SLURM} with --pool"
        )
    return found


def moment(text: str) -> datetime:
    """Read a date or time, in UTC unless it says otherwise.

    Args:
        text: in ISO 8601.

    Returns:
        The moment.

    Raises:
        BadInput: it is none.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadInput(
            f"{text!r} is no date and no time in ISO 8601; write one such as 2026-11-01"
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def read(
    found: Sources, since: str | None, before: str | None, by: Sequence[str], kept: Path | None
) -> Hours:
    """Read the hours from machines, which are not changed.

    Args:
        found: the machines.
        since: first moment of the period, a date or time in ISO 8601; None for the first of this month.
        before: first moment after it; None for now.
        by: some of `FIELDS`, for a row.
        kept: folder that gets ``usage.csv`` and ``usage.json``; None for none.

    Returns:
        The hours.

    Raises:
        BadInput: a moment is wrong, or the period is empty.
        GpufarmError: no machine has answered.
        Interrupted: a signal stopped it.
    """
    now = datetime.now(UTC)
    begin = moment(since) if since else now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    end = moment(before) if before else now
    if begin >= end:
        raise BadInput(f"the period ends at {end.isoformat()}, before it begins; name an earlier --since")
    told = ask(
        "usage",
        found.pools,
        found.machines.keys(),
        {
            "usage_slurm": found.slurm,
            "usage_hubs": found.hubs,
            "usage_since": begin.isoformat(),
            "usage_before": end.isoformat(),
            "usage_by": [*by],
        },
        kept,
        "the hours",
    )
    rows, records = told.answer["rows"], told.answer["records"]
    missing = found.missing(told.silent)
    return Hours(begin.isoformat(), end.isoformat(), rows, records, missing, found.machines)
