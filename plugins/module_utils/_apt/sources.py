# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which components of the package sources of a Debian machine are missing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Source:
    """A suite on a mirror, and components of it."""

    uri: str
    suite: str
    components: tuple[str, ...]


def missing_components(lines: Iterable[str], components: Iterable[str], own_file: str) -> list[Source]:
    """Return the components that a machine's sources lack, for each mirror and suite it uses.

    Args:
        lines: `apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)'`.
        components: those wanted.
        own_file: the file that will hold the missing ones; what it holds already does not count as present.
    """
    present: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        uri, suite, component, entry = line.split(maxsplit=3)
        if entry.rpartition(":")[0] != own_file:
            present.setdefault((uri, suite), set()).add(component)
    found = [
        Source(uri, suite, tuple(component for component in components if component not in there))
        for (uri, suite), there in sorted(present.items())
    ]
    return [source for source in found if source.components]
