"""Engines of notebooks: each is in files of its own, and files that engines share name none of them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ast
import json
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.gpufarm.cluster.plugins.module_utils._slurm.io.machine import FEATURES
from harness import CASES
from harness.life import WAYS
from harness.other_values import NEEDS, WITH
from harness.run import run_role
from harness.specs import options

ROOT = Path(__file__).resolve().parents[2]
ROLE = ROOT / "roles" / "jupyterhub"
TASKS, ENGINES_SAY = ROLE / "tasks", ROLE / "vars" / "main"
PROJECT = ROOT / "packages" / "hub"
POINTS = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["entry-points"]
ENGINES = sorted(POINTS["gpufarm_hub.engines"])
EVERY_ENGINE = pytest.mark.parametrize("engine", ENGINES)

# Variables that a login needs.
WAY_IN: dict[str, dict[str, Any]] = {
    "oidc": {},
    "ldap": NEEDS["jupyterhub_ldap_url"],
    "pam": NEEDS["jupyterhub_pam_groups"],
}

ANY = "|".join(ENGINES)
# An engine as a value, or as a part of a name; not the program, unit, package or folder of the same name.
VALUE = re.compile(rf"""(?<![\w/.-])(["'])({ANY})\1""")
PART = re.compile(rf"(?<![a-z.])(\w*_({ANY})|({ANY})_(?!service\b)\w*)(?![a-z])")
# Which service manager the machine has is another question.
ABOUT_THE_MACHINE = "ansible_facts['service_mgr'] == 'systemd'"

MODULES = {
    ".".join(path.relative_to(PROJECT).with_suffix("").parts): ast.parse(path.read_text())
    for path in (PROJECT / "gpufarm_hub").rglob("*.py")
}


def said(engine: str) -> dict[str, Any]:
    """Return the description of an engine for the role."""
    found = yaml.safe_load((ENGINES_SAY / f"engine_{engine}.yml").read_text())
    return found[f"__jupyterhub_engine_{engine}"]


def test_all_parts_know_the_same_engines() -> None:
    assert sorted(POINTS["gpufarm_hub.spawners"]) == ENGINES
    assert sorted(options("jupyterhub")["jupyterhub_spawner"]["choices"]) == ENGINES
    assert sorted(path.stem.removeprefix("engine_") for path in ENGINES_SAY.glob("engine_*")) == ENGINES
    assert {path.name.removeprefix("engine_") for path in TASKS.glob("engine_*")} <= set(ENGINES)


def test_one_engine_is_the_default() -> None:
    ((name, module),) = POINTS["gpufarm_hub.default_engine"].items()
    assert POINTS["gpufarm_hub.engines"][name] == module
    assert options("jupyterhub")["jupyterhub_spawner"]["default"] == name


@EVERY_ENGINE
def test_the_steps_of_an_engine_are_its_files_and_are_included(engine: str) -> None:
    files = {path.stem for path in (TASKS / f"engine_{engine}").glob("*.yml")}
    assert set(said(engine)["steps"]) == files
    texts = [path.read_text() for path in TASKS.glob("*.yml")]
    included = {step for text in texts for step in re.findall(r"engine_\{\{ \w+ \}\}/(\w+)\.yml", text)}
    assert files <= included


def test_the_list_of_its_steps_is_all_that_an_engine_must_say() -> None:
    chosen = WITH["jupyterhub_spawner"]
    case = CASES["jupyterhub"]
    run = run_role(
        "jupyterhub",
        {**case.variables, **chosen},
        extra={f"__jupyterhub_engine_{chosen['jupyterhub_spawner']}": "{{ {'steps': []} }}"},
        answers=case.answers,
    )
    assert not run.failed, run.refusal


@pytest.mark.parametrize("login", options("jupyterhub")["jupyterhub_login"]["choices"])
@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_says_whether_the_hub_makes_accounts_whatever_the_login(engine: str, login: str) -> None:
    chosen = {**CASES["jupyterhub"].variables, **WAYS["jupyterhub"].get(engine, {}), **WAY_IN[login]}
    run = CASES["jupyterhub"].run("jupyterhub", {**chosen, "jupyterhub_login": login})
    assert not run.failed, run.refusal
    written = [
        call.args["files"]["settings.json"]
        for call in run.calls
        if call.action == "gpufarm.cluster.text_files" and "settings.json" in call.args["files"]
    ]
    assert [json.loads(text)["own_accounts"] for text in written] == [said(engine).get("own_accounts", True)]


def shared_files() -> list[Path]:
    """The files of the role that belong to no engine. A template belongs to an engine that alone names it."""
    parts = ("handlers", "tasks", "templates", "vars")
    files = {path for part in parts for path in (ROLE / part).rglob("*") if path.is_file()}
    own = {path for path in files if "engine_" in str(path.relative_to(ROLE))}
    texts = [path.read_text() for path in files - own]
    own |= {
        path
        for path in files
        if path.suffix == ".j2"
        and any(path.stem in one.read_text() for one in own)
        and not any(path.name in text for text in texts)
    }
    return sorted(files - own)


def test_templates_are_shared_unless_an_engine_alone_names_them() -> None:
    templates = {path.stem for path in (ROLE / "templates").iterdir()}
    shared = {path.stem for path in shared_files()}
    assert templates - shared == {
        "jupyterhub-gate.service",
        "jupyterhub-gate.socket",
        "jupyterhub-network.service",
        "nodes.conf",
    }


@pytest.mark.parametrize("path", shared_files(), ids=lambda path: path.name)
def test_a_shared_file_of_the_role_names_no_engine(path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.lstrip().startswith("#")]
    text = "\n".join(lines).replace(ABOUT_THE_MACHINE, "")
    assert not [found[0] for pattern in (VALUE, PART) for found in pattern.finditer(text)]
    assert not PART.search(path.name)
    if path.suffix == ".yml":
        assert not {one for one in scalars(yaml.safe_load(text)) if one in ENGINES}


def scalars(value: Any) -> Iterator[Any]:
    """Every key and value of a document that is neither a list nor a dict."""
    if isinstance(value, dict):
        yield from value
        value = list(value.values())
    if isinstance(value, list):
        for one in value:
            yield from scalars(one)
    elif not isinstance(value, dict):
        yield value


@cache
def imports(module: str) -> set[str]:
    """The modules of the hub that a module imports."""
    found = set()
    for node in ast.walk(MODULES[module]):
        if isinstance(node, ast.ImportFrom):
            package = module.split(".")[: -node.level] if node.level else []
            base = ".".join([*package, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
    return found & MODULES.keys()


def own_modules() -> set[str]:
    """The modules of engines: their entry points, programs of their tasks that import these, and what only
    modules of engines import.
    """
    points = [*POINTS["gpufarm_hub.engines"].values(), *POINTS["gpufarm_hub.spawners"].values()]
    own = {point.partition(":")[0] for point in points}
    tasks = "".join(path.read_text() for path in TASKS.glob("engine_*/*.yml"))
    own |= {one for one in re.findall(r"gpufarm_hub(?:\.\w+)+", tasks) if imports(one) & own}
    users = {module: {one for one in MODULES if module in imports(one)} for module in MODULES}
    while more := {module for module in MODULES if users[module] and users[module] <= own} - own:
        own |= more
    return own


OWN = own_modules()


def test_modules_of_engines_are_found() -> None:
    assert {"docker_spawner", "containers", "network", "units"} <= {name.rpartition(".")[2] for name in OWN}
    assert len(OWN) < len(MODULES) / 4


@pytest.mark.parametrize("module", sorted(MODULES.keys() - OWN))
def test_a_shared_module_of_the_hub_names_no_engine(module: str) -> None:
    assert not imports(module) & OWN
    tree = MODULES[module]
    words = {
        word
        for node in ast.walk(tree)
        for word in (getattr(node, "id", ""), getattr(node, "attr", ""), getattr(node, "arg", ""))
        if word
    }
    words |= {
        alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    words |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    words |= {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier()
    }
    assert not [word for word in words if set(word.lower().split("_")) & set(ENGINES)]


def test_nodes_that_run_notebooks_have_one_name_and_one_folder() -> None:
    [(path, feature)] = FEATURES.items()
    node = yaml.safe_load((ROOT / "roles" / "notebook_node" / "vars" / "main.yml").read_text())
    assert f"FEATURE = '{feature}'" in ast.unparse(MODULES["gpufarm_hub.slurm.submission"])
    assert f"[|,]{feature}(,|$)" in (TASKS / "engine_slurm" / "validate.yml").read_text()
    assert path.is_relative_to(node["__notebook_node_venv"])
