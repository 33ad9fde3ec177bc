"""Contracts of proofs: all jobs have inputs, all files are inputs, and the tree names a landed state."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import os
import re
from pathlib import Path

import pytest
from proof import landed
from proof.inputs import Inputs
from proof.jobs import ALWAYS
from proof.tree import git, working_tree

ROOT = Path(__file__).resolve().parents[2]
# Layers whose files must be inputs of some job on hosts.
LAYERS = ("lab", "molecule", "packages", "playbooks", "plugins", "roles", "tosca")
# Files that no job on hosts uses, and why.
UNUSED = {
    r".*\.md": "documentation; of a README that tests read, they say so",
    r"lab/(gpu_models|hub_(check|load|watch)|scale|spent)\.py": "`make bench`, `make bench-*`",
    r"lab/(demo_(farm|hpc)\.py|farm/.*)": "`make demo-farm`, `make demo-hpc`, `make bench-slurm`",
    r"lab/layers/notebook/.*": "`make demo-farm`, `make bench-slurm`",
    r"lab/(mig_|paas_|run_|slurm_|tosca_)?timing\.py": "`make bench`, `make bench-*`",
    r"lab/(real_gpu\.py|nvmlsim/reports/.*)": "`make on-a-real-gpu`; unit tests make and compare reports",
    r"lab/warm/((calls|zookeeper)\.yml|timing\.py)": "`make bench-tests`",
    r"plugins/doc_fragments/.*": "documentation, which `make sanity` checks",
    r"roles/_common/files/gpu\.in": "source of a lock, for `make lock`",
    r"roles/_common/(meta|tasks)/main\.yml": "only say that the role is not used alone",
    r"tosca/source/.*": "`make docs` writes the library from it",
    r"tosca/dashboard/.*": "forms of a dashboard, which contract tests read",
}


@pytest.fixture(scope="module")
def inputs() -> Inputs:
    return Inputs(working_tree(ROOT))


def test_every_scenario_and_every_job_of_make_test_has_inputs(inputs: Inputs) -> None:
    scenarios = {f"molecule {path.parent.name}" for path in ROOT.glob("molecule/*/molecule.yml")}
    makefile = (ROOT / "Makefile").read_text()
    targets = {f"make {name}" for name in re.findall(r"--beside ([\w-]+)", makefile)}
    assert inputs.jobs.keys() == scenarios | targets - set(ALWAYS)
    assert set(ALWAYS) < targets
    for job, paths in inputs.jobs.items():
        assert any(path.startswith("lab/") for path in paths), job


def test_every_file_is_an_input_of_a_job_or_it_is_known_why_not(inputs: Inputs) -> None:
    used = {path for paths in inputs.jobs.values() for path in paths}
    unused = {path for layer in LAYERS for path in inputs.names.tree.below(layer)} - used
    unexplained = {path for path in unused if not any(re.fullmatch(known, path) for known in UNUSED)}
    assert unexplained == set()
    for known in UNUSED:
        assert any(re.fullmatch(known, path) for path in unused), f"{known} is no longer needed here"


def test_what_tests_of_a_job_import_from_here_is_its_input(inputs: Inputs) -> None:
    texts = inputs.names.tree.texts
    packages = {path.parent.name for path in (ROOT / "tests").glob("*/__init__.py")}
    found = set()
    for job, paths in inputs.jobs.items():
        for path in (path for path in paths if path.startswith("tests/") and path.endswith(".py")):
            for node in ast.walk(ast.parse(texts[path])):
                for name in _imported(node):
                    package = name.split(".")[0]
                    if package in packages:
                        found.add(package)
                        assert f"tests/{package}/__init__.py" in paths, f"{path} of {job} imports {name}"
    assert found


def test_what_the_hosts_of_a_job_have_installed_already_is_its_input(inputs: Inputs) -> None:
    texts = inputs.names.tree.texts
    found = set()
    for job, paths in inputs.jobs.items():
        for path in (path for path in paths if path.endswith("/molecule.yml") or path.startswith("tests/")):
            for names in re.findall(r"\blayers(?:=|: )[\[(]([^])]*)[])]", texts[path]):
                for layer in re.findall(r"\w+", names):
                    found.add((job.split()[0], layer))
                    assert f"lab/layers/{layer}/layer.yml" in paths, f"{path} of {job} has the layer {layer}"
    assert {kind for kind, _layer in found} == {"make", "molecule"}


def _imported(node: ast.AST) -> list[str]:
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), level=0):
            return [module]
    return []


def test_the_tree_names_a_state_that_landed_before_this_work_began() -> None:
    if not (ROOT / ".git").exists() or git(ROOT, "rev-parse", "--is-shallow-repository").strip() == b"true":
        pytest.skip("there is no history here")
    commit = (ROOT / landed.FILE).read_text().strip()
    # A clone knows the branch that it was made from; where this is the work itself, only the history decides.
    target = os.environ.get(landed.TARGET) or "origin/HEAD"
    known = landed.is_ancestor(ROOT, target, target)
    assert landed.why_not(ROOT, commit, target if known else "HEAD") == ""
