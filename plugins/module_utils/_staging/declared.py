# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Data that a job declares: what is brought in before it, and what is taken out after it. No I/O."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from dataclasses import asdict, dataclass

# Names that begin so are those of our own folders, in stages and in stores.
OWN = ".gpufarm"
_NAME_BYTES = 255  # NAME_MAX (limits.h(0p)) of the file systems of Linux


class StagingError(Exception):
    """Data cannot be staged; the text is a sentence without its full stop."""


@dataclass(frozen=True)
class Place:
    """A file or folder in a store: the name of the store, and the path in it."""

    store: str
    path: str

    def __str__(self) -> str:
        return shown(f"{self.store}/{self.path}")


@dataclass(frozen=True)
class Item:
    """A file or folder of a job: its name in the folder that the job has, and its place in a store."""

    name: str
    place: Place


@dataclass(frozen=True)
class Declared:
    """All that a job declares.

    `replace` allows outputs to take the place of what is in the store, `always` brings them there also if
    the job has failed.
    """

    inputs: tuple[Item, ...] = ()
    outputs: tuple[Item, ...] = ()
    replace: bool = False
    always: bool = False

    def text(self) -> str:
        """Return it as JSON. Names that are no UTF-8 are kept."""
        return json.dumps(asdict(self))

    @classmethod
    def of_text(cls, text: str) -> Declared:
        """Return what `text` has written.

        Raises:
            StagingError: it is damaged.
        """
        try:
            read = json.loads(text)
            inputs, outputs = (
                tuple(Item(one["name"], Place(**one["place"])) for one in read[way])
                for way in ("inputs", "outputs")
            )
            return cls(inputs, outputs, bool(read["replace"]), bool(read["always"]))
        except (ValueError, KeyError, TypeError):
            raise StagingError("what the job has declared cannot be read any more") from None


@dataclass(frozen=True)
class Request:
    """A command line: declared data, and the words for sbatch; or nothing but help."""

    declared: Declared = Declared()
    words: tuple[str, ...] = ()
    helps: bool = False


def shown(text: str) -> str:
    """Return a text without the signs that terminals take for commands."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in text)


def parse(words: Sequence[str], stores: Collection[str]) -> Request:
    """Return what a command line asks for.

    Own options come first. The first word that is none of them begins the words for sbatch, which are
    passed on as they are.

    Args:
        words: the arguments of the command.
        stores: names of the stores.

    Raises:
        StagingError: it cannot be understood.
    """
    given: dict[str, list[str]] = {"--input": [], "--output": []}
    flags = {"--replace": False, "--always": False}
    rest = list(words)
    separated = False
    while rest:
        word, equals, value = rest[0].partition("=")
        if rest[0] in ("--help", "-h"):
            return Request(helps=True)
        if rest[0] in flags:
            flags[rest.pop(0)] = True
        elif word in given and equals:
            given[word].append(value)
            del rest[0]
        elif rest[0] in given:
            if len(rest) < 2:
                raise StagingError(f"{word} needs a value; see gpufarm-submit --help")
            given[word].append(rest[1])
            del rest[:2]
        else:
            separated = rest[0] == "--"
            del rest[: int(separated)]
            break
    if not separated:
        _refuse_late(rest)
    declared = Declared(
        tuple(parse_input(text, stores) for text in given["--input"]),
        tuple(parse_output(text, stores) for text in given["--output"]),
        flags["--replace"],
        flags["--always"],
    )
    for sentence in wrong(declared):
        raise StagingError(sentence)
    return Request(declared, tuple(rest))


def parse_input(text: str, stores: Collection[str]) -> Item:
    """Return an input: STORE/PATH, or STORE/PATH:NAME. The last colon counts; nothing behind it is no name.

    Raises:
        StagingError: it is none.
    """
    place, name = text.rsplit(":", 1) if ":" in text else (text, "")
    found = _place(place, stores)
    return Item(_named(name or found.path.rpartition("/")[2]), found)


def parse_output(text: str, stores: Collection[str]) -> Item:
    """Return an output: NAME:STORE/PATH. The first colon counts.

    Raises:
        StagingError: it is none.
    """
    name, colon, place = text.partition(":")
    if not colon:
        raise StagingError(f"the output {shown(name)} has no place in a store; give {shown(name)}:STORE/PATH")
    found = _place(place, stores)
    _named(found.path.rpartition("/")[2])
    return Item(_named(name), found)


def wrong(declared: Declared) -> Iterator[str]:
    """Yield what is wrong with all that is declared together, as sentences without their full stops."""
    if not declared.inputs + declared.outputs:
        yield "a job without --input and --output needs no staging; submit it with sbatch"
    seen = set()
    for one in declared.inputs + declared.outputs:
        if one.name in seen:
            yield f"{shown(one.name)} is the name of two inputs or outputs; give one of them another name"
        seen.add(one.name)
    places = [one.place for one in declared.outputs]
    for number, first in enumerate(places):
        for other in places[number + 1 :]:
            paths = sorted((f"{first.path}/", f"{other.path}/"), key=len)
            if first.store == other.store and paths[1].startswith(paths[0]):
                yield f"outputs go to {first} and to {other}; give places of which none is in the other"


def _refuse_late(rest: Sequence[str]) -> None:
    """Refuse own options among those of sbatch, which has options of the same names that mean files.

    Raises:
        StagingError: there is one.
    """
    if rest and rest[0].startswith("-"):
        for word in rest:
            name = word.partition("=")[0]
            if name in ("--input", "--output", "--replace", "--always"):
                raise StagingError(
                    f"{name} comes after an option of sbatch; put it in front of all of these, or write --"
                    " in front of them if it is meant for sbatch or for the job"
                )


def _place(text: str, stores: Collection[str]) -> Place:
    store, slash, path = text.partition("/")
    if store not in stores:
        raise StagingError(
            f"{shown(text)} is in no store; write STORE/PATH with one of the stores"
            f" {', '.join(sorted(stores)) or 'of a login node, as this machine has none'}"
        )
    parts = (path[:-1] if path.endswith("/") else path).split("/")
    if not slash or parts == [""]:
        raise StagingError(f"{shown(text)} is a whole store; name a file or folder in it")
    if {"", ".", ".."} & set(parts) or "\0" in path:
        raise StagingError(f"{shown(text)} has an empty part, or '.' or '..'; write the path without it")
    return Place(store, "/".join(parts))


def _named(name: str) -> str:
    size = len(name.encode("utf-8", "surrogateescape"))
    if name in ("", ".", "..") or "/" in name or "\0" in name or name.startswith(OWN) or size > _NAME_BYTES:
        raise StagingError(
            f"{shown(name)!r} is no name of an input or output; give a name without '/', and not one that"
            f" begins with {OWN}"
        )
    return name
