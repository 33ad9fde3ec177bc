# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that benchmarks have measured on a machine, and what they were at first. No I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PATH = "/var/lib/gpufarm/benchmarks/results.json"
# How much worse than at first, as a part of it, a value may be.
TOLERANCE = 0.1
# Ends of names of values of which less is better.
LESS_IS_BETTER = ("_us",)


@dataclass(frozen=True)
class Results:
    """Values by name, those of the first measurement or of the one that was declared to be the baseline,
    when each was measured, and the other ends of links.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    baseline: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[str, str] = field(default_factory=dict)

    def has(self, prefix: str, end: str = "") -> bool:
        """Return whether values were measured.

        Args:
            prefix: how their names begin.
            end: address of the other end of a link.
        """
        return any(name.startswith(prefix) and self.ends.get(name, "") == end for name in self.values)

    def with_values(self, values: Mapping[str, float], now: str, *, anew: bool, end: str = "") -> Results:
        """Return the results with those of a measurement.

        Args:
            values: by name.
            now: when it was, in ISO 8601.
            anew: whether the values are the new baseline; those of a link to another end always are.
            end: address of the other end of a link.
        """
        first = {
            name: value
            for name, value in values.items()
            if anew or name not in self.baseline or self.ends.get(name, "") != end
        }
        return Results(
            {**self.values, **values},
            {**self.baseline, **first},
            {**self.measured, **dict.fromkeys(values, now)},
            {**self.ends, **(dict.fromkeys(values, end) if end else {})},
        )

    def worse(self) -> dict[str, float]:
        """Return how much worse than the baseline values are, as a part of it, beyond `TOLERANCE`."""
        found = {}
        for name, first in self.baseline.items():
            if name in self.values and first:
                change = self.values[name] / first - 1
                by = change if name.endswith(LESS_IS_BETTER) else -change
                if by > TOLERANCE:
                    found[name] = by
        return found

    def sentences(self) -> list[str]:
        """Return the values that are worse than the baseline, for people."""
        return [
            f"{name} is {self.values[name]:.4g}, {by:.0%} worse than {self.baseline[name]:.4g} at first"
            for name, by in self.worse().items()
        ]


def parse(content: Any) -> Results:
    """Return the results that a file has, as JSON.

    Raises:
        ValueError: it has none.
    """
    try:
        values, baseline = [
            {str(name): float(value) for name, value in content[part].items()}
            for part in ("values", "baseline")
        ]
        measured, ends = [
            {str(name): str(value) for name, value in content[part].items()} for part in ("measured", "ends")
        ]
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it has no results") from error
    return Results(values, baseline, measured, ends)
