# SPDX-License-Identifier: GPL-3.0-or-later
"""The form in which a user chooses the notebook's memory and GPU slice."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from gpufarm_hub.sharing import keeping, shared

_TEMPLATES = FileSystemLoader(Path(__file__).parents[1] / "templates")
_FIELDS: Any = (
    Environment(loader=_TEMPLATES, autoescape=True, undefined=StrictUndefined)
    .get_template("form.html")
    .module
)


class ChoiceError(ValueError):
    """The user asked for something that is not offered; the text is for the user."""


@dataclass(frozen=True)
class Choice:
    """Choice of the user.

    Attributes:
        memory: one of the offered sizes, such as ``2G``.
        gpu: profile of the GPU slices, or the name of a shared one (`shared.name`); empty for none.
        slices: how many of them.
        cpus: one of the offered numbers of CPU cores; empty where there is no choice.
        hours: one of the offered times; empty for as long as the user may.
    """

    memory: str
    gpu: str
    slices: int = 1
    cpus: str = ""
    hours: str = ""


@dataclass(frozen=True)
class Offer:
    """How many slices of one profile there are.

    Attributes:
        profile: such as ``1g.10gb``.
        memory: bytes of one slice; 0 where that is not known.
        free: how many nobody holds, and are kept for nobody.
        total: how many there are.
        waiting: how many notebooks wait for some, and it is not their turn yet.
        kept: how many are kept for others whose turn it is.
        until: until when at the latest, in words.
        likely: when one more is likely to be free, in words; empty if some are, or if that is not known.
        notebooks: how many may hold one of the slices at once. Where these are several, the numbers are of
            seats: a slice has as many.
    """

    profile: str
    memory: int
    free: int
    total: int
    waiting: int = 0
    kept: int = 0
    until: str = ""
    likely: str = ""
    notebooks: int = 1

    @property
    def name(self) -> str:
        """Name of the choice, in the form and in user options."""
        return self.profile if self.notebooks == 1 else shared.name(self.profile)

    def __str__(self) -> str:
        seats = "" if self.notebooks == 1 else " seats"
        words = [f"{self.free} of {self.total}{seats} free"]
        if self.kept:
            words.append(f"{self.kept} kept for others until {self.until}")
        if self.waiting:
            words.append(f"{self.waiting} waiting")
        if self.likely and not self.free:
            words.append(f"likely free by {self.likely}")
        size = f" ({self.memory / 2**30:.0f} GiB)" if self.memory else ""
        together = "" if self.notebooks == 1 else f", shared by up to {self.notebooks} notebooks"
        return f"{self.profile}{size}{together}: {', '.join(words)}"


STEPS = (1, 2, 4, 8, 12, 24, 48, 72, 168)  # hours that are offered, up to the limit


def times(most: float) -> list[str]:
    """Return the hours for which a user may choose that a notebook runs; none without a limit.

    Args:
        most: hours of the user's limit; 0 for none.
    """
    return [f"{hours:g}" for hours in (*(step for step in STEPS if step < most), most) if most]


def render(
    memory_choices: Sequence[str],
    offers: Sequence[Offer] | None,
    most: int = 1,
    problem: str = "",
    chosen: str = "",
    missing: int = 0,
    cordoned: int = 0,
    ends: str = "",
    cpu_choices: Sequence[str] = (),
    hours: float = 0,
    why_unknown: str = "notebooks with such slices, or users before you in the queue, have no time limit",
) -> str:
    """Return the form's fields as HTML.

    Args:
        memory_choices: the sizes offered.
        offers: the GPU slices of this machine; None when this hub offers no GPUs.
        most: how many slices this user may hold at once.
        problem: why the slices are not known at the moment; shown in their place.
        chosen: profile that is selected at first; empty for no GPU.
        missing: how many slices are given to nobody, as something is wrong with their GPU.
        cordoned: how many of these are cordoned.
        ends: when notebooks end, in words.
        cpu_choices: the numbers of CPU cores offered.
        hours: for which the user's notebooks may run; 0 for any number.
        why_unknown: why nobody knows how long a user would wait, where nobody knows.
    """
    first = str(_FIELDS.memory(memory_choices)) + str(_FIELDS.cpus(cpu_choices))
    offered = times(hours)
    pairs = [(step, keeping.span(3600 * float(step))) for step in offered]
    last = str(_FIELDS.hours(pairs, *offered[-1:])) if offered else ""
    if offers is None:
        return first + last + str(_FIELDS.explain([ends] if ends else []))
    if problem:
        summary = problem
    elif not most:
        summary = "Your account may not hold GPU slices here."
    elif not offers:
        summary = "This machine has no GPU slices at the moment."
    elif not any(offer.free for offer in offers):
        summary = "All GPU slices are in use; choose one to wait for it."
    elif any(offer.notebooks > 1 for offer in offers):
        summary = "A slice belongs to this notebook alone until it stops, unless you choose a shared one."
    else:
        summary = "A slice belongs to this notebook alone until it stops."
    if missing and most and not problem:
        summary += f" {missing} slice{' is' if missing == 1 else 's are'} not available"
        summary += f" ({cordoned} cordoned)." if cordoned else "."
    profiles = [("", "No GPU"), *((offer.name, str(offer)) for offer in offers if most)]
    most = min(most, max((offer.total // offer.notebooks for offer in offers), default=0))
    numbers = [str(count + 1) for count in range(most)]
    told = [*(_about_slices(offers, why_unknown) if most else []), *([ends] if ends else [])]
    slices = str(_FIELDS.slices(profiles, summary, chosen, numbers))
    return first + slices + last + str(_FIELDS.explain(told))


def _about_slices(offers: Sequence[Offer], why_unknown: str) -> list[str]:
    """Return what newcomers must know of the slices in the form, in sentences."""
    if not offers:
        return []
    told = [
        "A slice is a part of a GPU, or a whole one, with computing power and memory of its own; "
        "programs in your notebook see no other GPU."
    ]
    if any(offer.notebooks > 1 for offer in offers):
        told.append(
            "Notebooks that share a slice have its computing power and its memory in common: one that takes "
            "all of the memory, or makes the slice fail, disturbs the others."
        )
    full = [offer for offer in offers if not offer.free]
    if any(offer.likely for offer in full):
        told.append('A time after "likely free by" is the latest: waiting ends earlier if others stop.')
    if unknown := [offer.name for offer in full if not offer.likely]:
        told.append(f"How long you would wait for {' or '.join(unknown)} is not known: {why_unknown}.")
    return told


def preselected(offers: Sequence[Offer], left: int) -> str:
    """Return the profile that the form proposes: of the free slices the smallest; empty for no GPU.

    Nobody who leaves the form as it is waits in the queue, is refused, or shares a slice with others.

    Args:
        offers: the GPU slices of this machine.
        left: how many more slices this user may hold.
    """
    free = [offer for offer in offers if offer.free and left > 0 and offer.notebooks == 1]
    return min(free, key=lambda offer: offer.memory).profile if free else ""


def when_it_ends(idle_gpu: str, idle: str, hours: str, use_gpu: bool) -> str:
    """Return when a notebook of this user ends, in sentences.

    Args:
        idle_gpu: time without use, in words, after which one with slices ends; empty for never.
        idle: the same for one without slices.
        hours: time for which it may run; empty for any.
        use_gpu: whether there are slices.
    """
    told = []
    if use_gpu and idle_gpu and idle:
        told.append(
            f"A notebook that nobody uses is ended after {idle_gpu} if it holds a slice, else after {idle}."
        )
    elif use_gpu and idle_gpu:
        told.append(f"A notebook with a slice that nobody uses is ended after {idle_gpu}.")
    elif idle:
        without = " without a slice" if use_gpu else ""
        told.append(f"A notebook{without} that nobody uses is ended after {idle}.")
    if hours:
        told.append(f"Yours is ended after {hours} in any case.")
    if told:
        told.append("You are warned before, and your files are kept.")
    return " ".join(["Closing the browser does not stop a notebook.", *told])


def image_fields(labels: Sequence[str], own_from: Sequence[str]) -> str:
    """Return the fields for the image as HTML; none where there is no choice.

    Args:
        labels: of the images that are offered to this user.
        own_from: from where the user may name an image of their own; empty for from nowhere.
    """
    return str(_FIELDS.images(labels, own_from))


def environment_fields(environments: Sequence[tuple[str, str]]) -> str:
    """Return the field for the environment as HTML; none where there is no choice.

    Args:
        environments: name and label of each that is offered to this user.
    """
    return str(_FIELDS.environments(environments))


def last_fields(groups: Sequence[str], folders: Sequence[str]) -> str:
    """Return the fields for the group of new files and for folders as HTML; none where there is no choice.

    Args:
        groups: those that this user can choose beside their own.
        folders: paths that this user can choose.
    """
    pairs = [("", "My own"), *((group, group) for group in groups)] if groups else []
    return str(_FIELDS.files(pairs, folders))


FIELDS = ("memory", "cpus", "gpu", "slices", "hours", "environment", "image", "own_image", "group")

LONGEST_PROFILE = 64  # characters; the names of GPUs that are not partitioned are the longest


def parse(values: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    """Turn what the browser sent (a list per field) into user options."""
    options: dict[str, Any] = {name: values[name][0] for name in FIELDS if values.get(name)}
    if values.get("mounts"):
        options["mounts"] = list(values["mounts"])
    return options


def check(
    options: Mapping[str, Any],
    memory_choices: Sequence[str],
    use_gpu: bool,
    profile: str = "",
    cpu_choices: Sequence[str] = (),
    hours: float = 0,
) -> Choice:
    """Return the choice in user options, which come from the form or from the REST API.

    Args:
        options: user options.
        memory_choices: the sizes offered.
        use_gpu: whether GPU slices are offered.
        profile: the only profile of them that is offered; empty for all.
        cpu_choices: the numbers of CPU cores offered.
        hours: for which the user's notebooks may run; 0 for any number.

    Raises:
        ChoiceError: something in them is not offered.
    """
    memory = options.get("memory", memory_choices[0])
    gpu = options.get("gpu", "")
    slices = options.get("slices", 1)
    if memory not in memory_choices:
        offered = ", ".join(memory_choices)
        raise ChoiceError(f"The memory size {memory!s:.20} is not offered; choose one of {offered}.")
    if not isinstance(gpu, str):
        raise ChoiceError("The GPU slice must be given by the name of its profile.")
    if len(gpu) > LONGEST_PROFILE:
        raise ChoiceError(f"There is no GPU slice {gpu:.20}; choose one that the form offers.")
    if gpu and not use_gpu:
        raise ChoiceError("This service offers no GPUs.")
    if gpu and profile and gpu != profile:
        raise ChoiceError(f"The GPU slice {gpu:.40} is not offered here; choose {profile} or no GPU.")
    # A browser sends text. Four digits are more than any machine has; bool is a kind of int in Python.
    if isinstance(slices, bool) or not re.fullmatch(r"[1-9][0-9]{0,3}", str(slices), re.ASCII):
        raise ChoiceError(f"The number of slices is {slices!s:.20}; give a whole number from 1.")
    return Choice(
        memory=memory,
        gpu=gpu,
        slices=int(slices),
        cpus=_one_of(options.get("cpus", ""), cpu_choices, "number of CPU cores"),
        hours=_one_of(options.get("hours", ""), times(hours), "number of hours"),
    )


def _one_of(value: object, offered: Sequence[str], what: str) -> str:
    """Return the value if it is offered, and the empty one if nothing was chosen.

    Raises:
        ChoiceError: it is not offered.
    """
    if type(value) in (int, float):  # as the REST API takes it
        value = f"{value:g}"
    if value == "" or (isinstance(value, str) and value in offered):
        return value
    choose = f"choose one of {', '.join(offered)}" if offered else "leave it out"
    raise ChoiceError(f"The {what} {value!s:.20} is not offered; {choose}.")
