# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages to users who ask for slices. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

from .slices import Slice, count_by_profile
from .turns import Place
from .waiting import Held, SliceRequest, Ticket, user_of


def waits(place: Place) -> str:
    """Tell a waiting user where they stand."""
    ticket = place.ticket
    return (
        f"Not free yet: {_slices(ticket.count, ticket.profile, ticket.notebooks)}. You wait as number "
        f"{place.position} of {place.waiting}. Keep this page open, or ask again soon: else you lose the "
        "place."
    )


def missed(ticket: Ticket, until: str) -> str:
    """Tell a user who was called and did not come.

    Args:
        ticket: the ticket that is lost.
        until: when the slices were given to the next in line, in words.
    """
    return (
        f"You have lost your place in the queue: {_slices(ticket.count, ticket.profile, ticket.notebooks)} "
        f"{'was' if ticket.count == 1 else 'were'} kept for you until {until}, and your notebook had not "
        "started by then. Ask again to wait for a new turn."
    )


def removed(by: str) -> str:
    """Tell a user whose place somebody else has removed."""
    return f"Your place in the queue was removed by {by}. Ask them why before you ask for GPU slices again."


def refusal(request: SliceRequest, held: Iterable[Held], slices: Iterable[Slice]) -> str:
    """Return why the request can never be granted as things are; empty when it can."""
    limit = request.limit
    user = user_of(request.owner)
    mine = [piece for hold in held if user_of(hold.owner) == user for piece in hold.pieces]
    if request.count > limit.slices or (limit.slices_together and request.count > limit.slices_together):
        most = min(limit.slices, limit.slices_together or limit.slices)
        return (
            f"You asked for {_slices(request.count)} and may hold {most} at once (limit {limit.name}); "
            "choose fewer."
        )
    if len(mine) + request.count > limit.slices:
        return (
            f"You hold {_slices(len(mine))} already and may hold {limit.slices} at once "
            f"(limit {limit.name}); stop another notebook of yours first."
        )
    gpus = sum(piece.whole for piece in mine)
    if limit.gpus is not None and gpus + request.count > limit.gpus and _is_whole(request.profile, slices):
        return (
            f"You hold {gpus} whole GPU{'' if gpus == 1 else 's'} and may hold {limit.gpus} at once "
            f"(limit {limit.name}); choose fewer, or slices of a GPU."
        )
    there = count_by_profile(slices)[request.profile]
    if not there:
        return (
            f"This machine has no GPU slice {request.profile} any more;"
            " reload the page and choose another one."
        )
    if request.count > there:
        return f"This machine has only {_slices(there, request.profile)}; choose fewer."
    return ""


def _is_whole(profile: str, slices: Iterable[Slice]) -> bool:
    return any(piece.whole for piece in slices if piece.profile == profile)


def _slices(count: int, profile: str = "", notebooks: int = 1) -> str:
    kind = "GPU slice" if notebooks == 1 else "shared GPU slice"
    return f"{count} {kind}{'' if count == 1 else 's'} {profile}".rstrip()
