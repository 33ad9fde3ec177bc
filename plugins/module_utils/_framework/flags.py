# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of Marathon and Chronos, which both read with the library scallop: what is wrong with some, and how
they are written. No I/O.

Sources: rogach/scallop, Scallop.scala (options, toggles, "read options from a file", which splits at blanks);
mesosphere/marathon, Main.scala, `envToArgs` (variables of the environment); systemd.exec(5),
EnvironmentFile=; Docker, `docker run --env-file`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

# A value that systemd and Docker read alike from a file of variables: no quotes, no escapes, no blanks at the
# ends.
PLAIN = re.compile(r"[^\s\"'\\](?:[^\n\r\"'\\]*[^\s\"'\\])?")
# A user and a password in an address.
CREDENTIALS = re.compile(r"//[^/@]*@")
SECRET = re.compile(r"password|credentials|secret$|zk_auth|api_key|dsn")


class Flags(NamedTuple):
    """The options of a program.

    Attributes:
        kinds: names, with blanks between them, by kind: `toggle` (on or off), `switch` (on only), `int`,
        `float`,
            `list` (with commas), `zk` (an address of ZooKeeper or a master), `text`.
        choices: the words that are valid, where not all are.
        gone: names that are still documented and stop the program.
    """

    kinds: Mapping[str, str]
    choices: Mapping[str, tuple[str, ...]] = {}
    gone: tuple[str, ...] = ()

    def by_name(self) -> dict[str, str]:
        """Return the kinds of the options by their names."""
        return {name: kind for kind, names in self.kinds.items() for name in names.split()}


def merged(one: Flags, other: Flags) -> Flags:
    """Return the options of both."""
    kinds = {kind: " ".join(filter(None, (one.kinds.get(kind), other.kinds.get(kind)))) for kind in KINDS}
    return Flags(kinds, {**one.choices, **other.choices}, one.gone + other.gone)


KINDS = ("float", "int", "list", "switch", "text", "toggle", "zk")


def problems(
    flags: Flags, request: Mapping[str, Any], variable: str, own: Mapping[str, str]
) -> Iterator[str]:
    """Yield what is wrong with options, each a sentence.

    Args:
        flags: those that there are.
        request: values by name.
        variable: what the user has written them in.
        own: variables of the role by the options that they set, which are not to be set twice.
    """
    known = flags.by_name()
    for name, value in request.items():
        if name in own:
            yield f"{variable} sets {name}, which has a variable of its own; set {own[name]} in its place."
        elif name in flags.gone:
            yield (
                f"{variable} sets {name}, which is gone from this version and would stop the start;"
                " leave it out."
            )
        elif name not in known:
            bare = re.sub("^(disable_|no_)", "", str(name))
            if bare in known and bare != name:
                yield f"{variable} sets {name}; set {bare} to false in its place."
                continue
            near = difflib.get_close_matches(str(name), known, 1)
            hint = f"; did you mean {near[0]}?" if near else "; leave it out."
            yield f"{variable} sets {name}, which this version does not know{hint}"
        else:
            wrong = value_problem(known[name], value, flags.choices.get(name, ()))
            if wrong:
                yield f"{variable} sets {name} to {value!r}; {wrong}."


def value_problem(kind: str, value: Any, choices: tuple[str, ...] = ()) -> str:
    """Return what a value must be and is not, an empty text when it is."""
    if kind in ("toggle", "switch"):
        if not isinstance(value, bool):
            return "give true or false"
        return "it can only be switched on" if kind == "switch" and not value else ""
    if isinstance(value, bool) or value is None:
        return "give a value"
    if kind == "int":
        return "" if re.fullmatch(r"-?[0-9]+", str(value)) else "give a whole number"
    if kind == "float":
        return "" if re.fullmatch(r"-?[0-9]+(\.[0-9]+)?", str(value)) else "give a number"
    text = written(value)
    if not PLAIN.fullmatch(text) or text.startswith("-"):
        return "give a text without quotes and backslashes, and no dash in front"
    words = text.split(",") if kind == "list" else [text]
    if choices and not set(words) <= set(choices):
        return f"give {'some' if kind == 'list' else 'one'} of {', '.join(choices)}"
    if kind == "zk" and not re.match(r"(zk|https?)://", text):
        return "give an address that begins with zk://"
    return ""


def written(value: Any) -> str:
    """Return a value as the programs read it."""
    return ",".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def is_secret(name: str, value: Any) -> bool:
    """Return whether an option must be hidden: by its name, or as its value has a password."""
    return bool(SECRET.search(name) or CREDENTIALS.search(written(value)))


def words(flags: Flags, request: Mapping[str, Any]) -> list[tuple[str, str | None]]:
    """Return options as name and text, None for one without value; a toggle that is off has another name."""
    known = flags.by_name()
    rows: list[tuple[str, str | None]] = []
    for name, value in sorted(request.items()):
        if known[name] in ("toggle", "switch"):
            rows.append((name if value else "disable_" + name, None))
        else:
            rows.append((name, written(value)))
    return rows
