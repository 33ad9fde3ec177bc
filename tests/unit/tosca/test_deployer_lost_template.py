# SPDX-License-Identifier: GPL-3.0-or-later
"""A deployment can be taken away after the operator has changed or removed its template."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from deployer_site import DATA, Site
from deployer_stub import StubSite, install
from gpufarm import collection

Change = Callable[[str], str]
ALL = ["base m2", "base m3", "clock m1", "list m1", "tool m2", "tool m3"]


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    return install(monkeypatch, site)


@pytest.fixture
def own(farm: StubSite) -> Path:
    """A template of the operator's own, from which there is a deployment."""
    path = farm.site.root / "own" / "farm.yaml"
    path.parent.mkdir()
    for name in ("farm.yaml", "types.yaml"):
        (path.parent / name).write_text((DATA / name).read_text())
    shutil.copytree(DATA / "playbooks", path.parent / "playbooks")
    assert farm.deploy(path, "--input", "text=Hello.World").status == 0
    return path


def removed(farm: StubSite) -> list[str]:
    journal = [line.split() for line in farm.stub.journal()]
    return sorted(f"{label} {host}" for operation, label, host, *_text in journal if operation == "delete")


def replaced(old: str, new: str) -> Change:
    def change(text: str) -> str:
        assert old in text
        return text.replace(old, new)

    return change


def without_clock(text: str) -> str:
    start, end = text.index("    clock:"), text.index("  outputs:")
    return text[:start] + text[end:]


CHANGES = {
    "a stricter pattern": replaced(
        "default: hello", "default: hello\n      constraints: [{pattern: '[a-z]+'}]"
    ),
    "a new required input": replaced("  inputs:\n", "  inputs:\n    colour: {type: string}\n"),
    "an input that went": replaced("    text:\n      type: string\n      default: hello\n", ""),
    "a node that went": without_clock,
    "another label": replaced("label: base", "label: ground"),
    "no template": lambda _text: "--- not a template\n",
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_template_that_was_changed(farm: StubSite, own: Path, change: Change) -> None:
    own.write_text(change(own.read_text()))
    gone = farm.gpufarm("undeploy", "farm", "--yes")
    assert gone.status == 0, gone.error
    assert removed(farm) == ALL
    assert not (farm.site.state / "farm.json").exists()


def test_a_template_that_was_removed(farm: StubSite, own: Path) -> None:
    own.unlink()
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert removed(farm) == ALL


def test_types_that_were_changed_with_the_template(farm: StubSite, own: Path) -> None:
    """The remembered text fits them no longer, as after a release that renames a property."""
    own.write_text(replaced("label:", "heading:")(own.read_text()))
    types = own.with_name("types.yaml")
    property_ = replaced("      label:\n", "      heading:\n")(types.read_text())
    types.write_text(replaced("[SELF, label]", "[SELF, heading]")(property_))
    gone = farm.gpufarm("undeploy", "farm", "--yes")
    assert gone.status == 0, gone.error
    assert removed(farm) == ALL


def test_playbooks_still_come_from_the_library_alone(
    farm: StubSite, own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The text was written with a library that the operator does not allow any more."""
    content = yaml.safe_load(own.read_text())
    content["imports"] = [str(DATA / "types.yaml")]
    own.write_text(yaml.safe_dump(content))
    assert farm.deploy(own).status == 0
    monkeypatch.delenv("GPUFARM_LIBRARY")
    own.unlink()
    refused = farm.gpufarm("undeploy", "farm", "--yes")
    assert refused.status == 2 and removed(farm) == []
    monkeypatch.setenv("GPUFARM_LIBRARY", str(DATA))
    assert farm.gpufarm("undeploy", "farm", "--yes").status == 0
    assert removed(farm) == ALL


def test_a_template_that_this_release_lacks(
    farm: StubSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text takes the types and playbooks of this release, as the folder of the former one has gone."""
    releases = [tmp_path / number / "ansible_collections/gpufarm/cluster" for number in ("1", "2")]
    for root in releases:
        shutil.copytree(DATA, root / "tosca" / "templates")
    monkeypatch.setattr(collection, "root", lambda: releases[0])
    template = releases[0] / "tosca/templates/farm.yaml"
    assert farm.deploy(template).status == 0
    shutil.rmtree(releases[0])
    (releases[1] / "tosca/templates/farm.yaml").unlink()
    monkeypatch.setattr(collection, "root", lambda: releases[1])
    gone = farm.gpufarm("undeploy", "farm", "--yes")
    assert gone.status == 0, gone.error
    assert removed(farm) == ALL
