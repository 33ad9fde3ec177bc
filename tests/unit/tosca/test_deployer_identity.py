"""A deployment says what it is: id, operator, group, description and text of its template; old states too."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
import yaml
from deployer_site import DATA, SERVICE, Site
from deployer_stub import StubSite, install
from gpufarm.state import Store

# The state as the first version wrote it, without all that came later.
FIRST: dict[str, Any] = {
    "name": "old",
    "template": str(SERVICE),
    "status": "deployed",
    "created": "2026-01-02T03:04:05+00:00",
    "updated": "2026-01-02T03:05:06+00:00",
    "inputs": {"folder": "/x"},
    "secrets": "",
    "machines": {"server": {"host": "m1", "address": "m1"}},
    "steps": {
        f"{node}.configure": {"digest": "d", "attributes": {"path": "/p", "length": 1}, "changed": 1}
        for node in ("first", "second")
    },
    "outputs": {"address": "m1"},
    "failure": "",
    "log": "",
    "format": 1,
}


@pytest.fixture
def farm(site: Site, monkeypatch: pytest.MonkeyPatch) -> StubSite:
    monkeypatch.setenv("SUDO_USER", "ada")
    return install(monkeypatch, site)


@pytest.fixture
def described(farm: StubSite) -> Path:
    """The service in a template of its own, with a description."""
    content = yaml.safe_load(SERVICE.read_text())
    path = farm.site.root / "described.yaml"
    for name in ("types.yaml", "playbooks"):
        (farm.site.root / name).symlink_to(DATA / name)
    path.write_text(yaml.safe_dump({**content, "description": "Notes for\n  everyone.\n"}))
    return path


def shown(farm: StubSite, name: str = "notes") -> dict[str, Any]:
    return dict(json.loads(farm.gpufarm("show", name, "--json").output))


def test_the_id_is_made_once(farm: StubSite) -> None:
    assert farm.deploy(SERVICE).status == 0
    first = shown(farm)["id"]
    assert str(uuid.UUID(first)) == first
    assert farm.deploy(SERVICE, "--input", "text=new").status == 0
    assert farm.gpufarm("update", "notes", "--input", "text=newer").status == 0
    assert shown(farm)["id"] == first
    assert farm.deploy(SERVICE, "--name", "other").status == 0
    assert shown(farm, "other")["id"] != first
    assert farm.gpufarm("undeploy", "notes", "--yes").status == 0
    assert farm.deploy(SERVICE).status == 0
    assert shown(farm)["id"] != first, "it is another deployment"


def test_the_operator_is_the_first_account(farm: StubSite, monkeypatch: pytest.MonkeyPatch) -> None:
    assert farm.deploy(SERVICE).status == 0
    monkeypatch.setenv("SUDO_USER", "bob")
    assert farm.deploy(SERVICE, "--input", "text=new").status == 0
    assert shown(farm)["operator"] == "ada"
    assert "operator: ada" in farm.gpufarm("show", "notes").output.splitlines()


def test_description_and_group(farm: StubSite, described: Path) -> None:
    assert farm.deploy(described).status == 0
    assert (shown(farm)["description"], shown(farm)["group"]) == ("Notes for everyone.", "")
    assert farm.deploy(described, "--description", "Notes of July", "--group", "physics").status == 0
    assert farm.deploy(described, "--input", "text=new").status == 0
    found = shown(farm)
    assert (found["description"], found["group"]) == ("Notes of July", "physics"), "they are kept"
    lines = farm.gpufarm("show", "notes").output.splitlines()
    assert "description: Notes of July" in lines and "group: physics" in lines
    listed = farm.gpufarm("list").output
    assert all(word in listed for word in ("ada", "physics", "Notes of July"))
    assert farm.deploy(described, "--description", "", "--group", "").status == 0
    assert (shown(farm)["description"], shown(farm)["group"]) == ("", ""), "an empty one takes it away"


def test_the_text_of_the_template_is_that_of_the_last_run(farm: StubSite, described: Path) -> None:
    assert farm.deploy(described).status == 0
    first = described.read_text()
    assert shown(farm)["template_text"] == first
    assert "template: " + str(described) in farm.gpufarm("show", "notes").output.splitlines()
    described.write_text(first.replace("default: hello", "default: good day"))
    assert shown(farm)["template_text"] == first
    line = f"template: {described} (changed since the last run)"
    assert line in farm.gpufarm("show", "notes").output.splitlines()
    assert farm.gpufarm("update", "notes").status == 0
    assert shown(farm)["template_text"] == described.read_text()
    described.unlink()
    assert f"template: {described} (missing)" in farm.gpufarm("show", "notes").output.splitlines()


@pytest.fixture
def old(farm: StubSite) -> Path:
    farm.site.state.mkdir()
    path = farm.site.state / "old.json"
    path.write_text(json.dumps(FIRST | {"pool": str(farm.site.pool)}))
    return path


def test_a_state_of_the_first_version_is_read(farm: StubSite, old: Path) -> None:
    before = old.read_text()
    first = shown(farm, "old")
    assert shown(farm, "old")["id"] == first["id"] != "" and old.read_text() == before, (
        "reading writes nothing"
    )
    assert (first["operator"], first["group"], first["description"], first["template_text"]) == ("",) * 4
    assert "operator:" not in farm.gpufarm("show", "old").output
    assert farm.gpufarm("update", "old").status == 0
    assert json.loads(old.read_text())["format"] == 4
    after = shown(farm, "old")
    assert after["id"] == first["id"] and after["template_text"] == SERVICE.read_text()
    assert after["operator"] == "", "its first operator is not known"
    assert farm.gpufarm("undeploy", "old", "--yes").status == 0
    assert not old.exists()


def test_two_old_states_have_two_ids(farm: StubSite, old: Path) -> None:
    (old.parent / "older.json").write_text(json.dumps(FIRST | {"pool": "/p", "name": "older"}))
    assert shown(farm, "old")["id"] != shown(farm, "older")["id"]


@pytest.mark.parametrize("version", [5, 99, 0, -1, "1", None, True, 1.5, [1]])
def test_other_versions_are_refused(farm: StubSite, old: Path, version: Any) -> None:
    old.write_text(json.dumps(FIRST | {"pool": "/p", "format": version}))
    answer = farm.gpufarm("show", "old")
    assert answer.status == 1, answer
    if version in (5, 99):
        sentence = (
            f"has format {version}, of a newer gpufarm; this one reads formats up to 4, so install the newer"
        )
        assert answer.error.startswith(f"gpufarm: {old} {sentence}")
    else:
        assert "is no state of a deployment" in answer.error
    assert Store(farm.site.state).held("b", ["m1"]).keys() == {"m1"}


def test_what_was_made_for_others_is_replaced_only_if_the_operator_says_so(farm: StubSite) -> None:
    farm.mark("foreign", "base")
    refused = farm.deploy(DATA / "farm.yaml")
    assert refused.status == 1 and "base was made for others" in refused.error
    assert farm.gpufarm("resume", "farm").status == 1
    both = farm.deploy(DATA / "farm.yaml", "--take-over", "--check")
    assert both.status == 2 and "--check does not know what --take-over would replace" in both.error
    told = farm.deploy(DATA / "farm.yaml", "--take-over")
    assert told.status == 0, told.error
    assert any(line.startswith("configure base") for line in farm.stub.journal())
