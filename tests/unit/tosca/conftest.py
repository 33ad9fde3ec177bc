"""Fixtures of the deployer's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployer_site import DATA, HERE, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.notes.mkdir()
    made.machines(here=HERE)
    return made


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates in any folder may take the types and playbooks of the tests."""
    monkeypatch.setenv("GPUFARM_LIBRARY", str(DATA))
