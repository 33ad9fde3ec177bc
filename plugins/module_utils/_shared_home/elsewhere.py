# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accounts that were there before the homes were, and keep their own. No I/O."""

from __future__ import annotations

import posixpath
from collections.abc import Collection


def sentences(passwd: str, names: Collection[str], folder: str) -> list[str]:
    """Return a sentence about each account whose home is not in the folder of homes.

    Args:
        passwd: content of ``/etc/passwd`` (passwd(5)).
        names: of accounts of persons.
        folder: of the homes.
    """
    rows = (line.split(":") for line in passwd.split("\n"))
    homes = {row[0]: row[5] for row in rows if len(row) == 7}
    return [
        f"The home of the account {name} stays {homes[name]}, which is not in {folder} with those of others;"
        f" run 'usermod --home {posixpath.join(folder, name)} {name}' while nobody uses the account, and"
        " copy its files."
        for name in sorted(homes.keys() & set(names))
        if posixpath.dirname(posixpath.normpath(homes[name])) != posixpath.normpath(folder)
    ]
