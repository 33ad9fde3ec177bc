"""The prose linter finds sentences without a subject and words of its list, not in questions or code."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.machinery
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def prose() -> ModuleType:
    """Return the program as a module."""
    loader = importlib.machinery.SourceFileLoader("prose", str(ROOT / "scripts" / "prose"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("prose", loader))
    loader.exec_module(module)
    return module


def found(prose: ModuleType, path: Path) -> list[tuple[int, str]]:
    """Return line and advice of each problem in a file."""
    words = prose.phrases(prose.LIST.read_text())
    return sorted(
        (line + text.count("\n", 0, offset), problem.rpartition(": ")[2])
        for line, text in prose.prose(path)
        for offset, problem in prose.problems(text, words)
    )


@pytest.mark.parametrize(
    ("name", "text", "line"),
    [
        ("a.md", "Text.\n\nWhat is measured is kept.\n", 3),
        ("a.md", "# What it installs\n", 1),
        ("a.md", "- **Who leaves is out.** Text\n", 1),
        ("a.md", "| option | One that does not exist is refused. |\n", 1),
        ("a.yml", "option:\n  description: Who may log in.\n", 2),
        ("a.yml", "---\n# What others need.\n", 2),
        ("a.py", '"""Text.\n\nWhatever happens, it goes on.\n"""\n', 3),
        ("a.py", 'x = 1\nraise ValueError(f"Text; Whose it is: {x}.")\n', 2),
        ("a.py", "x = 1  # What it is\n", 1),
        ("a.sh", "#!/bin/sh\n# What is run.\n", 2),
    ],
)
def test_a_sentence_needs_a_subject(
    prose: ModuleType, tmp_path: Path, name: str, text: str, line: int
) -> None:
    (tmp_path / name).write_text(text)
    assert found(prose, tmp_path / name) == [(line, prose.ADVICE)]


@pytest.mark.parametrize(
    ("name", "text", "advice"),
    [
        ("a.md", "Only to who\nknows the token.\n", "to users (clients, hosts) that"),
        ("a.py", '"""Return the exit code."""\n', "exit status"),
        ("a.yml", "# The filter judges the input.\n", "check (a rule), verify (an oracle) or oracle"),
    ],
)
def test_words_of_the_list_are_refused(
    prose: ModuleType, tmp_path: Path, name: str, text: str, advice: str
) -> None:
    (tmp_path / name).write_text(text)
    assert found(prose, tmp_path / name) == [(1, advice)]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.md", "What is wrong? One host has no GPU. The user who waits knows what to do.\n"),
        ("a.md", "```\n# What a shell prints\n```\nRun `exit code`.\n"),
        ("a.py", "def judge(judged: int) -> int:\n    return judged\n"),
        ("a.py", 'WORDS = ("EXIT CODE", "Whole")\n'),
    ],
)
def test_other_text_passes(prose: ModuleType, tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text)
    assert found(prose, tmp_path / name) == []


def test_the_list_names_a_replacement_for_each_word(prose: ModuleType) -> None:
    """The format is that of codespell, which ends replacements that it must not apply with a comma."""
    for line in prose.LIST.read_text().splitlines():
        word, use = line.split("->")
        assert word and use.strip(" ,"), line
        assert "," not in use or use.endswith(","), line
