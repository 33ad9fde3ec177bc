"""What units are restarted for is what is installed."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest

ROLE = Path(__file__).resolve().parents[3] / "roles" / "jupyterhub"
TEXTS = [*ROLE.glob("tasks/*.yml"), *ROLE.glob("templates/*.j2"), *ROLE.glob("vars/*.yml")]
PATH = re.compile(r"__jupyterhub_library }}/([\w/]+\.py)")
MODULE = re.compile(r"-m'?,? '?(gpufarm_hub\.[a-z_.]+)|^ +- (gpufarm_hub\.[a-z_.]+)", re.MULTILINE)
NAMED = {
    name if name.endswith(".py") else f"{name.replace('.', '/')}.py"
    for text in map(Path.read_text, TEXTS)
    for name in (*PATH.findall(text), *map("".join, MODULE.findall(text)))
}


def test_they_are_found() -> None:
    assert len(NAMED) > 10, NAMED


@pytest.mark.parametrize("name", sorted(NAMED))
def test_files_of_the_package_are_named_as_they_are_called(name: str) -> None:
    assert (ROLE / "files" / name).is_file()


def test_every_folder_of_the_package_is_installed() -> None:
    tasks = (ROLE / "tasks" / "install_package.yml").read_text()
    package = ROLE / "files" / "gpufarm_hub"
    folders = {path.parent for path in package.rglob("*") if path.suffix in (".py", ".html")}
    assert len(folders) > 5
    for folder in folders:
        assert f"'{folder.relative_to(ROLE / 'files')}/*." in tasks
