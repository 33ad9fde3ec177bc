"""A crowd on the farm: people who start notebooks with slices at the same moment, and jobs beside them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import NamedTuple

from lab.errors import LabError
from lab.patience import PATIENCE
from lab.visitor import Refused, Visitor

HOLD = 4.0  # seconds for which a notebook uses its slice
# Prints its slice, and from when to when it has had it.
JOB = 'echo "$CUDA_VISIBLE_DEVICES $(date +%s.%N)"; sleep 2; date +%s.%N'


class Use(NamedTuple):
    """A slice in use, by the clock that all hosts of a bench share.

    Attributes:
        slice: its UUID.
        begun: seconds since the epoch.
        ended: likewise.
        who: a notebook or a job.
    """

    slice: str
    begun: float
    ended: float
    who: str


def notebooks(
    hub: str, trusted: ssl.SSLContext, passwords: Mapping[str, str], wishes: Mapping[str, str]
) -> tuple[list[Use], list[float]]:
    """Have everybody log in at the same moment, start a notebook, look at its slices, and stop it.

    Args:
        hub: address of the hub.
        trusted: trusts its certificate.
        passwords: of the people.
        wishes: profile of the slice that each of them wants.

    Returns:
        Their uses of slices, and the seconds for which each has waited.

    Raises:
        LabError: somebody was not served, or has another number of slices than one.
    """

    def come(name: str) -> tuple[Use, float]:
        with Visitor(hub, trusted) as visitor:
            visitor.login_here(name, passwords[name])
            asked = time.monotonic()
            try:
                visitor.spawn(gpu=wishes[name])
            except Refused as refused:
                raise LabError(f"{name} was not served: {refused}") from refused
            waited, begun = time.monotonic() - asked, time.time()
            seen = visitor.slices()
            if not seen.given or seen.visible != [seen.given]:
                raise LabError(f"the notebook of {name} was given {seen.given!r} and sees {seen.visible}")
            time.sleep(HOLD)
            ended = time.time()
            visitor.stop()
            return Use(seen.given, begun, ended, f"notebook of {name}"), waited

    with ThreadPoolExecutor(len(wishes)) as pool:
        found = list(pool.map(come, wishes))
    return [use for use, _waited in found], [waited for _use, waited in found]


def jobs(
    ask: Callable[[str, str], str], hub: str, nodes: Mapping[str, str], wishes: Mapping[str, str]
) -> list[Use]:
    """Have people submit a job each, for a slice, and wait until all are over.

    Args:
        ask: runs a command on a host and returns what it has printed.
        hub: machine on which jobs are submitted.
        nodes: node of each profile.
        wishes: profile of the slice that each of them wants.

    Returns:
        The uses of slices by jobs.

    Raises:
        LabError: a job is not taken, or not over in time.
    """
    for name, profile in wishes.items():
        words = f"sbatch --chdir=/ --output=/home/{name}/crowd.out --gres=gpu:{profile}:1 --wrap '{JOB}'"
        ask(hub, f"runuser --user={name} -- {words}")
    until = time.monotonic() + PATIENCE
    while left := ask(hub, "squeue --noheader --name=wrap"):
        if time.monotonic() > until:
            raise LabError(f"these jobs are not over:\n{left}")
        time.sleep(1)
    found = []
    for name, profile in wishes.items():
        given, begun, ended = ask(nodes[profile], f"cat /home/{name}/crowd.out").split()
        found.append(Use(given, float(begun), float(ended), f"job of {name}"))
    return found


def shared(uses: Iterable[Use]) -> list[str]:
    """Return a sentence for each slice that two had at the same time."""
    of_slice = defaultdict(list)
    for use in uses:
        of_slice[use.slice].append(use)
    found = []
    for held in of_slice.values():
        held.sort(key=lambda use: use.begun)
        found += [
            f"{earlier.who} and {later.who} had {later.slice}"
            for earlier, later in pairwise(held)
            if later.begun < earlier.ended
        ]
    return found
