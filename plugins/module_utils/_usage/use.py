# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Resources that users held, as Slurm and the hub recorded them. No I/O."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

SLURM, HUB = "slurm", "hub"
# Columns of sacct(1), in the order in which `from_sacct` reads them; times are seconds since 1970.
COLUMNS = ("JobIDRaw", "Cluster", "User", "Account", "Start", "End", "AllocTRES")
# Names of MIG profiles (NVIDIA's MIG user guide), which Slurm may have behind the model
# (`nvidia_a100_1g.10gb`); other types of GPUs are whole ones.
PROFILE = re.compile(r"(?:.*_)?([0-9]+g\.[0-9]+gb.*)")
# Events of the hub's log that end a lease; their lines tell when it began.
ENDS = ("returned", "lost")
GIB = {"K": 2**-20, "M": 2**-10, "G": 1.0, "T": 2.0**10, "P": 2.0**20}  # sacct(1), AllocTRES


@dataclass(frozen=True)
class Use:
    """Resources that somebody held for a time.

    Attributes:
        source: `slurm` or `hub`.
        identity: the same for the same use in every report.
        user: login.
        group: account in Slurm; the hub has none.
        begin: when the resources were given, with its time zone.
        end: when they were given back, or until when they are counted.
        slices: number of slices by profile; of one that several notebooks may hold, an equal part.
        gpus: number of whole GPUs, or parts of them in the same way.
        cpus: number of CPUs.
        memory: GiB.
        machine: name of the machine that told it: one with a hub, or a controller of Slurm.
    """

    source: str
    identity: str
    user: str
    group: str
    begin: datetime
    end: datetime
    slices: Mapping[str, float] = field(default_factory=dict)
    gpus: float = 0
    cpus: int = 0
    memory: float = 0.0
    machine: str = ""

    @property
    def hours(self) -> float:
        """Return the hours between begin and end."""
        return max((self.end - self.begin).total_seconds(), 0.0) / 3600


def moment(text: str) -> datetime:
    """Return the time of a text in ISO 8601; in UTC where it names no zone.

    Raises:
        ValueError: it is none.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no time; give one such as 2026-11-01 or 2026-11-01T12:00.") from None
    return read if read.tzinfo else read.replace(tzinfo=UTC)


def from_sacct(text: str, now: datetime) -> Iterator[Use]:
    """Return the jobs that sacct printed, each attempt of a job that was queued again by itself.

    Args:
        text: rows of `COLUMNS` between `|`, as `--parsable2 --noheader --allocations --duplicates` prints
            them.
        now: end of jobs that still run.
    """
    for line in filter(None, text.splitlines()):
        job, cluster, user, account, begin, end, resources = line.split("|")
        if not begin.isdigit():
            continue  # it waits, or was cancelled before it began
        held = _resources(resources)
        slices = {
            found[1]: int(number)
            for kind, number in held.items()
            if kind.startswith("gres/gpu:") and (found := PROFILE.fullmatch(kind.removeprefix("gres/gpu:")))
        }
        yield Use(
            SLURM,
            f"{cluster}/{job}/{begin}",
            user,
            account,
            datetime.fromtimestamp(int(begin), UTC),
            datetime.fromtimestamp(int(end), UTC) if end.isdigit() else now,
            slices,
            max(int(held.get("gres/gpu", 0)) - sum(slices.values()), 0),
            int(held.get("cpu", 0)),
            held.get("mem", 0.0),
        )


def from_audit(lines: Iterable[str], machine: str) -> Iterator[Use]:
    """Return the slices that notebooks held and gave back.

    Args:
        lines: of the hub's audit log. Those that are damaged, as after a power failure, are left out.
        machine: name of the hub's machine.
    """
    for line in lines:
        try:
            entry = json.loads(line)
            if entry["event"] not in ENDS:
                continue
            begin, end = (moment(entry[name]) for name in ("since", "time"))
            owner = f"{entry['user']}/{entry['server']}"
            yield _lease(machine, owner, entry["profile"], _count(entry), begin, end)
        except (ValueError, KeyError, TypeError, AttributeError):
            continue


def from_leases(text: str, machine: str, now: datetime) -> Iterator[Use]:
    """Return the slices that notebooks hold.

    Args:
        text: the hub's file of leases (`gpufarm_hub.sharing.leases`).
        machine: name of the hub's machine.
        now: until when they are counted.
    """
    for owner, lease in json.loads(text).get("leases", {}).items():
        profile = lease["slices"][0]["profile"]
        yield _lease(machine, owner, profile, _count(lease), moment(lease["taken"]), now)


def _count(entry: Mapping[str, Any]) -> float:
    """Return how many slices a notebook holds: of one that several may hold, an equal part.

    It is the same whether or not all seats are taken, as `gpufarm_hub.sharing.history` counts.
    """
    return len(entry["slices"]) / entry.get("notebooks", 1)


def _lease(machine: str, owner: str, profile: str, count: float, begin: datetime, end: datetime) -> Use:
    identity, user = f"{machine}/{owner}/{begin.isoformat()}", owner.partition("/")[0]
    if PROFILE.fullmatch(profile):
        return Use(HUB, identity, user, "", begin, end, {profile: count})
    return Use(HUB, identity, user, "", begin, end, {}, count)


def _resources(text: str) -> dict[str, float]:
    """Return trackable resources such as `cpu=2,gres/gpu:1g.10gb=1,mem=2G`, memory in GiB."""
    found = {}
    for word in filter(None, text.split(",")):
        name, _equals, number = word.rpartition("=")
        unit = GIB.get(number[-1:], 0.0)
        found[name] = float(number[:-1]) * unit if unit else float(number) * (2**-20 if name == "mem" else 1)
    return found
