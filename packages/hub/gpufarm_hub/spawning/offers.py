# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPU slices the form offers, and how many of them are to be had."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from gpufarm_hub import clock
from gpufarm_hub.sharing import keeping, turns
from gpufarm_hub.sharing.leases import Lease, Leases
from gpufarm_hub.sharing.shared import SharedProfile
from gpufarm_hub.sharing.slices import Slice, count_by_profile
from gpufarm_hub.sharing.turns import Place

from .form import Offer


def offers(
    slices: Sequence[Slice], leases: Leases, owner: str, shared: Iterable[SharedProfile] = ()
) -> list[Offer]:
    """Return an offer for each profile, and for each that the user may share with others.

    Args:
        slices: those of the machine.
        leases: who holds, and who waits.
        owner: who looks at the form: what is kept for them is free to them.
        shared: what the user may share.
    """
    queue = [place for place in leases.queue(slices) if place.ticket.owner != owner]
    held = leases.all()
    numbers = {one.profile: one.notebooks for one in shared}
    found = []
    for profile in count_by_profile(slices):
        of_profile = [piece for piece in slices if piece.profile == profile]
        places = [place for place in queue if place.ticket.profile == profile]
        for notebooks in (1, *([numbers[profile]] if profile in numbers else [])):
            found.append(_offer(of_profile, held, places, notebooks))
    return found


def _offer(slices: Sequence[Slice], held: Sequence[Lease], queue: Sequence[Place], notebooks: int) -> Offer:
    """Return the offer of the slices of one profile to somebody who accepts so many notebooks on a slice."""
    profile = slices[0].profile
    claims = [place.claim for place in queue if place.claim]
    waiting = [place.ticket for place in queue if not place.called]
    times = turns.when_free([*held, *claims], slices, notebooks)[profile]
    free = times.count(turns.AT_ONCE)
    likely = turns.likely(times, 1 + turns.wanted(waiting, notebooks))
    return Offer(
        profile,
        memory=slices[0].memory,
        free=free,
        total=len(times),
        waiting=len(waiting),
        kept=turns.when_free(held, slices, notebooks)[profile].count(turns.AT_ONCE) - free,
        until=keeping.in_words(max(claim.until for claim in claims)) if claims else "",
        likely=keeping.in_words(max(likely, clock.epoch())) if math.isfinite(likely) else "",
        notebooks=notebooks,
    )
