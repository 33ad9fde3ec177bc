# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides from the record of a role whether it has to run, and whether its owner may run it.

A record is believed only as far as the machine agrees with it. A lost record costs a full run, and never
leads to the removal of something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from .entry import Entry

TAKE_OVER = "gpufarm_take_over=true"


class Refused(Exception):
    """The owner may not run the role on this machine."""


@dataclass(frozen=True)
class Request:
    """A run of a role.

    Attributes:
        role: its name.
        owner: for whom it runs.
        state: ``present`` or ``absent``.
        variables: digest of its variables; empty if they cannot be known before the run.
        version: digest of the collection.
        owns: whether it sets something up with these variables, instead of verifying what is there.
        divided: whether the role itself divides the machine among owners.
        alone: whether all that the role depends on is in its variables and on this machine.
        take_over: whether the operator allowed to take over what others have made.
        withdraw: whether a removal only takes its owner off the record.
        full_run: whether the operator asked for a run in any case.
    """

    role: str
    owner: str
    state: str = "present"
    variables: str = ""
    version: str = ""
    owns: bool = True
    divided: bool = False
    alone: bool = True
    take_over: bool = False
    withdraw: bool = False
    full_run: bool = False


@dataclass(frozen=True)
class Decision:
    """The steps that a run needs.

    Attributes:
        run: ``present`` or ``absent``: the steps that are needed; empty if none is.
        unchanged: whether at most other machines have changed since the role ran.
        entries: what the record has to be changed to at once; None to leave it.
        by: the entry that says that nothing is to be done; None where steps are needed.
        note: what the operator has to know; may be empty.
    """

    run: str = ""
    unchanged: bool = False
    entries: Mapping[str, Entry] | None = None
    by: Entry | None = None
    note: str = ""


def candidate(request: Request, entries: Mapping[str, Entry]) -> Entry | None:
    """Return the entry of the same settings; without drift, at most other machines have changed since then.

    Args:
        request: the run.
        entries: the record, by owner.
    """
    own = entries.get(request.owner)
    others = [] if request.divided else [entries[owner] for owner in sorted(entries)]
    for entry in [*([own] if own else []), *others]:
        same = (entry.variables, entry.version) == (request.variables, request.version)
        if entry.complete and same and request.variables and not request.full_run:
            return entry
    return None


def present(request: Request, entries: Mapping[str, Entry], drifted: bool) -> Decision:
    """Decide about a run that sets something up.

    Args:
        request: the run.
        entries: the record, by owner; empty if there is none.
        drifted: whether the machine differs from the entry that `candidate` returns.

    Raises:
        Refused: another owner has set the role up with other settings.
    """
    may_set_up(request, entries)
    entry = candidate(request, entries)
    if entry is None or drifted:
        return Decision("present")
    if not request.alone:
        return Decision("present", unchanged=True)
    joined = None if request.owner in entries else {**entries, request.owner: entry}
    return Decision(entries=joined, by=entry)


def may_set_up(request: Request, entries: Mapping[str, Entry]) -> None:
    """Check that no other owner has set the role up with other settings.

    Raises:
        Refused: one has.
    """
    if request.take_over or request.divided or not request.owns:
        return
    for owner, entry in sorted(entries.items()):
        if owner != request.owner and entry.owns and entry.variables != request.variables:
            raise Refused(
                f"The role {request.role} was applied to this machine by {owner} with other settings "
                f"({_when(entry)}); remove it there, give it the same settings here, or set {TAKE_OVER} "
                "(gpufarm deploy --take-over)."
            )


def absent(request: Request, entries: Mapping[str, Entry], left: bool) -> Decision:
    """Decide about a removal: it removes what its owner made, and what is shared when its last user goes.

    Args:
        request: the run.
        entries: the record, by owner; empty if there is none.
        left: whether something is there that the role would remove.

    Raises:
        Refused: no record says who made what is there.
    """
    others = {owner: entry for owner, entry in entries.items() if owner != request.owner}
    if request.withdraw:
        return Decision(entries=others if request.owner in entries else None)
    if request.take_over:
        return Decision("absent")
    if not entries:
        if not left:
            return Decision()
        raise Refused(
            f"No record of this machine says for whom the role {request.role} was applied, so nothing is "
            f"removed; apply the role once with its settings and remove it then, or set {TAKE_OVER}."
        )
    if request.owner not in entries:
        names = " and ".join(sorted(others))
        note = f"The role {request.role} was applied to this machine by {names}, so nothing is removed."
        return Decision(note=note)
    if needing(request, entries) and not request.divided:
        names = " and ".join(needing(request, entries))
        return Decision(entries=others, note=f"All that the role {request.role} made stays for {names}.")
    # Another run that would join must not take for complete what is being removed.
    begun = replace(entries[request.owner], complete=False)
    return Decision("absent", entries={**entries, request.owner: begun})


