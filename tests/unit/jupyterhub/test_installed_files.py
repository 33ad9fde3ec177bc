"""Programs that the role runs, and files that it restarts units for, are in the package."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest

ROLE = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub"
PROJECT = ROLE.parents[1] / "packages" / "hub"
TEXTS = [*ROLE.glob("tasks/**/*.yml"), *ROLE.glob("templates/*.j2"), *ROLE.glob("vars/**/*.yml")]
MODULE = re.compile(r"-m'?,? '?(gpufarm_hub\.[a-z_.]+)|^ +- (gpufarm_hub\.[a-z_.]+)", re.MULTILINE)
NAMED = {
    f"{''.join(words).replace('.', '/')}.py"
    for text in map(Path.read_text, TEXTS)
    for words in MODULE.findall(text)
}


def test_they_are_found() -> None:
    assert len(NAMED) > 10, NAMED


@pytest.mark.parametrize("name", sorted(NAMED))
def test_files_of_the_package_are_named_as_they_are_called(name: str) -> None:
    assert (PROJECT / name).is_file()
