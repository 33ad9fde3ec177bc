# SPDX-License-Identifier: GPL-3.0-or-later
"""Notices to users about their notebooks: shown on the hub's pages and told by its REST API."""

from __future__ import annotations

from pathlib import Path

from gpufarm_hub.store import JsonStore, StoreError


class Notices:
    """One sentence per notebook, until the notebook starts anew.

    Args:
        path: the file they are kept in.
    """

    def __init__(self, path: Path) -> None:
        self._store = JsonStore(path)

    def shown(self, user: str) -> dict[str, str]:
        """Return as `of` what every page shows; nothing while the file cannot be read."""
        try:
            self._store.mend()
            return self.of(user)
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
