"""References of a template lead to what its nodes have: properties, and attributes in time."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from deployer_site import DATA
from gpufarm import template
from gpufarm.catalogue import Catalogue
from gpufarm.problems import Report
from gpufarm.references import References


def complaints(expression: Any, before: bool) -> list[str]:
    """Return what is wrong with an expression in a template with a node app."""
    library, topology = template.read(DATA / "app.yaml")
    kinds, report = {"app": "tosca.nodes.test.App"}, Report()
    references = References(topology.inputs, topology, Catalogue(library), kinds, (), report)
    references.examine(expression, library.template, ("topology_template",), before=before)
    return [problem.text for problem in report.problems]


@pytest.mark.parametrize(
    ("function", "name", "before", "sentence"),
    [
        ("get_property", "folder", True, ""),
        ("get_property", "path", True, "get_property [app, path]: node app has no property path; "),
        ("get_property", "path", False, "get_property [app, path]: node app has no property path; "),
        ("get_attribute", "folder", True, ""),
        ("get_attribute", "path", False, ""),
        ("get_attribute", "path", True, "get_attribute [app, path] is known only after operations have run"),
        ("get_attribute", "paht", False, "get_attribute [app, paht]: node app has no attribute paht; "),
    ],
)
def test_properties_and_attributes_are_told_apart(
    function: str, name: str, before: bool, sentence: str
) -> None:
    found = complaints({function: ["app", name]}, before)
    assert len(found) == bool(sentence), found
    assert "".join(found).startswith(sentence)
