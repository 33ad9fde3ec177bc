"""Types that name types which are not there are complained about, wherever they name them."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from gpufarm import library, schemas
from gpufarm.catalogue import Catalogue
from gpufarm.problems import Report

TYPES = """\
tosca_definitions_version: tosca_simple_yaml_1_3
node_types:
  test.Note:
    derived_from: tosca.nodes.Root
    capabilities:
      page: {type: tosca.capabilities.Node}
    requirements:
      - place: {capability: tosca.capabilities.Node, node: Root, relationship: tosca.relationships.DependsOn}
      - table: {capability: Node, relationship: {type: DependsOn}}
relationship_types:
  test.LiesOn:
    derived_from: tosca.relationships.Root
    valid_target_types: [tosca.capabilities.Attachment, tosca.nodes.Root]
"""


def complaints(folder: Path, text: str) -> list[str]:
    path, report = folder / "types.yaml", Report()
    path.write_text(text)
    source = library.load(path, report)
    schemas.examine(Catalogue(source), report)
    return [problem.text for problem in report.problems]


def test_types_that_are_there(tmp_path: Path) -> None:
    assert complaints(tmp_path, TYPES) == []


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ("nodes.Root\n    cap", "nodes.Rot\n    cap", "derived_from of test.Note names tosca.nodes.Rot,"),
        ("{type: tosca.capabilities.Node}", "{type: Nod}", "capability page names Nod,"),
        ("{type: tosca.capabilities.Node}", "{description: a page}", "capability page names None,"),
        (
            "capability: tosca.capabilities.Node",
            "capability: Nod",
            "capability of requirement place names Nod,",
        ),
        ("node: Root", "node: Rot", "node of requirement place names Rot,"),
        (
            "relationship: tosca.relationships.DependsOn",
            "relationship: DependsIn",
            "relationship of requirement place names DependsIn,",
        ),
        ("{type: DependsOn}", "{type: DependsIn}", "relationship of requirement table names DependsIn,"),
        (
            "capabilities.Attachment",
            "capabilities.Atachment",
            "valid_target_types names tosca.capabilities.Atach",
        ),
    ],
)
def test_a_type_that_is_not_there(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    assert old in TYPES
    found = complaints(tmp_path, TYPES.replace(old, new, 1))
    assert [one.startswith(sentence) and "which is no type; " in one for one in found] == [True], found
