"""Packages from an index are pinned: one version of each package, known by its hashes."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(
    path
    for folder in ("requirements", "roles", "molecule")
    for path in (ROOT / folder).rglob("*.lock")
    if path.name != "package-lock.json"
)
NPM = sorted(
    path
    for folder in ("roles", "lab", "scripts")
    for path in (ROOT / folder).rglob("package-lock.json")
    if "node_modules" not in path.parts
)
PIN = re.compile(r"^(?P<name>[a-zA-Z0-9._-]+)(\[[\w,-]+\])?==(?P<version>[^\s;]+)( ; (?P<marker>.+))?$")


def asked_by(file: Path) -> str:
    """Return the text of an input of `make lock`, with those that it includes."""
    return re.sub(r"^-r (.+)$", lambda found: asked_by(file.parent / found[1]), file.read_text(), flags=re.M)


PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# Input of `make lock`, by the lock that it writes.
ASKED = {lock: asked_by(lock.with_suffix(".in")) for lock in LOCKS if lock.with_suffix(".in").exists()}
ASKED[ROOT / "requirements" / "controller.lock"] = "\n".join(
    sum(PROJECT["optional-dependencies"].values(), PROJECT["dependencies"])
)

ASKED[ROOT / "roles" / "paas_service" / "files" / "serve.lock"] += "\n".join(
    PROJECT["dependencies"] + PROJECT["optional-dependencies"]["serve"]
)


def entries(lock: Path) -> list[list[str]]:
    """The requirements of a lock file, each as its words: the pin, then its options."""
    text = re.sub(r"\s*#.*", "", lock.read_text()).replace("\\\n", " ")
    return [re.split(r"\s+(?=--)", line.strip()) for line in text.splitlines() if line.strip()]


def pins(lock: Path) -> list[str]:
    """The names and versions of a lock file, as `name==version`."""
    return [pin for pin, *_options in entries(lock)]


def test_there_are_locks() -> None:
    assert {path.name for path in LOCKS} >= {"controller.lock", "gpu.lock", "hub.lock"}
    assert len(NPM) >= 2


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_each_python_package_has_one_version_and_hashes(lock: Path) -> None:
    seen = set()
    for pin, *options in entries(lock):
        match = PIN.match(pin)
        assert match, f"{pin} is no pinned version"
        key = (match["name"], match["marker"])
        assert key not in seen, f"{pin} is there twice"
        seen.add(key)
        assert options, f"{pin} has no hash"
        assert all(re.fullmatch(r"--hash=sha256:[0-9a-f]{64}", option) for option in options), pin
    assert seen


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_what_is_asked_for_is_locked_in_a_version_that_fits(lock: Path) -> None:
    locked = {
        canonicalize_name(match["name"]): match["version"] for match in map(PIN.match, pins(lock)) if match
    }
    asked = [Requirement(line) for line in re.sub(r"\s*#.*", "", ASKED[lock]).splitlines() if line.strip()]
    assert asked
    for requirement in asked:
        version = locked.get(canonicalize_name(requirement.name))
        assert version, f"{requirement} is not in {lock.name}; run make lock"
        assert requirement.specifier.contains(version), (
            f"{lock.name} has {requirement.name} {version}; run make lock"
        )


@pytest.mark.parametrize("lock", NPM, ids=lambda path: path.parent.name)
def test_what_npm_is_asked_for_is_locked(lock: Path) -> None:
    asked = json.loads(lock.with_name("package.json").read_text()).get("dependencies", {})
    locked = json.loads(lock.read_text())["packages"]
    assert asked == locked[""]["dependencies"]
    assert all(f"node_modules/{name}" in locked for name in asked)


@pytest.mark.parametrize("lock", LOCKS, ids=lambda path: path.stem)
def test_what_only_costs_time_is_left_out(lock: Path) -> None:
    """Packages of locks.override: half a second of the start of every notebook, and of Molecule."""
    assert not [pin for pin in pins(lock) if pin.startswith("rfc3987-syntax==")]


@pytest.mark.parametrize("lock", NPM, ids=lambda path: path.parent.name)
def test_each_npm_package_has_an_integrity_and_no_registry(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    for name, package in packages.items():
        if not name:
            continue  # the program itself
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/=]{88}", package.get("integrity", "")), name
        assert "resolved" not in package, f"{name} names a registry"
    assert len(packages) > 1
