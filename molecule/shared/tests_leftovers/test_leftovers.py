"""After `absent` a host is as it was before the role came, but for what the scenario's kept.txt names."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
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


def test_nothing_is_left(host, kept):
    before = json.loads(host.check_output("cat /srv/everything/before.json"))
    after = json.loads(host.check_output("/srv/everything/everything.py"))
    # What a package brings or makes when it is installed is told by the package's name.
    new = " ".join(sorted({*after["packages"]} - {*before["packages"]}))
    if new:
        brought = {*host.check_output(f"dpkg-query --listfiles {new}").splitlines()} - {*before["paths"]}
        after["paths"] = {path: look for path, look in after["paths"].items() if path not in brought}
    left = [line for line in differences(before, after) if not any(one.fullmatch(line) for one in kept)]
    assert not left, "\n".join(left)
