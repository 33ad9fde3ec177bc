# SPDX-License-Identifier: GPL-3.0-or-later
"""The access token of a user for a service: from a file or the environment, never from a command line."""

from __future__ import annotations

import re
from collections.abc import MutableMapping
from pathlib import Path

from gpufarm.errors import BadInput

VARIABLE = "GPUFARM_TOKEN"
_TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")  # RFC 6750, section 2.1
# Letters; gpufarm serve takes no longer ones.
_LONGEST = 16_384


class Token:
    """Gives the token each time anew, as a file gets another one before the first has expired."""

    def __init__(self, path: Path | None, environment: MutableMapping[str, str]) -> None:
        """Take the source; the environment loses the token, so that no program started later inherits it.

        Args:
            path: a file; None for the environment.
            environment: where ``GPUFARM_TOKEN`` may be set.
        """
        self._path = path
        self._text = environment.pop(VARIABLE, "")

    def __call__(self) -> str:
        """Give the token.

        Returns:
            The token.

        Raises:
            BadInput: there is none, it is none, or others can read its file.
        """
        text = self._read(self._path) if self._path else self._text
        if not text:
            raise BadInput(
                f"an access token is missing; put it into a file for --token-file, or into {VARIABLE}"
            )
        if len(text) > _LONGEST or not _TOKEN.fullmatch(text.strip()):
            raise BadInput(f"{self._path or VARIABLE} has no access token; get one from your provider")
        return text.strip()

    def _read(self, path: Path) -> str:
        try:
            if path.stat().st_mode & 0o077:
                raise BadInput(f"{path}: others can read this access token; run: chmod 600 {path}")
            with path.open(encoding="utf-8", errors="replace") as file:
                return file.read(_LONGEST + 2)
        except OSError as error:
            raise BadInput(f"{path}: the access token cannot be read: {error.strerror}") from error
