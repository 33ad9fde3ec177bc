"""Make the checkout importable as ansible_collections.gpufarm.cluster, wherever it is cloned to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from ansible.plugins.loader import init_plugin_loader
from ansible.utils.collection_loader import AnsibleCollectionConfig
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent


# `make setup` has linked the checkout below .work/collections. ansible-test has a loader of its own.
if AnsibleCollectionConfig.collection_finder is None:
    init_plugin_loader([str(ROOT / ".work" / "collections")])

# No test fails because a machine is slow. Other settings of the active profile, such as that of CI, stay.
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
