# SPDX-License-Identifier: GPL-3.0-or-later
"""The oracles. Where CI is set their absence is a failure, and elsewhere a skip that says why."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab import orchestrators


def had(name: str) -> Path:
    try:
        return orchestrators.environment(name)
    except orchestrators.Unavailable as reason:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(reason))


@pytest.fixture(scope="session")
def infrastructure_manager() -> Path:
    """Folder with the Python that has Infrastructure Manager."""
    return had("im")


@pytest.fixture(scope="session")
def opera() -> Path:
    """Folder with xOpera's command."""
    return had("opera")


@pytest.fixture(scope="session")
def puccini() -> Path:
    """Folder with the Python that has puccini."""
    return had("puccini")
