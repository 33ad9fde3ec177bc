"""Module files, run by a real Lua: each text arrives as it was declared, and none of them is code."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._lmod import lua
from hypothesis import example, given, settings
from hypothesis import strategies as st

READER = Path(__file__).with_name("module_file.lua")
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)
HOSTILE = [
    "]]",
    '"',
    "\\",
    "\n",
    "\r",
    "\0",
    '\\"',
    '") os.exit(1) --',
    "]==]",
    "--[[",
    "\\z",
    "\\x41",
    "é漢\u2028",
    "\\1",
]
EMPTY: Mapping[str, Any] = {
    "description": "",
    "prefix": "",
    "paths": {},
    "environment": {},
    "requires": [],
    "conflicts": [],
    "family": "",
    "default": False,
}


def calls(text: str, mode: str = "load") -> list[tuple[str, ...]]:
    done = subprocess.run(["lua5.3", READER, mode], input=text.encode(), capture_output=True, check=True)
    lines = [line.split(" ") for line in done.stdout.decode().splitlines()]
    return [(name, *(bytes.fromhex(one).decode() for one in texts)) for name, *texts in lines]


def module(**options: Any) -> dict[str, Any]:
    return {**EMPTY, "name": "gcc", "version": "13.2", **options}


@given(TEXT, TEXT, TEXT)
@settings(max_examples=150, deadline=None)
def test_every_text_arrives_as_it_is(description: str, path: str, value: str) -> None:
    check(description, path, value)


def test_texts_that_end_literals_elsewhere_arrive_as_they_are() -> None:
    for text in HOSTILE:
        check(text, text, text)


def check(description: str, path: str, value: str) -> None:
    written = lua.module_file(
        module(description=description, paths={"P": [f"/{path}"]}, environment={"V": value})
    )
    assert calls(written) == [
        ("help", description),
        ("whatis", "Name: gcc"),
        ("whatis", "Version: 13.2"),
        ("whatis", "Description: " + " ".join(description.split())),
        ("prepend_path", "P", f"/{path}"),
        ("setenv", "V", value),
    ]


@given(TEXT)
@example("\n")
def test_a_literal_is_one_line_of_ascii(text: str) -> None:
    assert lua.literal(text).isascii() and lua.literal(text).isprintable()


def test_the_usual_folders_of_an_installation_are_those_that_are_there() -> None:
    written = lua.module_file(module(prefix="/opt/gcc"))
    found = [call[1:] for call in calls(written) if call[0] == "prepend_path"]
    assert ("PATH", "/opt/gcc/bin") in found and ("LD_LIBRARY_PATH", "/opt/gcc/lib64") in found
    assert {variable for variable, _ in found} == {*lua.USUAL}
    # Unloading takes folders away that are gone by then.
    missing = lua.module_file(module(prefix="/missing"))
    assert [call for call in calls(missing, "unload") if call[0] == "prepend_path"]
    assert not [call for call in calls(missing, "unload") if call[0] == "LmodError"]


def test_an_installation_that_is_missing_is_an_error_of_the_user_who_loads_it() -> None:
    written = lua.module_file(module(prefix="/missing/gcc"))
    assert ("LmodError", "/missing/gcc is not on this machine.") in calls(written)
    assert not [call for call in calls(written, "spider") if call[0] in ("LmodError", "prepend_path")]


def test_the_first_of_several_folders_is_searched_first() -> None:
    written = lua.module_file(module(prefix="/opt/gcc", paths={"PATH": ["bin", "/srv/bin"]}))
    # Each is put before the former.
    assert [call[2] for call in calls(written) if call[0] == "prepend_path"] == ["/srv/bin", "/opt/gcc/bin"]


def test_modules_that_belong_together_or_not_are_told() -> None:
    written = lua.module_file(module(requires=["a", "b/1"], conflicts=["c"], family="compiler"))
    assert calls(written)[4:] == [
        ("family", "compiler"),
        ("conflict", "c"),
        ("depends_on", "a"),
        ("depends_on", "b/1"),
    ]


def test_the_default_is_the_version_of_its_name() -> None:
    assert calls(lua.default_file(module())) == [("module_version", "gcc/13.2", "default")]
