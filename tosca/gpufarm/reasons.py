# SPDX-License-Identifier: GPL-3.0-or-later
"""Says why a step is to be run: what is different from what was done before. Reads nothing but playbooks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gpufarm import waves
from gpufarm.plan import Step

Digest = Callable[[Any], str]


@dataclass(frozen=True)
class Reason:
    """Why a step is to be run.

    Attributes:
        text: in a few words.
        changed: names of the variables that are different, if that is why.
        needed: False if everything is as it was and the step would only repair what was changed by hand.
    """

    text: str
    changed: tuple[str, ...] = ()
    needed: bool = True


def fingerprint(digest: Digest, step: Step) -> str:
    """Fingerprint what a step depends on.

    Args:
        digest: a keyed hash.
        step: the step.

    Returns:
        A hash of machine, playbook and variables.
    """
    return digest([step.host, str(step.playbook), step.playbook.read_text(), step.variables])


def remembered(digest: Digest, step: Step) -> dict[str, Any]:
    """Describe a step that is done, so that a later run can tell what is different.

    Args:
        digest: a keyed hash; values of variables may be secret.
        step: the step.

    Returns:
        ``digest`` of everything, ``host``, and a hash of each of the ``variables`` and of what is ``named``.
    """
    return {
        "digest": fingerprint(digest, step),
        "host": step.host,
        "variables": {name: digest(value) for name, value in step.variables.items()},
        "named": names(digest, step),
    }


def names(digest: Digest, step: Step) -> dict[str, str]:
    """Fingerprint the names of what a step makes.

    Args:
        digest: a keyed hash.
        step: the step.

    Returns:
        A hash of each.
    """
    return {path: digest(value) for path, value in step.named.items()}


def renamed(digest: Digest, steps: Iterable[Step], known: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Find what a deployment has made under another name; nothing would take that away.

    Args:
        digest: a keyed hash.
        steps: that are planned.
        known: what is remembered of each step.

    Returns:
        A sentence for each.
    """
    found = []
    for step in steps:
        before = known.get(step.name, {})
        former = before.get("named") or {}
        changed = [path for path, value in names(digest, step).items() if former.get(path, value) != value]
        if changed and before.get("made", True):
            found.append(
                f"node {step.node} has made something under the former {' and '.join(changed)}; keep it, or "
                "make another deployment with the new one"
            )
    return found


def _own(digest: Digest, step: Step, known: Mapping[str, Any] | None) -> Reason:
    if known is None:
        return Reason("new")
    variables = known.get("variables")
    changed: tuple[str, ...] = ()
    if isinstance(variables, dict):
        changed = tuple(
            name
            for name in sorted({*variables, *step.variables})
            if variables.get(name) != (digest(step.variables[name]) if name in step.variables else None)
        )
    if changed:
        return Reason(f"{', '.join(changed)} changed", changed)
    if not known.get("digest"):
        return Reason("was begun and not finished")
    if known["digest"] != fingerprint(digest, step):
        return Reason("its playbook changed")
    return Reason("as before; repairs what was changed by hand", needed=False)


def explain(
    digest: Digest, steps: Iterable[Step], known: Mapping[str, Mapping[str, Any]]
) -> dict[str, Reason]:
    """Say why each step is to be run.

    Args:
        digest: a keyed hash.
        steps: each after those that it needs.
        known: what is remembered of each step.

    Returns:
        The reason of each step, by name.
    """
    listed = list(steps)
    found = {step.name: _own(digest, step, known.get(step.name)) for step in listed}
    needed = {name for name, reason in found.items() if reason.needed}
    for name in waves.depending(listed, needed):
        if not found[name].needed:
            found[name] = Reason("what it needs is applied anew")
    return found
