# SPDX-License-Identifier: GPL-3.0-or-later
"""Which folders of the machine a notebook sees beside the user's home. No I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any


class MountError(ValueError):
    """This user cannot have this folder; the text is for the user."""


@dataclass(frozen=True)
class Bind:
    """A folder of the machine in a notebook.

    Attributes:
        source: path on the machine.
        target: path in the notebook.
        read_only: whether the notebook cannot change it.
    """

    source: str
    target: str
    read_only: bool = True


@dataclass(frozen=True)
class Offer:
    """A folder that the site offers.

    Attributes:
        bind: the folder.
        groups: groups whose members may see it; with none everybody may.
        chosen: whether only notebooks see it whose user has chosen it in the form.
    """

    bind: Bind
    groups: frozenset[str] = frozenset()
    chosen: bool = False

    def is_for(self, groups: frozenset[str]) -> bool:
        """Tell whether a member of these groups may see it."""
        return not self.groups or bool(self.groups & groups)


def choices(offers: Iterable[Offer], groups: Iterable[str]) -> list[str]:
    """Return the paths that a member of these groups can choose."""
    names = frozenset(groups)
    return [offer.bind.target for offer in offers if offer.chosen and offer.is_for(names)]


def choose(offers: Iterable[Offer], groups: Iterable[str], wanted: object) -> list[Bind]:
    """Return what a notebook sees.

    Args:
        offers: all that the site offers.
        groups: the user's.
        wanted: paths that the user has chosen; a list of text.

    Raises:
        MountError: one of them is not offered to this user.
    """
    offers, names = list(offers), frozenset(groups)
    if not isinstance(wanted, list):
        raise MountError("The folders must be given as a list of paths.")
    offered = choices(offers, names)
    for path in wanted:
        if path not in offered:
            raise MountError(f"The folder {path!s:.60} is not offered to you.")
    return [
        offer.bind
        for offer in offers
        if offer.is_for(names) and (not offer.chosen or offer.bind.target in wanted)
    ]


def hidden(offers: Iterable[Offer], seen: Iterable[Bind]) -> list[str]:
    """Return the folders of the machine that must be hidden from a notebook that sees the machine's files."""
    there = {path for bind in seen for path in (bind.source, bind.target)}
    return sorted({offer.bind.source for offer in offers if offer.groups} - there)


def within(hidden: Iterable[str], seen: Iterable[Bind]) -> list[str]:
    """Return where hidden folders of the machine would show up inside of folders that the notebook sees."""
    pairs = [(PurePosixPath(path), bind) for path in hidden for bind in seen]
    return sorted(
        {
            str(PurePosixPath(bind.target, path.relative_to(bind.source)))
            for path, bind in pairs
            if path.is_relative_to(bind.source)
        }
    )


def read(entries: Iterable[Mapping[str, Any]]) -> list[Offer]:
    """Return the offers in the role's variable ``jupyterhub_mounts``."""
    return [
        Offer(
            Bind(entry["source"], entry.get("target") or entry["source"], entry.get("read_only", True)),
            frozenset(entry.get("groups") or ()),
            entry.get("optional", False),
        )
        for entry in entries
    ]
