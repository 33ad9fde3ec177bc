"""What comes from a package index is pinned: one version of each package, known by its hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = sorted(
    path
    for folder in ("requirements", "roles")
    for path in (ROOT / folder).rglob("*.lock")
    if path.name != "package-lock.json"
)
NPM = sorted(
    path
    for folder in ("roles", "lab")
    for path in (ROOT / folder).rglob("package-lock.json")
    if "node_modules" not in path.parts
)
PIN = re.compile(r"^(?P<name>[a-zA-Z0-9._-]+)(\[[\w,-]+\])?==(?P<version>[^\s;]+)( ; (?P<marker>.+))?$")


def entries(lock: Path) -> list[list[str]]:
    """The requirements of a lock file, each as its words: the pin, then its options."""
    text = re.sub(r"\s*#.*", "", lock.read_text()).replace("\\\n", " ")
    return [re.split(r"\s+(?=--)", line.strip()) for line in text.splitlines() if line.strip()]


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


@pytest.mark.parametrize("lock", NPM, ids=lambda path: path.parent.name)
def test_each_npm_package_has_an_integrity_and_no_registry(lock: Path) -> None:
    packages = json.loads(lock.read_text())["packages"]
    for name, package in packages.items():
        if not name:
            continue  # the program itself
        assert re.fullmatch(r"sha512-[A-Za-z0-9+/=]{88}", package.get("integrity", "")), name
        assert "resolved" not in package, f"{name} names a registry"
    assert len(packages) > 1
