"""Fixtures of the deployer's tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from deployer_site import HERE, Site


@pytest.fixture
def site(tmp_path: Path) -> Site:
    made = Site(tmp_path)
    made.notes.mkdir()
    made.machines(here=HERE)
    return made
