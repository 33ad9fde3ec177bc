# SPDX-License-Identifier: GPL-3.0-or-later
"""Users as their issuer names them. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Person:
    """An account of an issuer.

    Attributes:
        issuer: URL, exactly as the issuer writes it.
        subject: claim ``sub``.
    """

    issuer: str
    subject: str


@dataclass(frozen=True)
class User(Person):
    """A person that has presented a valid token.

    Attributes:
        groups: names of the groups, as the issuer says.
        administrator: whether the person is an administrator for this issuer.
        claims: all that the issuer says of the person.
    """

    groups: frozenset[str] = frozenset()
    administrator: bool = False
    claims: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def sees(self, issuer: str, subject: str) -> bool:
        """Tell whether the user may know of a deployment.

        Args:
            issuer: of its owner.
            subject: of its owner.

        Returns:
            True for the owner, and for administrators of the same issuer.
        """
        return issuer == self.issuer and (self.administrator or subject == self.subject)
