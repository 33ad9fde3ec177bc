"""Layers are made once, over an image and one another, and anew when what decides their content differs."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import pytest

from lab import layers, rootfs
from lab.recipe import Recipe
from lab.spec import LAYERS

RECIPE = Recipe("bookworm", ("systemd",), "http://mirror.example/debian", "")
IMAGE = Path("/cache/rootfs/bookworm-1")


def test_the_layers_that_a_host_may_have_are_those_that_can_be_made():
    assert sorted(path.parent.name for path in layers.FOLDER.glob("*/layer.yml")) == sorted(LAYERS)


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_made_of_files_of_roles(name: str):
    assert layers.named(name)
    assert all(path.is_file() for path in layers.named(name))


def test_the_lock_files_of_the_hub_are_among_them():
    names = {path.name for path in layers.named("hub")}
    assert {"hub.lock", "package.json", "package-lock.json"} <= names


@pytest.fixture
def copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of all that layers are made of, which a test may change."""
    for path in (layers.BUILD, layers.playbook("gpu"), *layers.named("gpu")):
        target = tmp_path / path.relative_to(layers.ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    monkeypatch.setattr(layers, "ROOT", tmp_path)
    monkeypatch.setattr(layers, "FOLDER", tmp_path / "lab/layers")
    monkeypatch.setattr(layers, "BUILD", tmp_path / "lab/layers/build.sh")
    return tmp_path


@pytest.mark.parametrize(
    "path", ["lab/layers/build.sh", "lab/layers/gpu/layer.yml", "roles/_common/files/gpu.lock"]
)
def test_a_layer_is_another_one_when_what_it_is_made_of_changes(copied: Path, path: str):
    before = layers.key("gpu", IMAGE)
    assert layers.key("gpu", IMAGE) == before
    with (copied / path).open("a") as stream:
        stream.write("# more\n")
    assert layers.key("gpu", IMAGE) != before


def test_a_layer_over_another_image_is_another_one():
    assert layers.key("gpu", IMAGE) != layers.key("gpu", IMAGE.with_name("bookworm-2"))


def test_each_layer_is_made_once_and_lies_over_those_before_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    made: list[tuple[str, list[Path]]] = []

    def build(name: str, _recipe: Recipe, lower: Sequence[Path], target: Path) -> None:
        (target / "upper").mkdir(parents=True)
        made.append((name, list(lower)))

    monkeypatch.setattr(layers, "_build", build)
    monkeypatch.setattr(rootfs, "BUILD_MEBIBYTES", 1)
    both = layers.ensure(RECIPE, IMAGE, ("gpu", "hub"), tmp_path, print)
    alone = layers.ensure(RECIPE, IMAGE, ("gpu",), tmp_path, print)
    assert both == [both[0], *alone]
    assert alone[-1] == IMAGE
    assert made == [("gpu", [IMAGE]), ("hub", alone)]
    assert [path.name for path in both[:-1]] == ["upper", "upper"]
