"""Make the checkout importable as ansible_collections.gpufarm.cluster, wherever it is cloned to."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent
NAME = "ansible_collections.gpufarm.cluster"


def _namespace(name: str, path: Path | None) -> types.ModuleType:
    """A package without code: ``ansible_collections``, its namespaces and the checkout itself."""
    spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
    spec.submodule_search_locations = [str(path)] if path else []
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    return module


def _register() -> None:
    """Register the checkout under its full name, unless the interpreter finds it already (ansible-test)."""
    try:
        if importlib.util.find_spec(NAME):
            return
    except ModuleNotFoundError:
        pass
    parts = NAME.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        if name in sys.modules:
            continue
        module = _namespace(name, ROOT if name == NAME else None)
        if depth > 1:
            setattr(sys.modules[".".join(parts[: depth - 1])], parts[depth - 1], module)


_register()

# No test fails because a machine is slow. What else the profile in force says, as that of CI, stays.
settings.register_profile("patient", settings(), deadline=None)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def on_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules run in the tests' own process. Importing a filter tells Ansible that this is the controller,
    where it would print a module's warnings instead of returning them.
    """
    monkeypatch.setattr("ansible.module_utils._internal.is_controller", False)


@pytest.fixture(autouse=True, scope="session")
def usual_umask() -> None:
    """Fixtures of a whole module make files for hosts as well, before `own_umask` of the first test."""
    os.umask(0o022)


@pytest.fixture(autouse=True)
def own_umask() -> Iterator[None]:
    """Programs run in the tests' own process too; a umask that one sets is none of the next test's."""
    before = os.umask(0o022)
    yield
    os.umask(before)
