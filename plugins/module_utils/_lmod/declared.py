# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules as a site declares them: what Lmod and the shells of users cannot take. No I/O."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from .lua import full_name

# A dot in front hides a file from users, and a hyphen makes it an option of the command.
_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+-]*"
NAME = re.compile(rf"{_PART}(/{_PART})*")
VERSION = re.compile(_PART)
# Lmod has a variable of the environment for each family.
FAMILY = VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Lmod 8.6 writes a line break as it is, and what follows is run by the shell of the user.
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# Texts for people may have several lines. The rest controls terminals, with some also U+0080 to U+009F.
TERMINAL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Words that Lmod has for other things than versions.
RESERVED = ("default", "latest", "lua")


def problems(modules: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield what keeps modules from being offered, a sentence each.

    Args:
        modules: entries of ``environment_modules_modules`` with all their options.
    """
    for module in modules:
        yield from _name_problems(module)
    names = Counter(full_name(module) for module in modules)
    for name in sorted(name for name, times in names.items() if times > 1):
        yield f"The module {name} is declared {names[name]} times; declare it once."
    for name in sorted({module["name"] for module in modules} & names.keys()):
        yield f"{name} is a version of a module and a module of its own; give one of them another name."
    defaults = Counter(module["name"] for module in modules if module["default"])
    for name in sorted(name for name, times in defaults.items() if times > 1):
        yield f"The module {name} has {defaults[name]} versions that are the default; keep one."
    for module in modules:
        for problem in _content_problems(module):
            yield f"The module {full_name(module)!s:.80} {problem}"


def _name_problems(module: Mapping[str, Any]) -> Iterator[str]:
    name, version = module["name"], module["version"]
    if not NAME.fullmatch(name) or len(name) > 100 or name.endswith(".lua"):
        yield (
            f"A module is called {name!r:.60}, which Lmod cannot take; use at most 100 letters, digits and"
            " _ . + - and slashes between words that begin with a letter or digit."
        )
    if (
        not VERSION.fullmatch(version)
        or len(version) > 100
        or version in RESERVED
        or version.endswith(".lua")
    ):
        yield (
            f"The module {name:.60} has the version {version!r:.60}, which Lmod cannot take; use at most 100"
            " letters, digits and _ . + -, such as '13.2'."
        )


def _content_problems(module: Mapping[str, Any]) -> Iterator[str]:
    prefix, environment = module["prefix"], module["environment"]
    if TERMINAL.search(module["description"]):
        yield "has control characters in its description, which reach the terminals of users; leave them out."
    if prefix and (not prefix.startswith("/") or not _is_path(prefix)):
        yield f"has the prefix {prefix!r:.80}; give an absolute path without colons and control characters."
    for variable, paths in module["paths"].items():
        yield from _paths_problems(variable, paths, prefix)
    for variable, value in environment.items():
        if not VARIABLE.fullmatch(variable) or variable in ("PATH", "MODULEPATH"):
            yield f"sets the variable {variable!r:.40}, which it cannot; use paths for PATH and its like."
        elif variable in module["paths"]:
            yield f"names {variable} in its environment and in its paths; name it in one of them."
        elif not isinstance(value, str) or CONTROL.search(value):
            yield (
                f"sets {variable} to a value that shells cannot take; give a text without line breaks and"
                " other control characters."
            )
    for word in ("requires", "conflicts"):
        for name in module[word]:
            if not NAME.fullmatch(name):
                yield f"{word} {name!r:.60}, which cannot be a module; give a name, or a name and a version."
    if module["family"] and not FAMILY.fullmatch(module["family"]):
        yield f"has the family {module['family']!r:.40}; use letters, digits and underscores."


def _paths_problems(variable: str, paths: Any, prefix: str) -> Iterator[str]:
    if not VARIABLE.fullmatch(variable) or variable == "MODULEPATH":
        yield f"has paths for {variable!r:.40}, which is no variable for it; give one such as PATH."
    elif not isinstance(paths, list) or not all(isinstance(one, str) and _is_path(one) for one in paths):
        yield (
            f"has paths for {variable} that are none; give a list of texts without colons and control"
            " characters."
        )
    elif not prefix and not all(one.startswith("/") for one in paths):
        yield f"has paths for {variable} below a prefix, and has no prefix; give one, or absolute paths."


def _is_path(text: str) -> bool:
    return bool(text) and ":" not in text and not CONTROL.search(text)
