"""After `absent` a host is as it was before the role came, but for what the scenario's kept.txt names."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import Any

import pytest


@pytest.fixture
def kept() -> list[re.Pattern[str]]:
    """Return patterns of what stays: of lines such as "packages: openjdk-17-jre" or "paths: /etc/x"."""
    path = Path(os.environ["MOLECULE_SCENARIO_DIRECTORY"]) / "kept.txt"
    lines = path.read_text().splitlines() if path.exists() else []
    return [re.compile(line) for line in lines if not line.startswith("#")]


def differences(before: dict[str, Any], after: dict[str, Any]) -> Iterator[str]:
    for kind in ("packages", "users", "groups", "units"):
        yield from (f"{kind}: {name}" for name in sorted({*before[kind]} ^ {*after[kind]}))
    told = ""
    for path in sorted({**before["paths"], **after["paths"]}):
        if before["paths"].get(path) == after["paths"].get(path) or (told and path.startswith(told)):
            continue
        new = path not in before["paths"]
        told = f"{path}/" if new else ""  # what is in a new folder is new as well
        yield f"paths: {path}"


def without_usr(path: PurePath) -> PurePath:
    """Return a path as packages name it that do not know that /bin, /lib and /sbin are links."""
    return PurePath("/", *path.parts[2:]) if path.is_relative_to("/usr") else path


def target(path: str, look: str) -> PurePath:
    """Return where a link leads to, or the path itself of what is no link or has only its kind."""
    leads = PurePath(path).parent / look.split()[2] if re.match(r"l\S+ \S+ ", look) else path
    return PurePath(os.path.normpath(leads))


def apart_from(brought: set[str], found: dict[str, Any], before: dict[str, Any]) -> dict[str, Any]:
    """Return what is on a host without what packages brought since, and links to that (enabled units)."""
    theirs = {without_usr(PurePath(path)) for path in brought - {*before["paths"]}}
    new = {path: PurePath(path) for path in found["paths"] if path not in before["paths"]}
    links = {path for path in new if without_usr(target(path, found["paths"][path])) in theirs}
    # A new folder that has nothing but such links was made for them.
    folders = {str(new[path].parent) for path in links} - {
        str(new[path].parent) for path in new if path not in links
    }
    passed_over = links | folders & {*new}
    return {
        **found,
        "paths": {path: look for path, look in found["paths"].items() if path not in passed_over},
        "units": [unit for unit in found["units"] if PurePath("/lib/systemd/system", unit) not in theirs],
    }


def test_nothing_is_left(host, kept):
    before = json.loads(host.check_output("cat /srv/everything/before.json"))
    after = json.loads(host.check_output("/srv/everything/everything.py"))
    # The name of a package stands for the files that it installs or makes.
    new = " ".join(sorted({*after["packages"]} - {*before["packages"]}))
    if new:
        brought = {*host.check_output(f"dpkg-query --listfiles {new}").splitlines()}
        after = apart_from(brought, after, before)
    left = [line for line in differences(before, after) if not any(one.fullmatch(line) for one in kept)]
    assert not left, "\n".join(left)
