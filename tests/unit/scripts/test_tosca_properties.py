"""TOSCA properties follow from argument specs; a source adds what these cannot say, and nothing else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from typing import Any

import described
import pytest
import tosca_properties
from described import Markdown, Plain, text

OPTIONS: dict[str, dict[str, Any]] = {
    "farm_state": {"choices": ["present", "absent"], "description": "Whether it is there."},
    "farm_port": {"type": "int", "default": 8443, "description": "Port, V(443) mostly."},
    "farm_parts": {"type": "list", "elements": "str", "choices": ["a", "b"], "description": ["One.", "Two."]},
    "farm_people": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "description": "People.",
        "options": {
            "name": {"type": "str", "required": True, "description": "Name."},
            "shell": {"type": "path", "default": "/bin/sh", "description": "As in C(/etc/shells)."},
        },
    },
}
NODE = "tosca.nodes.example.Farm"
PERSON = "tosca.datatypes.example.Person"


@pytest.fixture(autouse=True)
def role(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (described, tosca_properties):
        monkeypatch.setattr(module, "options", lambda _role: OPTIONS)
        monkeypatch.setattr(module, "roles", lambda: ("farm",))


def source(said: dict[str, Any], option: str = "farm_people") -> dict[str, Any]:
    return {
        "data_types": {PERSON: {"option": option}},
        "node_types": {
            NODE: {"metadata": {"role": "gpufarm.cluster.farm"}, "properties": said},
            "tosca.nodes.example.Other": {"description": "Without a role."},
        },
    }


def test_a_node_has_the_variables_of_its_role_but_the_state() -> None:
    limits = [{"in_range": [1, 65535]}]
    entries = {"type": PERSON}
    said = {"farm_port": {"constraints": limits}, "farm_people": {"entry_schema": entries}}
    types = tosca_properties.completed(source(said))
    assert types["node_types"][NODE]["properties"] == {
        "farm_port": {
            "type": "integer",
            "description": 'Port, "443" mostly.',
            "default": 8443,
            "constraints": limits,
        },
        "farm_parts": {
            "type": "list",
            "description": "One. Two.",
            "entry_schema": {"type": "string", "constraints": [{"valid_values": ["a", "b"]}]},
        },
        "farm_people": {"type": "list", "description": "People.", "default": [], "entry_schema": entries},
    }
    assert types["node_types"]["tosca.nodes.example.Other"] == {"description": "Without a role."}


@pytest.mark.parametrize(
    ("path", "name", "text"),
    [
        ("_mig/flavor.py", "FLAVOR_PATTERN", "3x 1c.3g.40gb"),
        ("_container_request.py", "SIZE_PATTERN", "1.5 GiB"),
    ],
)
def test_a_pattern_is_that_of_the_program_that_is_named(path: str, name: str, text: str) -> None:
    pattern = {"from": f"plugins/module_utils/{path}", "name": name}
    types = tosca_properties.completed(source({"farm_port": {"constraints": [{"pattern": pattern}]}}))
    (constraint,) = types["node_types"][NODE]["properties"]["farm_port"]["constraints"]
    assert re.fullmatch(constraint["pattern"], text)


def test_a_data_type_has_what_an_entry_of_its_option_has() -> None:
    assert tosca_properties.completed(source({}))["data_types"][PERSON] == {
        "properties": {
            "name": {"type": "string", "description": "Name."},
            "shell": {
                "type": "string",
                "description": "As in /etc/shells.",
                "default": "/bin/sh",
                "required": False,
            },
        }
    }


@pytest.mark.parametrize(
    ("said", "option", "problem"),
    [
        ({"farm_prt": {"default": 1}}, "farm_people", "farm_prt follows from no option"),
        ({"farm_port": {"default": 8443}}, "farm_people", "default follows from the role"),
        ({}, "farm_folk", "no role has the variable farm_folk"),
    ],
)
def test_a_source_says_only_what_does_not_follow(said: dict[str, Any], option: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        tosca_properties.completed(source(said, option))


def test_markup_becomes_markdown_or_plain_text() -> None:
    words = ["V(on) as O(farm_port) or C(x), see L(a page,https://example.org).", "M(a.b.c)"]
    plain = 'on" as farm_port or x, see a page (https://example.org). a.b.c'
    assert text(words, Plain()) == f'"{plain}'
    assert text(words, Markdown()) == "`on` as `farm_port` or `x`, see [a page](https://example.org). `a.b.c`"


@pytest.mark.parametrize("wrong", ["V(open", "B(bold)", "M(no name)"])
def test_markup_that_is_wrong_or_has_no_form_is_refused(wrong: str) -> None:
    with pytest.raises(ValueError):
        text(wrong, Plain())
