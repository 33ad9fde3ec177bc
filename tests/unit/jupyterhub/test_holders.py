"""The hub reports holders of slices to the role mig, at any time, in the format that the module reads."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.io.holders import Holder, read
from gpufarm_hub.sharing import holders
from gpufarm_hub.sharing.leases import Lease, Leases
from gpufarm_hub.sharing.limits import Limit
from gpufarm_hub.sharing.slices import Slice
from gpufarm_hub.sharing.waiting import SliceRequest

SLICES = [Slice(f"MIG-{number}", "1g.10gb", 0, number, 0, 10 << 30) for number in (7, 8)]
UNIT = "jupyterhub-notebook-alice.service"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run" / "holders.d"


@pytest.fixture
def leases(tmp_path: Path, folder: Path) -> Leases:
    return Leases(tmp_path / "leases.json", publish=partial(holders.publish, folder / "hub.json"))


def take(leases: Leases, owner: str, unit: str) -> None:
    request = SliceRequest(owner, "1g.10gb", 1, Limit("many", slices=9), {})
    assert isinstance(leases.take(request, unit, SLICES), Lease)


def test_the_module_reads_what_the_hub_writes(leases: Leases, folder: Path) -> None:
    take(leases, "alice/", UNIT)
    take(leases, "alice/second", "docker:jupyterhub-notebook-alice--second")
    assert read(folder) == [
        Holder("the notebook of alice", (holders.SERVICE, UNIT), ("MIG-7",)),
        Holder("the notebook second of alice", (holders.SERVICE,), ("MIG-8",)),
    ]
    leases.release("alice/")
    assert [one.slices for one in read(folder)] == [("MIG-8",)]
    leases.drop(lambda lease: True)
    assert read(folder) == []


def test_only_root_reads_it(leases: Leases, folder: Path) -> None:
    take(leases, "alice/", UNIT)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert [file.name for file in folder.iterdir()] == ["hub.json"]
    assert (folder / "hub.json").stat().st_mode & 0o777 == 0o600


def test_a_hub_that_starts_tells_again(leases: Leases, folder: Path) -> None:
    take(leases, "alice/", UNIT)
    (folder / "hub.json").unlink()
    leases.publish()
    assert [one.who for one in read(folder)] == ["the notebook of alice"]


def test_who_only_waits_holds_nothing(leases: Leases, folder: Path) -> None:
    take(leases, "alice/", UNIT)
    take(leases, "bob/", UNIT)
    before = (folder / "hub.json").stat().st_ino
    leases.enter(SliceRequest("carol/", "1g.10gb", 1, Limit("many", slices=9), {}), SLICES)
    assert (folder / "hub.json").stat().st_ino == before
