# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of the service, carried out by the deployer itself."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import ansible
from gpufarm.api import Deployer
from gpufarm.errors import BadInput
from gpufarm.serve import attempt

FARM = DATA / "farm.yaml"
NAME = "11111111-1111-4111-8111-111111111111"


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


def run(farm: StubSite, kind: str, pool: Path | None = None, **inputs: Any) -> dict[str, Any]:
    """Carry out an order, as the process of an attempt does."""
    order = {
        "kind": kind,
        "name": NAME,
        "template": str(FARM),
        "inputs": inputs,
        "group": "",
        "pool": str(pool or farm.site.pool),
    }
    return attempt.carry_out(order, Deployer(farm.site.state), attempt.Teller(io.StringIO()))


def test_a_pool_that_was_moved(farm: StubSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments that were made before it was moved go on, and nothing reads a file that is stale."""
    run(farm, "CREATE", folder="/x")
    moved = farm.site.pool.rename(tmp_path / "moved.yml")

    def inventory(path: Path) -> dict[str, Any]:
        if path != moved:
            raise BadInput(f"{path}: there is no such inventory")
        return farm.stub.hosts

    monkeypatch.setattr(ansible, "inventory", inventory)
    run(farm, "UPDATE", moved, folder="/x", text="bye")
    assert farm.site.remembered(NAME)["pool"] == str(moved)
    moved = moved.rename(tmp_path / "again.yml")
    run(farm, "DELETE", moved)
    assert Deployer(farm.site.state).names() == []
