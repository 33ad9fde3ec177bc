"""Make the checkout importable as ansible_collections.gpufarm.cluster, wherever it is cloned to."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import sys
import types
from pathlib import Path

import pytest

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


@pytest.fixture(autouse=True)
def on_a_target(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules run in the tests' own process. Importing a filter tells Ansible that this is the controller,
    where it would print a module's warnings instead of returning them.
    """
    monkeypatch.setattr("ansible.module_utils._internal.is_controller", False)
