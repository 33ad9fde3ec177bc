"""The demo's proof: a user signs in, starts a notebook with a GPU slice, and Python sees that slice alone."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ssl
from collections.abc import Callable
from dataclasses import dataclass

import httpx
from websockets.exceptions import WebSocketException

from lab.errors import LabError
from lab.visitor import Account, ExecutionError, Refused, Visitor


@dataclass(frozen=True)
class Proof:
    """Result of the check.

    Attributes:
        slice: UUID of the MIG device of the notebook.
        free: how many slices of each profile are free when the check is over; None while the user's own
            notebook runs, since the hub shows no form then.
    """

    slice: str
    free: dict[str, int] | None


def check(
    hub: str,
    context: ssl.SSLContext,
    user: str,
    password: str,
    say: Callable[[str], None],
    log_in: Callable[[Visitor, str, str], Account] = Visitor.login,
) -> Proof:
    """Use the service as a user does. A notebook that the user has running is used and left alone.

    Args:
        hub: address of the service.
        context: trusts the hub's and the provider's certificates.
        user: who signs in.
        password: of that user.
        say: called with each step in a few words.
        log_in: signs a visitor in with name and password.

    Raises:
        LabError: the service did not do what it should; the message tells what.
    """
    with Visitor(hub, context) as visitor:
        try:
            say(f"signing in as {user}")
            log_in(visitor, user, password)
            if visitor.running():
                say(f"looking into the notebook that {user} has running")
                return Proof(_only_slice(visitor), None)
            offered = next((profile for profile, free in visitor.form().free.items() if free), None)
            if not offered:
                raise LabError("no GPU slice is free: stop a notebook at the hub, then try again")
            visitor.spawn(gpu=offered, progress=say)
            try:
                say(f"running Python on a {offered} slice")
                proven = _only_slice(visitor)
            finally:
                say("stopping the notebook")
                visitor.stop()
            return Proof(proven, visitor.form().free)
        except (Refused, ExecutionError, TimeoutError, httpx.HTTPError, WebSocketException) as error:
            raise LabError(f"{user} could not use the service at {hub}: {error}") from error


def _only_slice(visitor: Visitor) -> str:
    seen = visitor.slices()
    if not seen.given:
        raise LabError("the notebook has no GPU slice: stop it at the hub, then try again")
    if seen.visible != [seen.given]:
        raise LabError(f"the notebook was given slice {seen.given} but sees {seen.visible or 'none'}")
    return seen.given
