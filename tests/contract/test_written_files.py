"""Files that roles write can be read by what they are for."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable
from pathlib import PurePath

import pytest
import yaml
from harness import CASES
from harness.life import OTHERWISE, WAYS, set_up

UNITS = (".service", ".timer", ".socket", ".mount", ".automount", ".target", ".slice", ".path")


def lines(text: str) -> list[str]:
    """The lines of a file, without comments and blank ones, those joined that are continued."""
    whole = re.sub(r"\\\n", " ", text)
    return [line for line in whole.splitlines() if line.strip() and line[0] not in "#;"]


def unit(text: str) -> None:
    """A unit of systemd, or a part of one (systemd.syntax(7))."""
    first, *others = lines(text)
    assert re.fullmatch(r"\[\w+\]", first), first
    wrong = [line for line in others if not re.match(r"\[\w+\]$|[\w-]+=", line)]
    assert not wrong


def source(text: str) -> None:
    """A package source (sources.list(5))."""
    fields = dict(line.split(": ", 1) for line in lines(text) if not line.startswith(" "))
    assert fields["Types"] == "deb"
    assert re.match(r"https?://", fields["URIs"])
    assert fields["Suites"].endswith("/") != bool(fields.get("Components"))
    assert fields["Signed-By"].startswith("/etc/apt/keyrings/")


READERS: dict[str, Callable[[str], object]] = {
    ".json": json.loads,
    ".sources": source,
    ".toml": tomllib.loads,
    ".yaml": yaml.safe_load,
    ".yml": yaml.safe_load,
    **dict.fromkeys(UNITS, unit),
}


def reader(path: PurePath) -> Callable[[str], object] | None:
    """Program that reads a file, by its name."""
    if path.parent.suffix == ".d" and path.parts[:4] == ("/", "etc", "systemd", "system"):
        return unit
    return READERS.get(path.suffix)


WAYS_OF_ROLES = [
    pytest.param(role, way, id=f"{role}-{way}" if way else role)
    for role in sorted(CASES)
    for way in ("", OTHERWISE, *WAYS.get(role, ()))
]


@pytest.mark.parametrize(("role", "way"), WAYS_OF_ROLES)
def test_files_are_of_the_kind_that_their_names_say(role: str, way: str) -> None:
    host, _ = set_up(role, way)
    for path, file in host.files.items():
        read = reader(PurePath(path))
        if read and file.kind == "file" and "\n" in file.content:
            read(file.content)
