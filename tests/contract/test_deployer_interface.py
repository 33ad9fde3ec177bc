"""The Python interface of the deployer: its manual is complete, and the command line uses nothing else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import inspect
import re
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
from gpufarm import answers, api
from gpufarm.autoscale import Proposal
from gpufarm.cli import ALIASES, main
from gpufarm.errors import GpufarmError
from gpufarm.history import Entry
from gpufarm.scaling import Decision

ROOT = Path(__file__).resolve().parents[2]
MANUAL = (ROOT / "docs" / "api.md").read_text()
WORDS = {word for code in re.findall(r"`([^`\n]+)`", MANUAL) for word in re.findall(r"\w+", code)}
METHODS = re.findall(r"^\| `(\w+)\(([^)]*)\)` \| (.*?) \| (.*) \|$", MANUAL, re.MULTILINE)
COMMAND_LINE = ("cli", "options", "deployment_commands", "template_commands", "show")
# The interface, the classes of its answers and arguments, its exceptions, and the progress of a run.
INTERFACE = {"api", "answers", "errors", "asking", "history", "progress", "prometheus", "remote"}


def answer_classes() -> list[Any]:
    own = [kind for kind in vars(answers).values() if is_dataclass(kind)]
    return [*own, Entry, Proposal, Decision]


def methods() -> dict[str, Any]:
    return {
        name: method
        for name, method in inspect.getmembers(api.Deployer, inspect.isfunction)
        if not name.startswith("_")
    }


def test_the_manual_names_all_that_is_public() -> None:
    assert set(api.__all__) <= WORDS
    assert all(hasattr(api, name) for name in api.__all__)


def test_the_manual_has_every_method_with_its_arguments() -> None:
    told = {name: arguments.split(", ") if arguments else [] for name, arguments, *_rest in METHODS}
    found = {name: [*inspect.signature(method).parameters][1:] for name, method in methods().items()}
    assert told == found


@pytest.mark.parametrize("kind", answer_classes(), ids=lambda kind: kind.__name__)
def test_the_manual_has_every_entry_of_an_answer(kind: Any) -> None:
    assert kind.__name__ in WORDS
    assert {entry.name for entry in fields(kind)} <= WORDS


def test_the_manual_has_the_answer_of_every_command() -> None:
    told = {
        word.split()[0]
        for _name, _arguments, column, _answer in METHODS
        for word in re.findall("`(.+?)`", column)
    }
    assert told == {*main.commands, "list", "show"} - {"completion", "serve"}
    assert {"list", "show"} <= ALIASES.keys()


def test_the_manual_has_every_exception_with_its_status() -> None:
    kinds = {name: kind for name, kind in vars(api).items() if inspect.isclass(kind)}
    found = {name: str(kind.exit_code) for name, kind in kinds.items() if issubclass(kind, GpufarmError)}
    rows = dict(re.findall(r"^\| `(\w+)` \| (\d+) \|", MANUAL, re.MULTILINE))
    assert rows == found


@pytest.mark.parametrize("module", COMMAND_LINE)
def test_the_command_line_uses_nothing_else(module: str) -> None:
    tree = ast.parse((ROOT / "tosca" / "gpufarm" / f"{module}.py").read_text())
    used = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "gpufarm":
            used |= {name.name for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("gpufarm."):
            used.add(node.module.partition(".")[2])
    assert used <= INTERFACE | {*COMMAND_LINE, "serve.commands"}, "let gpufarm.api offer it"


def test_every_method_says_what_it_does() -> None:
    for method in methods().values():
        for name, parameter in inspect.signature(method).parameters.items():
            assert name == "self" or f"{name}: " in (method.__doc__ or "")
            assert name == "self" or parameter.annotation is not inspect.Parameter.empty
