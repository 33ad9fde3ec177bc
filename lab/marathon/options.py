"""Options as Marathon and Chronos read them, which leave that to the library scallop.

Sources: rogach/scallop, Scallop.scala (options and toggles, "read options from a file"); mesosphere/marathon,
Main.scala, `envToArgs` (variables of the environment); the lists of options `flags.json`, which name theirs;
apache/mesos 1.11.0, 3rdparty/libprocess/src/openssl.cpp (LIBPROCESS_SSL_*).
"""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


class Stop(Exception):
    """The program does not start; the text is what it says."""


def from_environment(environment: Mapping[str, str], prefix: str) -> list[str]:
    """Return the arguments that variables of the environment stand for."""
    words = []
    for name, value in sorted(environment.items()):
        if name.startswith(prefix) and not name.startswith(prefix + "APP_"):
            words += [f"--{name.removeprefix(prefix).lower()}", *([value] if value else [])]
    return words


def libprocess(environment: Mapping[str, str]) -> ssl.SSLContext | None:
    """Return what libmesos encrypts with, None where it does not.

    :raises Stop: it has no certificate or no key, or they do not fit
    """
    if environment.get("LIBPROCESS_SSL_ENABLED") not in ("true", "1"):
        return None
    found = {name: environment.get(f"LIBPROCESS_SSL_{name}_FILE", "") for name in ("KEY", "CERT", "CA")}
    for name, what in (("KEY", "key"), ("CERT", "certificate")):
        if not found[name]:
            raise Stop(f"SSL requires {what}! NOTE: Set path with LIBPROCESS_SSL_{name}_FILE")
    try:
        context = ssl.create_default_context(cafile=found["CA"] or None)
        context.load_cert_chain(found["CERT"], found["KEY"])
    except OSError as error:
        raise Stop(f"Could not load cert, key or CA file: {error}") from error
    return context


def parse(arguments: Sequence[str], flags: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the values of all options.

    :param arguments: the command line; `@FILE` in front stands for the words of a file, in place of all
        others
    :param flags: what is known of each option: type, default, choices, negation
    :raises Stop: an option is unknown, given twice, without its value, or its value is of another type
    """
    words = list(arguments)
    if words and words[0].startswith("@"):
        words = Path(words[0][1:]).read_text().split()
    negations = {flag["negation"]: name for name, flag in flags.items() if "negation" in flag}
    values: dict[str, Any] = {}
    for name, given in _pairs(words):
        real = negations.get(name, name)
        if real not in flags:
            raise Stop(f"Unknown option '{name}'")
        if real in values:
            raise Stop(f"Bad arguments for option '{real}'")
        values[real] = False if name in negations else _value(real, flags[real], given)
    return {name: _default(flag["default"]) for name, flag in flags.items()} | values


def _pairs(words: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Options with the words behind each."""
    name, given = "", list[str]()
    for word in words:
        if word.startswith("--"):
            if name:
                yield name, given
            name, equals, value = word[2:].partition("=")
            given = [value] if equals else []
        elif name:
            given.append(word)
        else:
            raise Stop(f"Excess arguments provided: '{word}'")
    if name:
        yield name, given


def _default(value: Any) -> Any:
    """Defaults are texts in the lists; those that the machine decides are in angle brackets."""
    if value in ("true", "false"):
        return value == "true"
    if isinstance(value, str) and value.startswith(("<", "$")):
        return None
    return int(value) if isinstance(value, str) and value.isdecimal() else value


def _value(name: str, flag: Mapping[str, Any], given: Sequence[str]) -> Any:
    kind = flag["type"]
    if "no value" in kind:
        if given:
            raise Stop(f"Excess arguments provided: '{' '.join(given)}'")
        return True
    if len(given) != 1:
        raise Stop(f"Bad arguments for option '{name}': '{' '.join(given)}'")
    value = given[0]
    parts = value.split(",") if kind.startswith("comma list") else [value]
    if flag.get("choices") and not set(parts) <= set(flag["choices"]):
        raise Stop(f"Validation failure for '{name}' option parameters: {value}")
    if "zk://" in kind and not value.startswith(("zk://", "http://", "https://")):
        raise Stop(f"Validation failure for '{name}' option parameters: {value}")
    try:
        return int(value) if kind == "int" else float(value) if kind == "float" else value
    except ValueError as error:
        raise Stop(f"Bad arguments for option '{name}': '{value}' - bad number") from error
