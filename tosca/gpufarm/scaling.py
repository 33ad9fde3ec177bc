# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides how many instances of a machine there should be. Pure.

A function from a `Situation` to a `Decision` decides; a policy of the template names it. Python packages add
their own as entry points in the group ``gpufarm.scaling``.
"""

from __future__ import annotations

import importlib.metadata
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from gpufarm.errors import BadInput
from gpufarm.problems import near

GROUP = "gpufarm.scaling"


@dataclass(frozen=True)
class Situation:
    """Input of a decision.

    Attributes:
        instances: how many there are.
        least: how many there must be.
        most: how many there may be.
        metrics: value of each metric of the policy.
        settings: numbers that the policy gives.
    """

    instances: int
    least: int
    most: int
    metrics: Mapping[str, float]
    settings: Mapping[str, float]


@dataclass(frozen=True)
class Decision:
    """A decision.

    Attributes:
        instances: how many there should be.
        reason: why, in a phrase.
    """

    instances: int
    reason: str


Decide = Callable[[Situation], Decision]


def _number(kind: str, known: Mapping[str, float], name: str) -> float:
    if name not in known:
        raise BadInput(f"the scaling policy has no {kind} {name}; add it")
    return known[name]


def threshold(situation: Situation) -> Decision:
    """Add instances while the load is high, take some away while it is low.

    Args:
        situation: with the metric ``load`` and the settings ``high``, ``low`` (default: never) and ``step``
            (default: 1 instance).

    Returns:
        The decision.

    Raises:
        BadInput: a metric or a setting is missing, or ``low`` is not below ``high``.
    """
    load = _number("metric", situation.metrics, "load")
    high = _number("setting", situation.settings, "high")
    low = situation.settings.get("low", -math.inf)
    step = round(situation.settings.get("step", 1))
    if low >= high or step < 1:
        raise BadInput("the scaling policy needs a setting low below high, and a step of at least 1")
    if load > high:
        return Decision(situation.instances + step, f"load {load:g} is above {high:g}")
    if load < low:
        return Decision(situation.instances - step, f"load {load:g} is below {low:g}")
    return Decision(situation.instances, f"load {load:g} is right")


def per_instance(situation: Situation) -> Decision:
    """Have one instance for each share of the load.

    Args:
        situation: with the metric ``load`` and the setting ``share``, what one instance bears.

    Returns:
        The decision.

    Raises:
        BadInput: metric or setting is missing, or ``share`` is not above 0.
    """
    load = _number("metric", situation.metrics, "load")
    share = _number("setting", situation.settings, "share")
    if share <= 0:
        raise BadInput("the scaling policy needs a setting share above 0; change it")
    return Decision(math.ceil(load / share), f"load {load:g} is shared by {share:g} for each instance")


_OWN: dict[str, Decide] = {"threshold": threshold, "per_instance": per_instance}


def named(name: str) -> Decide:
    """Find who decides.

    Args:
        name: as a policy has it.

    Returns:
        The function.

    Raises:
        BadInput: nobody has this name.
    """
    others = {entry.name: entry for entry in importlib.metadata.entry_points(group=GROUP)}
    if name in _OWN:
        return _OWN[name]
    if name not in others:
        raise BadInput(f"nobody decides {name}; {near(name, {*_OWN, *others})}")
    found: Decide = others[name].load()
    return found


def decide(name: str, situation: Situation, *, rested: float, cooldown: float) -> Decision:
    """Decide how many instances there should be.

    Args:
        name: who decides.
        situation: what is known.
        rested: seconds since the last change.
        cooldown: seconds in which nothing is changed again.

    Returns:
        A decision within the bounds, with a reason that tells if they or the time hold it back.

    Raises:
        BadInput: the policy is incomplete.
    """
    if any(not math.isfinite(value) for value in situation.metrics.values()):
        return Decision(situation.instances, "a metric is no number, so nothing is changed")
    wanted = named(name)(situation)
    held = min(max(wanted.instances, situation.least), situation.most)
    if held != wanted.instances:
        bound = "at most" if wanted.instances > situation.most else "at least"
        wanted = Decision(held, f"{wanted.reason}; {bound} {held} are allowed")
    if wanted.instances != situation.instances and rested < cooldown:
        left = math.ceil((cooldown - rested) / 60)
        return Decision(
            situation.instances, f"{wanted.reason}, but the last change rests {left} more minutes"
        )
    return wanted
