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


def run(
    farm: StubSite,
    kind: str,
    pool: Path | None = None,
    *,
    force: bool = False,
    said: io.StringIO | None = None,
    **inputs: Any,
) -> dict[str, Any]:
    """Carry out an order, as the process of an attempt does."""
    order = {
        "kind": kind,
        "name": NAME,
        "template": str(FARM),
        "inputs": inputs,
        "group": "",
        "pool": str(pool or farm.site.pool),
        "force": force,
    }
    deployer = Deployer(farm.site.state)
    ending = attempt.ended(order, deployer, attempt.Teller(said or io.StringIO()))
    return ending if ending["well"] else {**ending, "held": attempt.held(order, deployer)}


def test_a_pool_that_was_moved(farm: StubSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Deployments that were made before it was moved go on, and nothing reads a file that is stale."""
    assert run(farm, "CREATE", folder="/x")["well"]
    moved = farm.site.pool.rename(tmp_path / "moved.yml")

    def inventory(path: Path) -> dict[str, Any]:
        if path != moved:
            raise BadInput(f"{path}: there is no such inventory")
        return farm.stub.hosts

    monkeypatch.setattr(ansible, "inventory", inventory)
    assert run(farm, "UPDATE", moved, folder="/x", text="bye")["well"]
    assert farm.site.remembered(NAME)["pool"] == str(moved)
    moved = moved.rename(tmp_path / "again.yml")
    assert run(farm, "DELETE", moved)["well"]
    assert Deployer(farm.site.state).names() == []


def test_a_removal_that_failed_tells_which_machines_are_not_free(farm: StubSite) -> None:
    assert run(farm, "CREATE", folder="/x")["well"]
    farm.mark("dead", "m3")
    ending = run(farm, "DELETE")
    assert not ending["well"] and ending["held"] == ["worker[2]"]
    farm.mark("dead")
    assert run(farm, "DELETE") == {"well": True, "outputs": {}, "resources": [], "reason": ""}


def test_what_an_administrator_gives_up_is_named(farm: StubSite) -> None:
    assert run(farm, "CREATE", folder="/x")["well"]
    del farm.stub.hosts["m3"]
    assert run(farm, "DELETE")["held"] == ["worker[2]"]
    refused = run(farm, "DELETE")
    assert "stands on m3, which is not in" in refused["reason"] and refused["held"] == ["worker[2]"]
    said = io.StringIO()
    ending = run(farm, "DELETE", force=True, said=said)
    assert ending["well"], ending
    lost = "given up with their machines: tool[2].delete on m3, base[2].delete on m3"
    assert ending["reason"] == lost and lost in said.getvalue()
    assert Deployer(farm.site.state).names() == []


def test_force_gives_up_no_machine_that_the_pool_has(farm: StubSite) -> None:
    assert run(farm, "CREATE", folder="/x")["well"]
    farm.mark("dead", "m3")
    assert run(farm, "DELETE", force=True)["held"] == ["worker[2]"]
