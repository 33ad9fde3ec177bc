"""Forms keep the rules of the PaaS dashboard (infn-datacloud/orchestrator-dashboard 4.6)."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
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
    found = {}
    for path in FORMS:
        for name, one in load(path)["inputs"].items():
            if one.get("updatable"):
                found[path.name.partition(".")[0]] = name
                assert "tab" not in one and one["type"] == "integer"
    assert found == {
        "mesos_cluster": "agent_count",
        "slurm_cluster": "node_count",
        "storage_clients": "num_machines",
    }


def test_no_service_is_locked_for_all_groups() -> None:
    """A service whose visibility names no groups can be opened by nobody."""
    catalogue = load(DASHBOARD / "tosca-metadata" / "metadata.yml")
    for service in catalogue["services"]:
        seen = service["metadata"]["visibility"]
        assert re.match(seen["groups_regex"], "any/group"), service["metadata"]["bookmark_id"]
