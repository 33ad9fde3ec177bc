# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words with which a user says how a GPU is to be partitioned."""

from __future__ import annotations

import re
from dataclasses import dataclass

# The form of the names in NVIDIA's MIG user guide, "Supported MIG Profiles": slices, memory, attributes.
_PROFILE = r"[1-9][0-9]*g\.[0-9]+gb(?:[+-][a-z]+(?:\.[a-z]+)?)*"
_ITEM = re.compile(rf"(?P<count>[1-9][0-9]*)\s*x\s*(?P<profile>{_PROFILE})")
# "7x 1g.10gb MIG GPUs" is how the forms of INFN Cloud word a flavor.
_SUFFIX = re.compile(r"\s+MIG GPUs?$")

AS_FOUND = "None"
DISABLED = "disabled"


class FlavorError(ValueError):
    """A text that says no flavor."""


@dataclass(frozen=True)
class Flavor:
    """A wish for one GPU: its `kind`, and (profile name, count) pairs when that is `layout`."""

    kind: str
    profiles: tuple[tuple[str, int], ...] = ()

    def __str__(self) -> str:
        """The flavor in the form that `parse_flavor` reads."""
        return ", ".join(f"{count}x {name}" for name, count in self.profiles) or self.kind


def parse_flavor(text: str) -> Flavor:
    """Read a flavor.

    :arg text: `None` (leave what is there), `disabled` (MIG mode off) or a layout such as
        `7x 1g.10gb MIG GPUs` or `1x 3g.40gb, 2x 2g.20gb`
    :returns: a Flavor of kind `None`, `disabled` or `layout`
    :raises FlavorError: for any other text, in one sentence that names the text and the forms that are read
    """
    if text.strip() in (AS_FOUND, DISABLED):
        return Flavor(text.strip())
    counts: dict[str, int] = {}
    for item in _SUFFIX.sub("", text.strip()).split(","):
        match = _ITEM.fullmatch(item.strip())
        if match is None:
            raise FlavorError(
                f"The MIG flavor '{text}' is not understood: write 'None', 'disabled', or counts and profiles"
                " such as '7x 1g.10gb' or '1x 3g.40gb, 2x 2g.20gb'."
            )
        if match["profile"] in counts:
            raise FlavorError(
                f"The MIG flavor '{text}' names the profile {match['profile']} twice: add up its counts."
            )
        counts[match["profile"]] = int(match["count"])
    return Flavor("layout", tuple(counts.items()))
