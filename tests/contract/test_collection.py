"""Contracts of the whole collection: its action group, its versions, no secret and no registry host."""

from __future__ import annotations

import ast
import configparser
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def tracked() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return [ROOT / name for name in listing.split("\0") if name and (ROOT / name).is_file()]


def test_every_module_is_in_the_action_group() -> None:
    modules = {path.stem for path in (ROOT / "plugins" / "modules").glob("*.py")}
    assert modules and set(load(ROOT / "meta" / "runtime.yml")["action_groups"]["all"]) == modules


def test_modules_utils_are_private() -> None:
    assert all(path.stem.startswith("_") for path in (ROOT / "plugins" / "module_utils").glob("*.py"))


def test_no_variable_of_shipped_code_is_called_only_underscore() -> None:
    """Sanity refuses the name; this tells it in seconds."""
    files = [
        path
        for folder in ("plugins", "packages", "roles", "playbooks", "tosca")
        for path in (ROOT / folder).rglob("*.py")
    ]
    named = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == "_"
    ]
    assert files and named == []


def test_versions_agree() -> None:
    version = load(ROOT / "galaxy.yml")["version"]
    assert f'version = "{version}"' in (ROOT / "pyproject.toml").read_text()


def test_no_secret_and_no_foreign_path_is_tracked() -> None:
    key = re.compile("BEGIN [A-Z ]*PRIVATE" + " KEY")
    assert [path for path in tracked() if key.search(path.read_text(errors="ignore"))] == []


def test_lock_files_name_no_registry_host() -> None:
    for path in tracked():
        if path.name == "package-lock.json" or path.suffix == ".lock":
            assert not re.search(
                r"https?://(?!github\.com|opencollective\.com|[\w.-]*(sponsors|tidelift|feross))[^\s\"]*"
                r"(npmjs|pypi|pythonhosted|registry)",
                path.read_text(),
            ), path


def test_roles_and_the_deployer_may_notice_sooner_that_a_machine_is_gone() -> None:
    """They set extra arguments of ssh, which takes the first value of an option that it finds."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / "ansible.cfg")
    ssh = settings["ssh_connection"]
    assert "ServerAlive" not in ssh["ssh_args"]
    assert "ServerAliveInterval" in ssh["ssh_extra_args"] and "ServerAliveCountMax" in ssh["ssh_extra_args"]


def test_test_files_that_run_together_have_names_of_their_own() -> None:
    """Pytest imports them by their names alone, as folders of tests are no packages."""
    names = [
        file.name for folder in ("unit", "contract") for file in ROOT.glob(f"tests/{folder}/**/test_*.py")
    ]
    assert [name for name in names if names.count(name) > 1] == []
