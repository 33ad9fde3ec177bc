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
    and when each was measured.
    """

    values: Mapping[str, float] = field(default_factory=dict)
    baseline: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, str] = field(default_factory=dict)

    def with_values(self, values: Mapping[str, float], now: str, *, anew: bool) -> Results:
        """Return the results with those of a measurement.

        Args:
            values: by name.
            now: when it was, in ISO 8601.
            anew: whether the values are the new baseline.
        """
        first = {name: value for name, value in values.items() if anew or name not in self.baseline}
        return Results(
            {**self.values, **values},
            {**self.baseline, **first},
            {**self.measured, **dict.fromkeys(values, now)},
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
        parts = [content[name] for name in ("values", "baseline", "measured")]
        values, baseline = [{str(name): float(value) for name, value in part.items()} for part in parts[:2]]
        return Results(values, baseline, {str(name): str(value) for name, value in parts[2].items()})
    except (AttributeError, KeyError, TypeError) as error:
        raise ValueError("it has no results") from error
