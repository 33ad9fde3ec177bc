"""References in a file are found, and mere mentions are not."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from proof.names import Names, Reference
from proof.references import references
from proof.tree import Tree

FILES = (
    "README.md",
    "lab/__init__.py",
    "lab/bench.py",
    "lab/cli.py",
    "lab/marathon/__init__.py",
    "lab/marathon/README.md",
    "lab/marathon/flags.json",
    "lab/marathon/server.py",
    "lab/nvmlsim/src/board.c",
    "molecule/shared/files/planted.sh",
    "molecule/shared/tasks/refused.yml",
    "molecule/zookeeper/files/note",
    "packages/hub/gpufarm_hub/desk.py",
    "packages/hub/pyproject.toml",
    "packages/notebook/pyproject.toml",
    "playbooks/gpu_node.yml",
    "playbooks/mig.yml",
    "plugins/filter/mig_stored.py",
    "plugins/filter/plan.py",
    "plugins/module_utils/_mig.py",
    "plugins/module_utils/_nvml/io/session.py",
    "plugins/modules/mig.py",
    "roles/_common/README.md",
    "roles/_common/files/gpu.lock",
    "roles/_common/handlers/main.yml",
    "roles/_common/meta/argument_specs.yml",
    "roles/_common/meta/main.yml",
    "roles/_common/tasks/gpu_python.yml",
    "roles/_common/tasks/keystore.yml",
    "roles/mig/README.md",
    "roles/mig/tasks/main.yml",
    "roles/mig/templates/unit.j2",
    "roles/mig/vars/main/engine.yml",
    "roles/zookeeper/tasks/main.yml",
    "tests/conftest.py",
    "tosca/gpufarm/__init__.py",
    "tosca/gpufarm/__main__.py",
    "tosca/gpufarm/cli.py",
    "tosca/playbooks/job/console.yml",
    "tosca/playbooks/mig/configure.yml",
    "tosca/templates/node.yaml",
)
TYPES = """
node_types:
  tosca.nodes.Base:
    interfaces: {Standard: {configure: {implementation: ../playbooks/mig/configure.yml}}}
  tosca.nodes.Mig: {derived_from: tosca.nodes.Base}
