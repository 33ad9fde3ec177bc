# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Components that the package sources of a Debian machine lack."""

from __future__ import annotations

from collections.abc import Iterable


def missing_components(lines: Iterable[str], components: Iterable[str], own_file: str, keyring: str) -> str:
    """Return sources with the components that a machine lacks, for each mirror and suite that it uses.

    Args:
        lines: `apt-get indextargets --format '$(REPO_URI) $(RELEASE) $(COMPONENT) $(SOURCESENTRY)'`.
        components: those wanted.
        own_file: the file for the result; what it holds already does not count as present.
        keyring: the file with the keys that sign the sources.
    """
    present: dict[tuple[str, str], set[str]] = {}
    for line in lines:
        uri, suite, component, entry = line.split(maxsplit=3)
        if entry.rpartition(":")[0] != own_file:
            present.setdefault((uri, suite), set()).add(component)
    wanted = tuple(components)
    missing = {where: [one for one in wanted if one not in there] for where, there in sorted(present.items())}
    return "".join(
        f"\nTypes: deb\nURIs: {uri}\nSuites: {suite}\nComponents: {' '.join(some)}\nSigned-By: {keyring}\n"
        for (uri, suite), some in missing.items()
        if some
    )
