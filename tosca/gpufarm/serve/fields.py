# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads entries of a settings file strictly: each mistake is one sentence that names its place. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from gpufarm.errors import BadInput
from gpufarm.problems import near


def https(value: str) -> bool:
    """Tell whether a text is an https URL without a login, a query or a fragment.

    Args:
        value: the text.

    Returns:
        True if it is.
    """
    parts = _plain(value, ' ?#"<>\\')
    return parts is not None and parts.scheme == "https" and "@" not in parts.netloc


def ldap(value: str) -> bool:
    """Tell whether a text is the URL of a directory server: a scheme, a host and perhaps a port (RFC 4516).

    Args:
        value: the text.

    Returns:
        True if it is.
    """
    parts = _plain(value, ' ?#"<>\\@')
    return parts is not None and parts.scheme in ("ldap", "ldaps") and not parts.path


def _plain(value: str, forbidden: str) -> SplitResult | None:
    """The parts of a URL with a host, a valid port if it has one, and no forbidden sign; None otherwise."""
    try:
        parts = urlsplit(value)
        _port = parts.port
    except ValueError:
        return None
    fit = value.isprintable() and not any(sign in value for sign in forbidden)
    return parts if parts.hostname and fit else None


class Fields:
    """A map of the settings. Each entry is taken once; `done` refuses those that nobody took."""

    def __init__(self, value: Any, place: str) -> None:
        """Take the map.

        Args:
            value: as the file has it.
            place: its name in messages.

        Raises:
            BadInput: it is no map.
        """
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise BadInput(f"{place} has to be a map; see docs/serve.md")
        self._left = dict(value)
        self._known: list[str] = []
        self._place = place

    def _take(self, name: str) -> Any:
        self._known.append(name)
        return self._left.pop(name, None)

    def _wrong(self, name: str, what: str) -> BadInput:
        return BadInput(f"{self._place}: {name} {what}")

    def has(self, name: str) -> bool:
        """Tell whether an entry is there.

        Args:
            name: of the entry.

        Returns:
            True if it is.
        """
        return self._left.get(name) is not None

    def text(self, name: str, default: str | None = None, longest: int = 512) -> str:
        """Take a text.

        Args:
            name: of the entry.
            default: for a missing entry; None if it is needed.
            longest: number of letters that it may have.

        Returns:
            The text.

        Raises:
            BadInput: it is missing, empty, too long or no text.
        """
        value = self._take(name)
        if value is None and default is not None:
            return default
        if value is None:
            raise self._wrong(name, "is missing")
        if not isinstance(value, str) or not 0 < len(value) <= longest or not value.isprintable():
            raise self._wrong(name, f"has to be a text of 1 to {longest} letters; write it in quotes")
        return value

    def url(self, name: str) -> str:
        """Take the URL of a service.

        Args:
            name: of the entry.

        Returns:
            The URL.

        Raises:
            BadInput: it is none, or not https.
        """
        value = self.text(name)
        if not https(value):
            raise self._wrong(name, f"is {value}; write an https URL without a login, query or fragment")
        return value

    def directory(self, name: str) -> str:
        """Take the URL of a directory server.

        Args:
            name: of the entry.

        Returns:
            The URL.

        Raises:
            BadInput: it is none.
        """
        value = self.text(name)
        if not ldap(value):
            raise self._wrong(name, f"is {value}; write ldaps://HOST, or ldap://HOST for StartTLS")
        return value

    def choice(self, name: str, choices: Collection[str], default: str) -> str:
        """Take one of some words.

        Args:
            name: of the entry.
            choices: the words.
            default: for a missing entry.

        Returns:
            The word.

        Raises:
            BadInput: it is another one.
        """
        value = self.text(name, default)
        if value not in choices:
            raise self._wrong(name, f"is {value}; write one of {', '.join(choices)}")
        return value

    def texts(self, name: str, default: tuple[str, ...] = ()) -> tuple[str, ...]:
        """Take a list of texts.

        Args:
            name: of the entry.
            default: for a missing entry.

        Returns:
            The texts.

        Raises:
            BadInput: it is no list of texts, or an empty one.
        """
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, list) or not value or not all(isinstance(one, str) and one for one in value):
            raise self._wrong(name, "has to be a list of texts; write [one, other]")
        return tuple(value)

    def switch(self, name: str) -> bool:
        """Take true or false.

        Args:
            name: of the entry.

        Returns:
            The value; false for a missing entry.

        Raises:
            BadInput: it is neither.
        """
        value = self._take(name)
        if not isinstance(value, bool | None):
            raise self._wrong(name, "has to be true or false")
        return bool(value)

    def number(self, name: str, default: int, low: int, high: int) -> int:
        """Take a whole number.

        Args:
            name: of the entry.
            default: for a missing entry.
            low: the smallest one.
            high: the largest one.

        Returns:
            The number.

        Raises:
            BadInput: it is none, or out of range.
        """
        value = self._take(name)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            raise self._wrong(name, f"has to be a whole number from {low} to {high}")
        return value

    def limit(self, name: str) -> int | None:
        """Take a number that limits something.

        Args:
            name: of the entry.

        Returns:
            The number; None for no limit.

        Raises:
            BadInput: it is none, or negative.
        """
        return self.number(name, 0, 0, 1_000_000) if self.has(name) else self._take(name)

    def path(self, name: str, folder: Path, default: str | None = None) -> Path:
        """Take the name of a file or a folder, which need not be there.

        Args:
            name: of the entry.
            folder: in which relative names are.
            default: for a missing entry; None if it is needed.

        Returns:
            The absolute path.

        Raises:
            BadInput: it is missing or no text.
        """
        return folder / Path(self.text(name, default, longest=4096)).expanduser()

    def file(self, name: str, folder: Path, *, secret: bool = False) -> Path | None:
        """Take the name of a file that has to be there.

        Args:
            name: of the entry.
            folder: in which relative names are.
            secret: whether others may not read it.

        Returns:
            The absolute path; None for a missing entry.

        Raises:
            BadInput: there is no such file, or others may read it.
        """
        if not self.has(name):
            self._take(name)
            return None
        path = self.path(name, folder)
        if not path.is_file():
            raise self._wrong(name, f"names {path}, which is no file")
        if secret and path.stat().st_mode & 0o007:
            raise self._wrong(name, f"names {path}, which everybody may read; run: chmod o= {path}")
        return path

    def inner(self, name: str) -> Fields:
        """Take a map.

        Args:
            name: of the entry.

        Returns:
            Its entries; none for a missing one.

        Raises:
            BadInput: it is no map.
        """
        value = self._take(name)
        return Fields({} if value is None else value, f"{self._place}: {name}")

    def maps(self, name: str) -> Iterator[Fields]:
        """Take a list of maps.

        Args:
            name: of the entry.

        Yields:
            The entries of each.

        Raises:
            BadInput: it is no list of maps, or an empty one.
        """
        value = self._take(name)
        if not isinstance(value, list) or not value:
            raise self._wrong(name, "has to be a list of maps, of at least one; see docs/serve.md")
        for number, one in enumerate(value, start=1):
            yield Fields(one, f"{self._place}: {name}, entry {number}")

    def named(self) -> Iterator[tuple[str, Any]]:
        """Take all entries that are left.

        Yields:
            The name and the value of each.
        """
        left, self._left = self._left, {}
        yield from left.items()

    def done(self) -> None:
        """Refuse what nobody took.

        Raises:
            BadInput: there are such entries.
        """
        for name in self._left:
            raise BadInput(f"{self._place} has no entry {name[:100]}; {near(name, self._known)}")
