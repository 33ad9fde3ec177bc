"""Where the command finds the collection, and what it says when it does not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import importlib.metadata
import json
from pathlib import Path

import pytest
from gpufarm import collection, library
from gpufarm.document import Document
from gpufarm.errors import GpufarmError

CHECKOUT = collection.CHECKOUT
VERSION = importlib.metadata.version("gpufarm")


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without a checkout; the folder in which its user installs collections."""
    monkeypatch.setattr(collection, "CHECKOUT", tmp_path / "site-packages")
    monkeypatch.setattr(collection, "_BESIDE", tmp_path / "beside")
    monkeypatch.setattr(collection, "_STANDARD", (str(tmp_path / "standard"),))
    monkeypatch.setenv("ANSIBLE_COLLECTIONS_PATH", f"{tmp_path / 'mine'}:")
    return tmp_path


def install(folder: Path, version: str = VERSION) -> Path:
    path = folder / "ansible_collections/gpufarm/cluster"
    path.mkdir(parents=True)
    (path / "MANIFEST.json").write_text(json.dumps({"collection_info": {"version": version}}))
    return path


def test_a_checkout_is_its_own_collection() -> None:
    assert collection.root() == CHECKOUT
    assert collection.search_path()[0] == str(CHECKOUT / ".work/collections")


def test_what_is_not_installed_is_told(machine: Path) -> None:
    with pytest.raises(
        GpufarmError, match="is not installed; run 'ansible-galaxy collection install"
    ) as told:
        collection.root()
    assert f"gpufarm-cluster-{VERSION}.tar.gz" in str(told.value)
    assert collection.search_path() == [str(machine / "mine"), str(machine / "standard")]


def test_the_users_own_folder_goes_first(machine: Path) -> None:
    standard = install(machine / "standard")
    assert collection.root() == standard
    mine = install(machine / "mine")
    assert collection.root() == mine
    document = Document(machine / "template.yaml", {}, {})
    indigo = library.beside(document, "https://raw.githubusercontent.com/indigo-dc/tosca-types/master/t.yaml")
    assert indigo == mine / "tosca/types/indigo_types.yaml"


def test_the_one_beside_this_package_goes_before_those_of_users(machine: Path) -> None:
    install(machine / "mine")
    beside = install(machine / "beside")
    assert collection.root() == beside
    assert collection.search_path()[0] == str(machine / "beside")


def test_another_version_is_refused(machine: Path) -> None:
    install(machine / "mine", "7.0.0")
    with pytest.raises(
        GpufarmError, match=r"has version 7\.0\.0 .* this program is version .* gpufarm 7\.0\.0"
    ):
        collection.root()


def test_a_file_of_an_earlier_release_is_that_of_this_one(machine: Path) -> None:
    old = machine / "releases/1/lib/ansible_collections/gpufarm/cluster/tosca/templates/ml_infn.yaml"
    mine = install(machine / "mine") / "tosca/templates/ml_infn.yaml"
    assert collection.here(old) == old, "this release lacks it"
    mine.parent.mkdir(parents=True)
    mine.touch()
    assert collection.here(old) == mine
    assert collection.here(mine) == mine
    own = machine / "templates/ml_infn.yaml"
    assert collection.here(own) == own