"""
COMMON = {path for path in FILES if path.startswith("roles/_common/") and not path.endswith(".md")}
# Ansible reads them whichever entry point is used.
WHOLE = {f"roles/_common/{path}.yml" for path in ("handlers/main", "meta/argument_specs", "meta/main")}
ZOOKEEPER = {"roles/zookeeper/tasks/main.yml"}
MIG = {"roles/mig/tasks/main.yml", "roles/mig/templates/unit.j2", "roles/mig/vars/main/engine.yml"}


def found(path: str, text: str) -> set[str]:
    """The paths that a file names."""
    return {reference.path for reference in named(path, text)}


def named(path: str, text: str) -> frozenset[Reference]:
    texts = dict.fromkeys(FILES, "") | {"tosca/types/types.yaml": TYPES, path: text}
    return references(path, Names(Tree(texts)))


@pytest.mark.parametrize(
    ("task", "paths"),
    [
        ("include_role: {name: gpufarm.cluster.mig}", MIG),
        ("ansible.builtin.import_role: {name: gpufarm.cluster.mig}", MIG),
        (
            "include_role: {name: gpufarm.cluster._common, tasks_from: keystore}",
            WHOLE | {"roles/_common/tasks/keystore.yml"},
        ),
        ("include_role: {name: gpufarm.cluster._common, tasks_from: '{{ entry }}'}", COMMON),
        ("roles: [gpufarm.cluster.mig]", MIG),
        ("roles: [{role: gpufarm.cluster.mig}]", MIG),
        ("vars: {refused_role: mig}", MIG),
        ("ansible.builtin.include_tasks: ../shared/tasks/refused.yml", {"molecule/shared/tasks/refused.yml"}),
        ("copy: {src: ../shared/files/planted.sh}", {"molecule/shared/files/planted.sh"}),
        ("copy: {src: note}", set()),
        (
            "copy: {src: '../../lab/marathon/{{ file }}'}",
            {f"lab/marathon/{name}" for name in ("__init__.py", "flags.json", "server.py")},
        ),
        (
            "command: {argv: [python, -m, lab.marathon.server]}",
            {"lab/__init__.py", "lab/marathon/__init__.py", "lab/marathon/server.py"},
        ),
        ("gpufarm.cluster.mig: {state: present}", {"plugins/modules/mig.py"}),
        ("""assert: {that: "x | gpufarm.cluster.mig_stored('a')"}""", {"plugins/filter/mig_stored.py"}),
        (
            """set_fact: {a: "{{ query('gpufarm.cluster.python_project', 'hub') }}"}""",
            {"packages/hub/gpufarm_hub/desk.py", "packages/hub/pyproject.toml"},
        ),
        ("import_playbook: gpufarm.cluster.gpu_node", {"playbooks/gpu_node.yml"}),
        ("debug: {msg: roles and docs of lab}", set()),
        ("debug: {msg: no/such/file.yml}", set()),
    ],
)
def test_what_a_task_names(task: str, paths: set[str]):
    assert found("molecule/zookeeper/converge.yml", f"- {task}\n") == paths


def test_a_role_needs_the_module_that_plans_for_it():
    table = 'MODULES = {"mig": "_mig", "zookeeper": "_nvml.io.session"}\n'
    names = Names(Tree(dict.fromkeys(FILES, "") | {"plugins/filter/plan.py": table}))
    assert {reference.path for reference in names.role("mig")} == MIG | {"plugins/module_utils/_mig.py"}


def test_a_role_that_a_loop_names():
    play = "- include_role: {name: 'gpufarm.cluster.{{ name }}'}\n  loop: [mig, zookeeper, other]\n"
    assert found("molecule/storage/converge.yml", play) == MIG | ZOOKEEPER


def test_a_role_names_files_of_its_folders():
    tasks = "- lookup: \"{{ role_path ~ '/files/gpu.lock' }}\"\n"
    assert found("roles/_common/tasks/gpu_python.yml", tasks) == {"roles/_common/files/gpu.lock"}


def test_a_comment_names_nothing():
    assert found("molecule/zookeeper/converge.yml", "# ../shared/files/planted.sh\n- debug:\n") == set()
    assert found("molecule/zookeeper/files/note", "#!/bin/sh\n# lab/bench.py\n") == set()


def test_plays_of_playbooks_are_for_their_groups():
    plays = """
- hosts: gpu_nodes:!spare
  roles: [gpufarm.cluster.mig]
- hosts: "{{ where }}"
  roles: [gpufarm.cluster.zookeeper]
