"""Mistakes in roles change one place and leave the rest as it is."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
import yaml
from mutation.mutant import Mutant
from mutation.places import mutants
from proof.tree import Tree

SPECS = """\
argument_specs:
  main:
    options:
      r_port: {type: int}
      r_limit: {type: int}
      r_name: {type: str}
"""
TASKS = """\
---
- name: Write it
  ansible.builtin.copy:
    dest: "{{ r_name }}"
    mode: "0600"
  no_log: true
  when: r_port == 1
  notify: Restart it

# Of another task.
- name: Run it
  ansible.builtin.systemd_service:
    name: it
    enabled: true
    state: started
  when:
    - a
    - b and c
"""


def of(path: str, text: str) -> list[Mutant]:
    return list(mutants(path, Tree({path: text, "roles/r/meta/argument_specs.yml": SPECS})))


def changes(path: str, text: str, mutator: str) -> list[tuple[str, str]]:
    return [(one.was, one.becomes) for one in of(path, text) if one.mutator == mutator]


@pytest.mark.parametrize(
    ("mutator", "expected"),
    [
        ("mode", [('mode: "0600"', 'mode: "0644"')]),
        ("switch", [("enabled: true", "enabled: false")]),
        ("state", [("state: started", "state: stopped")]),
        ("no_log removed", [("no_log: true", "")]),
        ("notify removed", [("notify: Restart it", "")]),
        ("when removed", [("when: r_port == 1", ""), ("when:", "")]),
        ("condition negated", [("when: r_port == 1", "when: not (r_port == 1)")]),
        ("comparison", [("when: r_port == 1", "when: r_port != 1"), ("- b and c", "- b or c")]),
        ("variable", [("when: r_port == 1", "when: r_limit == 1")]),
    ],
)
def test_a_mistake_of_each_kind_in_tasks(mutator: str, expected: list[tuple[str, str]]) -> None:
    assert changes("roles/r/tasks/main.yml", TASKS, mutator) == expected


def test_a_removed_task_takes_nothing_else_with_it() -> None:
    first, second = (one.text for one in of("roles/r/tasks/main.yml", TASKS) if one.mutator == "task removed")
    assert [task["name"] for task in yaml.safe_load(first)] == ["Run it"]
    assert [task["name"] for task in yaml.safe_load(second)] == ["Write it"]
    assert "# Of another task." in first


def test_every_mistake_is_yaml_and_another_one() -> None:
    found = of("roles/r/tasks/main.yml", TASKS)
    documents = [yaml.safe_load(one.text) for one in found]
    assert yaml.safe_load(TASKS) not in documents
    assert len({str(document) for document in documents}) == len(found)


def test_mistakes_in_defaults() -> None:
    assert changes("roles/r/defaults/main.yml", "---\nr_port: 80\nr_on: false\n", "number") == [
        ("r_port: 80", "r_port: 81")
    ]


def test_mistakes_in_a_template() -> None:
    text = "# Of a comment.\n{% if r_port != 1 %}\nport={{ r_port }}\n{% endif %}\nname='{{ r_name }}'\n"
    found = [(one.mutator, one.was, one.becomes) for one in of("roles/r/templates/r.j2", text)]
    assert found == [
        ("condition negated", "{% if r_port != 1 %}", "{% if not (r_port != 1) %}"),
        ("comparison", "{% if r_port != 1 %}", "{% if r_port == 1 %}"),
        ("variable", "{% if r_port != 1 %}", "{% if r_limit != 1 %}"),
        ("variable", "port={{ r_port }}", "port={{ r_limit }}"),
        ("line removed", "port={{ r_port }}", ""),
        ("line removed", "name='{{ r_name }}'", ""),
    ]


def test_words_in_strings_are_no_operators() -> None:
    text = "x: \"{{ 'this and that' if a and b else c }}\"\n"
    assert changes("roles/r/vars/main.yml", text, "comparison") == [
        (text.strip(), "x: \"{{ 'this and that' if a or b else c }}\"")
    ]
