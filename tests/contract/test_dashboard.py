"""Forms keep the rules of the PaaS dashboard (infn-datacloud/orchestrator-dashboard 4.6)."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufarm.topology import is_secret

ROOT = Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "tosca" / "dashboard"
FORMS = sorted((DASHBOARD / "tosca-parameters").glob("*.yml"))
TEMPLATES = sorted((ROOT / "tosca" / "indigo" / "templates").glob("*.yaml"))
BY_NAME = {"ids": lambda path: path.name.partition(".")[0]}
EVERY_FORM = pytest.mark.parametrize("path", FORMS, **BY_NAME)
# Names of which the dashboard shows no values by itself (deployments/routes.py).
HIDDEN = re.compile("password|token|passphrase")
KINDS_WITH_BUTTON = ("list", "map")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for one in [*value, *value.values()] if isinstance(value, dict) else value:
            yield from texts(one)


@pytest.mark.parametrize("path", [*FORMS, *TEMPLATES], **BY_NAME)
def test_the_page_that_checks_the_data_bears_every_text(path: Path) -> None:
    """A double quote or a backslash in any text of the inputs ends its script."""
    found = load(path)
    inputs = found["inputs"] if path in FORMS else found["topology_template"].get("inputs", {})
    assert inputs
    assert [text for text in texts(inputs) if '"' in text or "\\" in text] == []


@EVERY_FORM
def test_no_choice_depends_on_another_one(path: Path) -> None:
    """Only the choices of the first value of the parent could be picked."""
    assert "dependent_select" not in {one["type"] for one in load(path)["inputs"].values()}


@EVERY_FORM
def test_one_field_has_a_button_to_add_entries(path: Path) -> None:
    """Of several only the first works, and two lists of texts break the script of the page."""
    shown = [name for name, one in load(path)["inputs"].items() if one["type"] in KINDS_WITH_BUTTON]
    assert len(shown) <= 1
    for name in shown:
        entry = load(path)["inputs"][name]["entry_schema"]["type"]
        assert entry in ("string", "tosca.datatypes.network.PortSpec"), (
            "other entries are dropped without a word"
        )


@EVERY_FORM
def test_what_is_written_as_text_has_the_value_of_the_template(path: Path) -> None:
    name = path.name.partition(".")[0]
    inputs = load(ROOT / "tosca" / "templates" / f"{name}.yaml")["topology_template"]["inputs"]
    written = {
        key: one
        for key, one in load(path)["inputs"].items()
        if one["type"] == "string" and inputs[key]["type"] in KINDS_WITH_BUTTON
    }
    for key, one in written.items():
        assert "Written as YAML" in one["description"]
        assert yaml.safe_load(one["default"]) == inputs[key]["default"]


@EVERY_FORM
def test_tabs_are_told_apart_by_their_first_words(path: Path) -> None:
    """Names of tabs stand in HTML without quotes, and the dashboard has a tab called Advanced itself."""
    first = [tab.split()[0] for tab in load(path)["tabs"]]
    assert len(set(first)) == len(first) and "Advanced" not in first


@EVERY_FORM
def test_secrets_are_not_shown_in_the_pages_of_a_deployment(path: Path) -> None:
    for name, one in load(path)["inputs"].items():
        if is_secret(name) and one["type"] not in ("hidden", "password"):
            assert one.get("printable") is False or HIDDEN.search(name), name


def test_machines_can_be_added_where_their_number_is_an_input() -> None:
    """The page for that shows inputs that may change and have no tab."""
    found: dict[str, list[str]] = {}
    for path in FORMS:
        for name, one in load(path)["inputs"].items():
            if one.get("updatable"):
                found.setdefault(path.name.partition(".")[0], []).append(name)
                assert "tab" not in one and one["type"] == "integer"
    assert found == {
        "mesos_cluster": ["agent_count"],
        "slurm_cluster": ["node_count"],
        "hpc_cluster": ["sub1_count", "sub2_count", "sub3_count"],
        "storage_clients": ["num_machines"],
    }


def test_no_service_is_locked_for_all_groups() -> None:
    """A service whose visibility names no groups can be opened by nobody."""
    catalogue = load(DASHBOARD / "tosca-metadata" / "metadata.yml")
    for service in catalogue["services"]:
        seen = service["metadata"]["visibility"]
        assert re.match(seen["groups_regex"], "any/group"), service["metadata"]["bookmark_id"]


@pytest.fixture(params=["gpufarm serve", "INDIGO's orchestrator"])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[bool, Path, Path]:
    """Files that the README has copied for the service behind the dashboard, and whether that is our own."""
    text = (ROOT / "tosca" / "README.md").read_text()
    lines = re.findall(r"^\$ (cp .*)$", text.partition("## The dashboard")[2], re.MULTILINE)
    assert len(lines) == 4 and lines[0].startswith("cp tosca/templates/")
    ours = request.param == "gpufarm serve"
    folders = {"TOSCA_TEMPLATES_DIR": tmp_path / "templates", "SETTINGS_DIR": tmp_path / "settings"}
    for folder in folders.values():
        folder.mkdir()
    environment = os.environ | {name: str(folder) for name, folder in folders.items()}
    for line in lines[:3] if ours else lines[1:]:
        subprocess.run(["bash", "-euc", line], cwd=ROOT, env=environment, check=True)
    return ours, *folders.values()


def test_the_dashboard_loads_what_the_readme_has_copied(copied: tuple[bool, Path, Path]) -> None:
    """It reads every file of the folder as a template, and a machine's log is shown for this type alone."""
    ours, templates, settings = copied
    found = {path: load(path) for path in templates.rglob("*.y*ml")}
    names = [template["metadata"]["template_name"] for template in found.values()]
    assert len(set(names)) == len(names)
    for path, template in found.items():
        kinds = [node["type"] for node in template["topology_template"]["node_templates"].values()]
        machines = any(kind.endswith(".Compute") for kind in kinds)
        assert (kinds[0] == "tosca.nodes.indigo.Compute") is machines, path.name
        assert machines or ours, "only gpufarm runs what needs no machine"
        form = settings / "tosca-parameters" / f"{path.stem}.parameters.yml"
        assert load(form)["inputs"].keys() == template["topology_template"]["inputs"].keys()
        for node in template["topology_template"]["node_templates"].values():
            system = node.get("capabilities", {}).get("os", {}).get("properties", {})
            for asked in (system.get("distribution"), system.get("version")):
                if asked is not None and not ours:
                    assert load(form)["inputs"][asked["get_input"]]["default"], "no image has an empty word"
                    assert template["topology_template"]["inputs"][asked["get_input"]]["default"]
    if ours:
        catalogue = load(settings / "tosca-metadata" / "metadata.yml")
        assert {one["name"] for service in catalogue["services"] for one in service["templates"]} <= {*names}


def test_what_templates_import_is_in_the_release() -> None:
    galaxy = load(ROOT / "galaxy.yml")
    web = galaxy["repository"].replace("github.com", "raw.githubusercontent.com")
    found = set()
    for path in (ROOT / "tosca" / "indigo").rglob("*.yaml"):
        found |= set(re.findall(r"https://raw\.githubusercontent\.com/\S+", path.read_text()))
    assert found
    for url in found:
        release, _, file = url.removeprefix(f"{web}/").partition("/")
        assert release == f"v{galaxy['version']}" and (ROOT / file).is_file(), url
