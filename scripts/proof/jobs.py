"""The jobs that prove a change, and where the search for the inputs of each begins."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml

from proof.tree import Tree

# Targets of the Makefile whose inputs are all files, the longest first; they run for every change.
ALWAYS = ("make unit", "make lint", "make sanity", "make mutants-changed")
# Inputs of every job on hosts of the bench, and files that say how jobs run.
SURROUNDINGS = (
    "ansible.cfg",
    "galaxy.yml",
    "lab/pyproject.toml",
    "meta/runtime.yml",
    "pyproject.toml",
    "requirements/controller.lock",
    "scripts/setup",
)
MOLECULE = (
    ".config/molecule/config.yml",
    "molecule/shared/create.yml",
    "molecule/shared/destroy.yml",
    "molecule/shared/side_effect.yml",
    "molecule/shared/callback_plugins/packed_modules.py",
    "lab/cli.py",
)
FIXTURES = "molecule/shared/fixtures"


@dataclass(frozen=True)
class Job:
    """Something that is run to prove a change.

    Attributes:
        name: `molecule SCENARIO` or `make TARGET`.
        roots: files that it begins with; what they name is followed.
        read: files that it reads without what they name.
        unused: beginnings of paths that it does not need, though what it uses names them.
    """

    name: str
    roots: frozenset[str]
    read: frozenset[str] = frozenset()
    unused: tuple[str, ...] = ()


def jobs(tree: Tree) -> dict[str, Job]:
    """Return the jobs whose inputs are searched for, by name: all scenarios and the other jobs on hosts."""
    scenarios = [
        path.split("/")[1]
        for path in tree.texts
        if path.startswith("molecule/") and path.endswith("/molecule.yml")
    ]
    found = [*(_scenario(name, tree) for name in sorted(scenarios)), *_targets(tree)]
    return {job.name: job for job in found}


def _scenario(name: str, tree: Tree) -> Job:
    folder = f"molecule/{name}"
    own = [path for path in tree.below(folder) if not path.endswith(".md")]
    programs = [tree.texts[path] for path in own if path.endswith(".py")]
    asked_for = {
        argument.arg for text in programs for function in _functions(text) for argument in function.args.args
    }  # pytest passes fixtures as arguments of their names
    fixtures = [path for path in tree.below(FIXTURES) if path.endswith(".py")]
    used = [
        path for path in fixtures if asked_for & {function.name for function in _functions(tree.texts[path])}
    ]
    hosts = yaml.load(tree.texts[f"{folder}/molecule.yml"], yaml.CSafeLoader)["platforms"]
    layers = (layer for host in hosts for layer in host.get("layers", ()))
    return Job(
        f"molecule {name}",
        frozenset([*own, *used, *_files(layers), *SURROUNDINGS, *MOLECULE]) & tree.texts.keys(),
        frozenset(fixtures),
        tuple(_unused(hosts)),
    )


def _files(layers: Iterable[str]) -> Iterator[str]:
    """Playbooks of layers, which the bench finds by the names of the layers (lab/layers)."""
    return (f"lab/layers/{layer}/layer.yml" for layer in layers)


def _layers(program: str) -> Iterator[str]:
    """Names of the layers that a program gives to hosts of the bench; none if it is broken."""
    with contextlib.suppress(SyntaxError, ValueError):
        for node in ast.walk(ast.parse(program)):
            if isinstance(node, ast.keyword) and node.arg == "layers":
                names = (name.value for name in ast.walk(node.value) if isinstance(name, ast.Constant))
                yield from (name for name in names if isinstance(name, str))


def _unused(hosts: list[dict[str, Any]]) -> Iterator[str]:
    """Modules that the bench loads for hosts with a simulated GPU or an identity provider (lab/bench.py)."""
    if not any(host.get("gpus") for host in hosts):
        yield "lab/nvmlsim/"
    if not any(host.get("iam") for host in hosts):
        yield "lab/iam/"


def _functions(text: str) -> Iterator[ast.FunctionDef]:
    """The functions of a program; none if it is broken, as the tests in it fail without a fixture."""
    with contextlib.suppress(SyntaxError, ValueError):
        yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef))


def _targets(tree: Tree) -> Iterator[Job]:
    apart = {f"integration-{name}": tree.below(f"tests/integration/{name}") for name in ("slurm", "tosca")}
    others = {*tree.below("tests/integration")}.difference(*apart.values())
    for name, roots in (
        ("integration", others),
        *apart.items(),
        ("e2e", [*tree.below("tests/e2e"), "lab/demo.py", "lab/demo_paas.py"]),
    ):
        programs = [tree.texts[path] for path in tree.texts.keys() & roots if path.endswith(".py")]
        layers = _files(layer for program in programs for layer in _layers(program))
        common = ("tests/conftest.py", *SURROUNDINGS)
        begins = frozenset([*roots, *layers, *common]) & tree.texts.keys()
        yield Job(f"make {name}", begins, frozenset({"Makefile"}))
