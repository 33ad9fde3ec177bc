# SPDX-License-Identifier: GPL-3.0-or-later
"""Two versions of a shared environment, a user, and packages."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from environment_user import User, make_shared, wheel


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shared(tmp_path_factory.mktemp("shared") / "one", "11111111")


@pytest.fixture(scope="session")
def second(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_shared(tmp_path_factory.mktemp("shared") / "two", "22222222")


@pytest.fixture
def user(first: Path, tmp_path: Path) -> User:
    home, runtime = tmp_path / "home", tmp_path / "runtime"
    home.mkdir()
    runtime.mkdir()
    return User(first, home, runtime)


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    """A folder with a package in two versions, and one that would break every kernel."""
    folder = tmp_path / "wheels"
    versions = {"mine": ["1.0", "2.0"], "extra": ["1.0"], "ipykernel": ["99.0"], "numbers_of_all": ["2.0"]}
    for name, version in ((name, version) for name, found in versions.items() for version in found):
        wheel(folder, name, version)
    return folder


os.environ.setdefault("PIP_DISABLE_PIP_VERSION_CHECK", "1")
