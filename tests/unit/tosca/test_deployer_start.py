"""Commands that only look at the state start fast, and their tables fit a pipe."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import subprocess
import sys

import pytest
from deployer_site import SERVICE, Site
from deployer_stub import StubSite, install

# Each of these takes longer to import than all of Python that such a command needs.
SLOW = {"ansible", "ansible_runner", "asyncio", "email", "requests", "rich", "toscaparser", "yaml"}
COMMANDS = (
    ("--help",),
    ("deploy", "--help"),
    ("validate", "--help"),
    ("completion", "bash"),
    ("list",),
    ("list", "--json"),
    ("show", "notes"),
    ("show", "notes", "--json"),
    ("outputs", "notes"),
    ("history", "notes"),
)
WORDS = " ".join(f"word{number}" for number in range(100))


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    made = install(monkeypatch, site)
    assert made.deploy(SERVICE, "--description", f"{WORDS}\nand [red]more[/red]").status == 0
    return made


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_nothing_is_imported_that_is_not_needed(farm: StubSite, command: tuple[str, ...]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "gpufarm", *command],
        env=farm.site.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    imported = set(re.findall(r"\|\s+(\w+)[\w.]*$", done.stderr, re.MULTILINE))
    assert "click" in imported and not imported & SLOW
    assert done.stdout


@pytest.mark.parametrize("colours", [{}, {"FORCE_COLOR": "1", "COLUMNS": "20"}])
def test_tables_fit_a_pipe(farm: StubSite, colours: dict[str, str]) -> None:
    for command in (("list",), ("history", "notes"), ("validate", SERVICE)):
        answer = farm.site.gpufarm(*command, **colours)
        assert answer.status == 0 and "\x1b" not in answer.output
    head, row = farm.site.gpufarm("list", **colours).output.splitlines()
    assert row.index(WORDS) == head.index("description") and row.endswith(f"{WORDS} and [red]more[/red]")
    rows = farm.site.gpufarm("history", "notes", **colours).output.splitlines()
    assert len(rows) == 2 and rows[0].split()[:2] == ["began", "ended"]
