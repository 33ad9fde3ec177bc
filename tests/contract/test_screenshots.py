"""Pictures of the documentation are those that the tests in a browser take, and pages show each of them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_make_takes_every_picture_of_the_documentation_anew() -> None:
    [names] = re.findall(r"for picture in ([^;]+); do", (ROOT / "Makefile").read_text())
    there = {path.stem for path in (ROOT / "docs/images").glob("*.png")}
    assert {name.partition("-")[2] for name in names.split()} == there
    folders = (ROOT / "tests/e2e", ROOT / "tests/integration/serve")
    tests = [path for folder in folders for path in folder.glob("*.py")]
    walks = "".join(path.read_text() for path in tests)
    taken = set(re.findall(r'picture\(\w+, "([^"]+)"\)', walks))
    assert set(names.split()) <= taken


def test_pages_show_every_picture() -> None:
    pages = "".join(path.read_text() for path in (ROOT / "docs").glob("*.md"))
    shown = set(re.findall(r"\]\(images/([^)]+)\)", pages))
    assert shown == {path.name for path in (ROOT / "docs/images").iterdir()}
