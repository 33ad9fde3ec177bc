# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds what a role made earlier and makes no longer, for instance since a newer version of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

UNITS = "/etc/systemd/system/"
# First letters of the states of files and symbolic links (ls(1)).
FILES = ("-", "l")
# A mount may be in use, so the roles themselves unmount it.
MOUNTS = (".mount", ".automount")


@dataclass(frozen=True)
class Dropped:
    """Things that nothing makes any longer.

    Attributes:
        files: the recorded states of files and symbolic links, by path. Folders may hold more than was made.
        units: units of systemd whose own file is among the files.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    units: tuple[str, ...] = ()


def dropped(
    before: Mapping[str, Mapping[str, str]],
    now: Mapping[str, Iterable[str]],
    others: Iterable[Mapping[str, Iterable[str]]],
) -> Dropped:
    """Return what is in the record of a role and is made by nothing now.

    Args:
        before: the states of what the role made for this owner, by kind and name.
        now: names of what it makes now, by kind.
        others: the same of other owners and other roles.
    """
    made = [now, *others]
    paths = {path for things in made for kind in ("paths", "reads") for path in things.get(kind, ())}
    units = {unit for things in made for unit in things.get("units", ())}
    files = {
        path: state
        for path, state in before.get("paths", {}).items()
        if state.startswith(FILES)
        and not path.endswith(MOUNTS)
        and not any(path == one or path.startswith(f"{one}/") for one in paths)
    }
    stopped = (unit for unit in before.get("units", {}) if unit not in units and UNITS + unit in files)
    return Dropped(files, tuple(sorted(stopped)))
