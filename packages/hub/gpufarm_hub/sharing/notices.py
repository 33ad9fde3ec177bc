# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices to users about their notebooks: shown on the hub's pages and told by its REST API."""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from gpufarm_hub.store import JsonStore, StoreError


class Notices:
    """One sentence per notebook, until the notebook starts anew.

    Args:
        path: the file they are kept in.
    """

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path)

    def shown(self, user: str, servers: Container[str] = ("",)) -> dict[str, str]:
        """Return as `of` what pages show; nothing while the file cannot be read.

        Args:
            user: name of the user.
            servers: names of the servers that the user has; notices about others are over.
        """
        try:
            self._store.mend()
            return {server: text for server, text in self.of(user).items() if server in servers}
        except StoreError:
            return {}

    def of(self, user: str) -> dict[str, str]:
        """Return the sentences for a user's notebooks: name of the server to sentence."""
        return {
            owner.partition("/")[2]: text
            for owner, text in self._store.read().items()
            if owner.startswith(f"{user}/")
        }

    def tell(self, owner: str, text: str) -> None:
        """Replace what the owner of a notebook must know."""
        with self._store.change() as content:
            content[owner] = text

    def clear(self, owner: str) -> None:
        """Forget it."""
        with self._store.change() as content:
            content.pop(owner, None)