def needing(request: Request, entries: Mapping[str, Entry]) -> list[str]:
    """Return the other owners who need what the role made.

    Args:
        request: the run.
        entries: the record, by owner.
    """
    return [who for who, one in sorted(entries.items()) if who != request.owner and not one.switched_off]


def made(request: Request, entries: Mapping[str, Entry]) -> bool:
    """Return whether the role made something for this owner before.

    A role that the owner switches off has to leave what others need, as if it had made nothing.

    Args:
        request: the run.
        entries: the record, by owner.
    """
    own = entries.get(request.owner)
    shared = not request.owns and not request.take_over and needing(request, entries)
    return bool(own and any(own.made.values()) and not shared)


def remembered(entries: Mapping[str, Entry]) -> dict[str, str]:
    """Return the settings that the machine had before the first run of a role, by name.

    Args:
        entries: the record, by owner.
    """
    return {name: text for _owner, entry in sorted(entries.items()) for name, text in entry.before.items()}


def found_beside(
    found: Mapping[str, str], beside: Mapping[str, Iterable[Mapping[str, Entry]]]
) -> dict[str, str]:
    """Return settings of the machine as they were before all roles that change them.

    A setting counts as another role remembers it. It is unknown if other roles have set something up, and
    none of them remembers it.

    Args:
        found: the settings of the machine now, by name.
        beside: for settings that other roles change, too, the records of these roles, each by owner.
    """
    before = dict(found)
    for name in found.keys() & beside.keys():
        owning = [entry for entries in beside[name] for entry in entries.values() if entry.owns]
        known = [entry.before[name] for entry in owning if name in entry.before]
        if owning:
            del before[name]
        if known:
            before[name] = known[0]
    return before


def to_remember(
    request: Request, entries: Mapping[str, Entry], found: Mapping[str, str], left: bool
) -> dict[str, str]:
    """Return the settings that the machine had before the first run of a role, as far as they are known.

    Recorded settings stay. Settings that are found now count only if the role has not changed them yet. A
    role that divides the machine among owners knows which these are, as each owner adds some; of others, none
    counts once an owner has set the role up, or if something of the role is there without a record.

    Args:
        request: the run.
        entries: the record, by owner.
        found: the settings of the machine now, by name.
        left: whether something is there that the role makes.
    """
    first = not left and not any(entry.owns for entry in entries.values())
    return {**(found if request.divided or first else {}), **remembered(entries)}


def claimed(
    request: Request, entries: Mapping[str, Entry], about: Entry, before: Mapping[str, str]
) -> dict[str, Entry]:
    """Return the record for a run that begins to change the machine.

    Args:
        request: the run.
        entries: the record, by owner.
        about: who runs it, from where and when.
        before: what `to_remember` returns.

    Raises:
        Refused: another owner has set the role up meanwhile.
    """
    may_set_up(request, entries)
    own = replace(about, owns=request.owns, alone=request.alone)
    own = replace(own, variables=request.variables, version=request.version)
    kept = _kept(request, entries)
    # Things that were made before, also by those whose work is taken over, as a removal has to find them.
    made: dict[str, dict[str, str]] = {}
    for owner, entry in entries.items():
        if owner == request.owner or owner not in kept:
            for kind, states in entry.made.items():
                made[kind] = {**made.get(kind, {}), **states}
    if not request.owns:
        # It only verifies, wants nothing, or is switched off: it has changed no settings, or has brought them
        # back. An earlier run that was killed has not.
        earlier = entries.get(request.owner, Entry())
        before = {} if earlier.owns and earlier.complete else earlier.before
    own = replace(own, made=made, before=dict(before), complete=False)
    return {**kept, request.owner: own}


def forgotten(request: Request, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Return the record after a removal."""
    return {} if request.take_over else {key: one for key, one in entries.items() if key != request.owner}


def _kept(request: Request, entries: Mapping[str, Entry]) -> dict[str, Entry]:
    """Entries that are still true once this run sets the role up."""
    if request.divided or not request.owns:
        return dict(entries)
    return {key: one for key, one in entries.items() if not one.owns or one.variables == request.variables}


def _when(entry: Entry) -> str:
    words = [entry.at[:16].replace("T", " ")]
    words += [f"by {entry.operator}"] if entry.operator else []
    words += [f"from {entry.inventory}"] if entry.inventory else []
    return ", ".join(filter(None, words)) or "not yet complete"
