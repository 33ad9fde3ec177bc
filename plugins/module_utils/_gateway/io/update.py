# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Brings HAProxy in line with Marathon's apps. A configuration that HAProxy refuses changes nothing."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ..._host.io.files import replace_file
from ..claims import settle
from ..configuration import backends, place_map
from ..routes import Route, Settings, check_apps
from .haproxy import HaproxyError

MODE = 0o644  # HAProxy reads the files under another account


class Proxy(Protocol):
    """Interface to HAProxy; `haproxy.Haproxy` does it."""

    def check(self, part: Path) -> None:
        """Raise HaproxyError if it cannot read the file."""

    def runs(self) -> bool:
        """Tell whether it runs."""

    def reload(self) -> None:
        """Take the files over; raise HaproxyError if that failed."""


@dataclass(frozen=True)
class Places:
    """Where things are.

    Attributes:
        folder: of the files that are written here.
        certificate: file of the gateway's certificate and key.
        listen: see `configuration.backends`.
    """

    folder: Path
    certificate: str
    listen: str

    @property
    def apps(self) -> Path:
        """Backends, and frontends of ports."""
        return self.folder / "apps.cfg"

    @property
    def map(self) -> Path:
        """From names and paths to backends."""
        return self.folder / "routes.map"

    @property
    def holders(self) -> Path:
        """Holders of names, paths and ports; they outlive the program, so that no app loses its claim."""
        return self.folder / "holders.json"


@dataclass
class Report:
    """Result of an update.

    Attributes:
        routes: those that are served now.
        problems: sentences about what is not served, sorted.
        notes: sentences about labels without effect, sorted.
        reloaded: whether HAProxy was given new files.
    """

    routes: list[Route] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    reloaded: bool = False


class Gateway:
    """One HAProxy and its files."""

    def __init__(
        self,
        settings: Settings,
        places: Places,
        proxy: Proxy,
        addresses: Callable[[Iterable[str]], dict[str, str]],
        taken: Callable[[Iterable[int]], list[int]],
    ) -> None:
        """Take the parts; `addresses` and `taken` are those of `names` and `haproxy`."""
        self.settings = settings
        self.places = places
        self.proxy = proxy
        self.addresses = addresses
        self.taken = taken
        # Unknown at the start: the program may have been ended between writing and reloading.
        self._loaded: tuple[str, str] | None = None
        self._holders: dict[str, str] = _holders(_text_of(places.holders))

    def update(self, apps: Iterable[Mapping[str, Any]]) -> Report:
        """Serve what the apps ask for.

        Args:
            apps: as Marathon gives them.

        Returns:
            Result of the update.

        Raises:
            HaproxyError: the new configuration as a whole is refused; the old one is served on.
            OSError: files cannot be written; the old ones are served on.
        """
        checked = check_apps(apps, self.settings)
        settled = settle(checked.routes, self._holders)
        problems = [
            text for texts in (checked.problems, settled.problems) for one in texts.values() for text in one
        ]
        routes, blocked = self._without_taken_ports(settled.routes)
        addresses = self.addresses({server.host for route in routes for server in route.servers})
        problems += blocked + _nameless(routes, addresses)
        wanted = self._written(routes, addresses)
        if wanted != self._loaded:
            good = self._good(routes, addresses)
            for route in routes:
                if route not in good:
                    problems.append(
                        f"{route.app}, port {route.index} is not served: HAProxy does not take it."
                    )
            routes = good
            wanted = self._written(routes, addresses)
        reloaded = wanted != self._loaded
        if reloaded:
            self._take_over(wanted)
        self._remember({claim: route.name for route in routes for claim in route.claims})
        notes = [text for texts in checked.notes.values() for text in texts]
        return Report(routes, sorted(problems), sorted(notes), reloaded)

    def _without_taken_ports(self, routes: Sequence[Route]) -> tuple[list[Route], list[str]]:
        """Leave out ports on which other programs listen: for one of them HAProxy would not start at all."""
        ours = set(self._holders) if self.proxy.runs() else set()
        taken = set(
            self.taken({route.port for route in routes if route.port and f"port {route.port}" not in ours})
        )
        problems = [
            f"{route.app}, port {route.index} is not served: another program on the gateway listens at port "
            f"{route.port}."
            for route in routes
            if route.port in taken
        ]
        return [route for route in routes if route.port not in taken], problems

    def _written(self, routes: Sequence[Route], addresses: Mapping[str, str]) -> tuple[str, str]:
        return backends(routes, addresses, self.places.certificate, self.places.listen), place_map(routes)

    def _good(self, routes: list[Route], addresses: Mapping[str, str]) -> list[Route]:
        """Leave out routes that HAProxy refuses, although their labels passed the checks."""
        candidate = self.places.apps.with_name("candidate.cfg")
        replace_file(candidate, self._written(routes, addresses)[0], MODE)
        try:
            self.proxy.check(candidate)
        except HaproxyError:
            if len(routes) < 2:
                if not routes:
                    raise
                return []
        else:
            return routes
        half = len(routes) // 2
        good = self._good(routes[:half], addresses) + self._good(routes[half:], addresses)
        if len(good) == len(routes):
            raise HaproxyError("each app is taken, but not all of them together")
        return good

    def _take_over(self, wanted: tuple[str, str]) -> None:
        files = (self.places.apps, self.places.map)
        before = [_text_of(path) for path in files]
        for path, text in zip(files, wanted, strict=True):
            replace_file(path, text, MODE)
        if self.proxy.runs():
            try:
                self.proxy.reload()
            except (HaproxyError, OSError):
                for path, text in zip(files, before, strict=True):
                    replace_file(path, text, MODE)
                raise
        self._loaded = wanted

    def _remember(self, holders: dict[str, str]) -> None:
        if holders != self._holders:
            replace_file(self.places.holders, json.dumps(holders, indent=1, sort_keys=True) + "\n", MODE)
            self._holders = holders


def _nameless(routes: Iterable[Route], addresses: Mapping[str, str]) -> list[str]:
    return [
        f"{route.app}, port {route.index}: a task gets no requests, as {server.host} has no address."
        for route in routes
        for server in route.servers
        if server.host not in addresses
    ]


def _text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _holders(text: str) -> dict[str, str]:
    try:
        document = json.loads(text or "{}")
    except ValueError:
        return {}
    return {str(claim): str(name) for claim, name in document.items()} if isinstance(document, dict) else {}
