# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of a record: one for each owner of what a role made, and their form as text."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any

# Form of the text. A record of another form counts as lost, which costs a full run.
FORM = 1


class LostRecord(Exception):
    """A record cannot be read, so nothing is known of what the role made."""


@dataclass(frozen=True)
class Entry:
    """The work of a role for an owner.

    Attributes:
        owns: whether the role set something up; false if it only verified what others have set up.
        variables: digest of the role's variables.
        version: digest of the collection.
        inventory: the inventory of the last run.
        operator: the account that ran it, on the controller.
        at: when it ended, in UTC (ISO 8601).
        made: for each kind of thing the state of each by its name; empty until the role has ended.
        result: what the role returned.
        complete: whether the role ended well after the claim.
        alone: whether all that it depends on was in its variables and on the machine.
        before: settings of the machine that the role changes, by name, as they were before its first run.
    """

    owns: bool = True
    variables: str = ""
    version: str = ""
    inventory: str = ""
    operator: str = ""
    at: str = ""
    made: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    result: Mapping[str, Any] = field(default_factory=dict)
    complete: bool = False
    alone: bool = True
    before: Mapping[str, str] = field(default_factory=dict)

    @property
    def switched_off(self) -> bool:
        """Whether the owner has switched the role off, so needs nothing of it."""
        return self.complete and not self.owns and not any(self.made.values())


def read(text: str) -> dict[str, Entry]:
    """Return the entries of a record by their owners.

    Raises:
        LostRecord: it is no record of this form.
    """
    try:
        document = json.loads(text)
        if document["form"] != FORM:
            raise LostRecord(f"it has the form {document['form']!r}, and {FORM} is known")
        return {str(owner): _entry(entry) for owner, entry in document["owners"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise LostRecord(f"it is no record: {error}") from error


def _entry(written: Mapping[str, Any]) -> Entry:
    entry = {"before": {}, "alone": True, **written}  # earlier versions kept neither
    for one in fields(Entry):
        kinds = {"owns": bool, "complete": bool, "alone": bool, "made": dict, "result": dict, "before": dict}
        kind = kinds.get(one.name, str)
        if not isinstance(entry[one.name], kind):
            raise TypeError(f"{one.name} is no {kind.__name__}")
    for texts in (entry["before"], *entry["made"].values()):
        if not all(isinstance(text, str) for text in texts.values()):
            raise TypeError("made or before has a state that is no text")
    return Entry(**{one.name: entry[one.name] for one in fields(Entry)})


def write(entries: Mapping[str, Entry]) -> str:
    """Return the text of a record."""
    document = {"form": FORM, "owners": {owner: asdict(entry) for owner, entry in entries.items()}}
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def phrases(entry: Entry, differences: list[str], lost: str) -> list[str]:
    """Return the state of what an entry records, in phrases for people.

    Args:
        entry: the entry.
        differences: what `drift` returns for it.
        lost: why the record cannot be read; empty if it can be.
    """
    if lost:
        return [f"the record is lost: {lost}"]
    if not entry.complete:
        return ["the run did not end"]
    return differences or ["as recorded"]


def drift(made: Mapping[str, Mapping[str, str]], found: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Return which things differ from the record.

    Args:
        made: the states in the record.
        found: the states on the machine, of the same things.

    Returns:
        A phrase for each thing, such as "unit a.service: enabled, active -> enabled, failed".
    """
    return [
        f"{kind} {name}: {state} -> {found.get(kind, {}).get(name, 'unknown')}"
        for kind, states in sorted(made.items())
        for name, state in sorted(states.items())
        if found.get(kind, {}).get(name) != state
    ]
