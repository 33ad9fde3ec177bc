# SPDX-License-Identifier: GPL-3.0-or-later
"""Which GPU slices the form offers, and how many of them are to be had."""

from __future__ import annotations

import math
from collections.abc import Sequence

from gpufarm_hub import clock
from gpufarm_hub.sharing import keeping, turns
from gpufarm_hub.sharing.leases import Leases
from gpufarm_hub.sharing.slices import Slice, count_by_profile

from .form import Offer


def offers(slices: Sequence[Slice], leases: Leases, owner: str) -> list[Offer]:
    """Return an offer for each profile.

    Args:
        slices: those of the machine.
        leases: who holds, and who waits.
        owner: who looks at the form: what is kept for them is free to them.
    """
    queue = leases.queue(slices)
    claims = [place.claim for place in queue if place.claim and place.ticket.owner != owner]
    kept = [piece for claim in claims for piece in claim.pieces]
    free = count_by_profile(piece for piece in leases.free(slices) if piece not in kept)
    times = turns.when_free([*leases.all(), *claims], slices)
    found = []
    for profile, total in count_by_profile(slices).items():
        waiting = [place for place in queue if place.ticket.profile == profile and not place.called]
        wanted = 1 + sum(place.ticket.count for place in waiting if place.ticket.owner != owner)
        likely = turns.likely(times[profile], wanted)
        until = [claim.until for claim in claims if claim.pieces[0].profile == profile]
        found.append(
            Offer(
                profile,
                memory=next(piece.memory for piece in slices if piece.profile == profile),
                free=free[profile],
                total=total,
                waiting=len(waiting),
                kept=count_by_profile(kept)[profile],
                until=keeping.in_words(max(until)) if until else "",
                likely=keeping.in_words(max(likely, clock.epoch())) if math.isfinite(likely) else "",
            )
        )
    return found