"""
    found = named("playbooks/site.yml", plays)
    groups = frozenset({"gpu_nodes", "!spare"})
    assert Reference("roles/mig/templates/unit.j2", groups=groups) in found
    assert Reference("roles/mig/templates/unit.j2") not in found
    assert Reference("roles/zookeeper/tasks/main.yml") in found


def test_a_play_for_one_machine_of_a_group_is_for_that_group():
    found = named("playbooks/site.yml", "- hosts: gpu_nodes[0]:hubs\n  roles: [gpufarm.cluster.mig]\n")
    assert frozenset({"gpu_nodes", "hubs"}) in {reference.groups for reference in found}


def test_of_plays_for_other_groups_ansible_reads_the_beginning():
    play = "- hosts: gpu_nodes\n  vars_files: [gpu_node.yml]\n  roles: [gpufarm.cluster.mig]\n"
    always = {reference for reference in named("playbooks/site.yml", play) if not reference.groups}
    assert always == {
        Reference("playbooks/gpu_node.yml"),
        Reference("roles/mig/tasks/main.yml", followed=False),
        Reference("roles/mig/vars/main/engine.yml", followed=False),
    }


def test_a_template_needs_the_operations_of_its_types_and_a_library_of_types_none():
    operation = "tosca/playbooks/mig/configure.yml"
    assert operation in found("tosca/templates/one.yaml", "topology_template: {a: {type: tosca.nodes.Mig}}")
    assert operation not in found(
        "tosca/templates/one.yaml", "topology_template: {a: {type: tosca.nodes.Other}}"
    )
    assert found("tosca/types/types.yaml", TYPES) == set()


def test_an_operation_needs_the_console_beside_it():
    play = "- hosts: all\n  roles: [gpufarm.cluster.zookeeper]\n"
    console = "tosca/playbooks/job/console.yml"
    assert found("tosca/playbooks/job/configure.yml", play) == ZOOKEEPER | {console}
    assert found("tosca/playbooks/mig/configure.yml", play) == ZOOKEEPER


@pytest.mark.parametrize(
    ("program", "paths"),
    [
        ("import lab.bench", {"lab/__init__.py", "lab/bench.py"}),
        ("from lab import bench, other", {"lab/__init__.py", "lab/bench.py"}),
        ("from . import server", {"lab/__init__.py", "lab/marathon/__init__.py", "lab/marathon/server.py"}),
        (
            "from ansible_collections.gpufarm.cluster.plugins.module_utils._mig import plan",
            {"plugins/module_utils/_mig.py"},
        ),
        ("from gpufarm_hub import desk", {"packages/hub/gpufarm_hub/desk.py"}),
        ("from pathlib import Path\nA = Path(__file__).with_name('flags.json')", {"lab/marathon/flags.json"}),
        ("A = Path(__file__).resolve().parents[2] / 'roles' / 'zookeeper' / 'tasks' / 'main.yml'", ZOOKEEPER),
        (
            "A = Path(__file__).parents[1] / 'nvmlsim'\nB = sorted((A / 'src').iterdir())",
            {"lab/nvmlsim/src/board.c"},
        ),
        ("R = Path(__file__).parents[2]\nrun(cwd=R)", set()),
        ("'''See lab/bench.py.'''", set()),
        ("DOCUMENTATION = 'lab/bench.py'", set()),
        ("x = a / b", set()),
    ],
)
def test_what_a_program_names(program: str, paths: set[str]):
    assert found("lab/marathon/new.py", program) == paths


def test_a_folder_of_a_layer_is_narrowed_to_what_strings_name():
    program = "L = Path(__file__).parents[1]\ndef f(name='marathon'):\n    return (L / name).iterdir()\n"
    assert "lab/marathon/server.py" in found("lab/tool/new.py", program)
    assert "lab/bench.py" not in found("lab/tool/new.py", program)


def test_tests_run_the_deployer_playbooks_templates_and_roles_by_name():
    program = (
        "T = ROOT / 'tosca' / \"templates\"\nrun('gpufarm', 'deploy', 'node')\n"
        "play('gpu_node', 'gpufarm.cluster.mig')\nrun('lab', 'status')\n"
    )
    assert {
        "lab/cli.py",
        "tosca/gpufarm/__main__.py",
        "tosca/gpufarm/cli.py",
        "tosca/templates/node.yaml",
        "playbooks/gpu_node.yml",
        *MIG,
    } <= found("tests/integration/test_new.py", program)


def test_an_inventory_that_is_a_program_is_followed_to_the_command():
    command = {"lab/__init__.py", "lab/cli.py"}
    assert found("inventories/bench/hosts", "#!/bin/sh\nexec ../../.venv/bin/lab inventory\n") == command
    assert found("molecule/new/converge.yml", "- command: /opt/gpufarm/bin/gpufarm-health\n") == set()
    texts = dict.fromkeys(FILES, "") | {
        "inventories/bench/hosts": "",
        "tests/new.py": "A = R / 'inventories' / 'bench'",
    }
    assert references("tests/new.py", Names(Tree(texts))) == {
        Reference("inventories/bench/hosts", followed=True)
    }


def test_what_is_copied_as_a_folder_is_not_followed():
    references_ = named("molecule/zookeeper/converge.yml", "- copy: {src: ../../lab/marathon/}\n")
    assert references_ and not any(reference.followed for reference in references_)


@example("\0", "a.py")
@example("2001-99-99", "a.yml")
@given(st.text(), st.sampled_from(["a.yml", "a.yaml", "a.py", "a.j2", "a"]))
def test_any_content_is_read(text: str, name: str):
    assert found(f"molecule/new/{name}", text) <= {*FILES, "tosca/types/types.yaml", f"molecule/new/{name}"}
