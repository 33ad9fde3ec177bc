"""Operations of a node type run its role and return its attributes."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import yaml
from tosca_playbooks import operations
from written import yaml_file

METADATA = {"role": "gpufarm.cluster.farm"}


def test_attributes_are_in_the_result_of_the_role_or_where_the_source_says() -> None:
    attributes = {"endpoint": {}, "values": {}, "users": {"from": "farm_result.people | length"}}
    definition = {"metadata": METADATA, "play": {"name": "Farm"}, "attributes": attributes}
    (play,) = operations(definition, recorded=False, left_out=False, console=False)["configure"]
    assert {key: play[key] for key in ("name", "hosts", "become")} == {
        "name": "Farm",
        "hosts": "{{ gpufarm_hosts | default('all') }}",
        "become": True,
    }
    set_up, returned = play["tasks"]
    assert set_up["ansible.builtin.include_role"] == {"name": "gpufarm.cluster.farm"}
    assert returned["when"] == "not ansible_check_mode"
    assert returned["ansible.builtin.set_stats"]["data"] == {
        "endpoint": "{{ farm_result.endpoint }}",
        "values": "{{ farm_result['values'] }}",
        "users": "{{ farm_result.people | length }}",
    }


def test_a_type_without_attributes_returns_nothing_and_a_removal_never_does() -> None:
    plays = operations(
        {"metadata": METADATA, "play": {"name": "Farm"}}, recorded=False, left_out=False, console=False
    )
    assert len(plays["configure"][0]["tasks"]) == 1
    (play,) = plays["delete"]
    assert play["name"] == "Farm, removal"
    (task,) = play["tasks"]
    assert task["vars"] == {"farm_state": "absent"}


def test_a_role_whose_record_holds_is_left_out_and_its_result_is_that_of_the_record() -> None:
    definition = {"metadata": METADATA, "play": {"name": "Farm"}, "attributes": {"endpoint": {}}}
    plays = operations(definition, recorded=True, left_out=True, console=False)
    set_up, returned = plays["configure"][0]["tasks"]
    assert set_up["when"] == "'farm' not in gpufarm_record.done | default({})"
    assert returned["vars"] == {"farm_result": "{{ gpufarm_record.done.farm }}"}
    (removal,) = plays["delete"][0]["tasks"]
    assert "when" not in removal
    assert all(play["vars"] == {"gpufarm_owner": "an orchestrator"} for (play,) in plays.values())


def test_a_role_that_tells_what_tasks_have_printed_has_a_playbook_that_records_nothing() -> None:
    definition = {"metadata": METADATA, "play": {"name": "Farm"}}
    assert "console" not in operations(definition, recorded=True, left_out=True, console=False)
    (play,) = operations(definition, recorded=True, left_out=True, console=True)["console"]
    assert play["name"] == "Farm, console" and "vars" not in play
    read, returned = play["tasks"]
    assert read["ansible.builtin.include_role"] == {"name": "gpufarm.cluster.farm", "tasks_from": "console"}
    assert returned["ansible.builtin.set_stats"]["data"] == {"tasks": "{{ farm_console_result.tasks }}"}


def test_what_asks_a_service_runs_where_the_deployer_does_without_root() -> None:
    definition = {"metadata": {**METADATA, "runs_on": "controller"}, "play": {"name": "App"}}
    for (play,) in operations(definition, recorded=False, left_out=False, console=False).values():
        assert play["hosts"] == "{{ gpufarm_hosts | default('localhost') }}"
        assert "become" not in play


def test_a_written_file_says_who_writes_it_and_reads_back() -> None:
    document = {"short": "{{ a | default('b') }}", "long": "{{ " + "a | b | " * 20 + "c }}", "list": [1]}
    text = yaml_file(document, "scripts/x")
    assert text.startswith("---\n# Written by scripts/x; do not edit.\nshort: \"{{ a | default('b') }}\"\n")
    assert "list:\n  - 1\n" in text and yaml.safe_load(text) == document
