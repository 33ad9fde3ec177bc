# SPDX-License-Identifier: GPL-3.0-or-later
"""Names the account of the operator, for people who look at a deployment or a history; it proves nothing."""

from __future__ import annotations

import getpass
import os


def effective() -> str:
    """Name the account that this process has.

    Returns:
        Its name; its number in a container that has no names.
    """
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def operator() -> str:
    """Name the account that a person has logged in with.

    Returns:
        Its name, also behind sudo.
    """
    return os.environ.get("SUDO_USER") or effective()
