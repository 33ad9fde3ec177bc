"""Shares of mistakes that tests must notice."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from collections.abc import Sequence

from mutation.check import Verdict

# Of the fixed list, by kind of file.
LISTED = {"Python": 0.9, "roles": 0.8}
# Of changed lines, whatever they are, equivalent mutants among them; and how many must be tried to say so.
CHANGED = 0.5
ENOUGH = 10


def kind(verdict: Verdict) -> str:
    """Return which of the kinds of file a mutant is in."""
    return "Python" if verdict.mutant.path.endswith(".py") else "roles"


def share(verdicts: Sequence[Verdict]) -> float:
    """Return the share of noticed mutants; 1 of none."""
    return sum(verdict.noticed for verdict in verdicts) / len(verdicts) if verdicts else 1.0


def unchecked(tried: int, verdicts: Sequence[Verdict]) -> list[str]:
    """Return a sentence if mistakes were tried and none was checked."""
    if not tried or verdicts:
        return []
    return [
        "None of the mistakes was checked; correct the tests that fail without them, which are named above."
    ]


def listed(verdicts: Sequence[Verdict]) -> list[str]:
    """Return for each kind of file below its floor a sentence that says so."""
    found = []
    for name, floor in LISTED.items():
        own = [verdict for verdict in verdicts if kind(verdict) == name]
        if share(own) < floor:
            found.append(f"Tests notice {share(own):.0%} of the mistakes in {name}; {floor:.0%} are needed.")
    return found


def changed(verdicts: Sequence[Verdict]) -> list[str]:
    """Return a sentence if tests notice too few of the mistakes in changed lines."""
    if len(verdicts) < ENOUGH or share(verdicts) >= CHANGED:
        return []
    return [
        f"Tests notice {share(verdicts):.0%} of the mistakes in changed lines; {CHANGED:.0%} are needed. "
        "Add tests that notice those above, or correct the tests that should."
    ]
