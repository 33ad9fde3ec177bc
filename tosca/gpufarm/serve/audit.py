# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes down who changed what, and at what of others administrators looked."""

from __future__ import annotations

import time

from sqlalchemy.orm import Session

from gpufarm.serve.people import Person
from gpufarm.serve.tables import Audit


def note(session: Session, person: Person, action: str, deployment: str = "", detail: str = "") -> None:
    """Add an entry to a transaction, so that there is none without the change and no change without it.

    Args:
        session: the transaction.
        person: the user.
        action: such as ``create``.
        deployment: uuid; empty for a list.
        detail: more about it, without values of inputs.
    """
    session.add(
        Audit(
            time=time.time(),
            issuer=person.issuer,
            subject=person.subject,
            action=action,
            deployment=deployment,
            detail=detail,
        )
    )
