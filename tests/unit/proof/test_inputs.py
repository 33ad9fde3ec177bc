"""The inputs of a job are what it names, what that names, and so on, and nothing else."""

# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from proof.choice import affected
from proof.inputs import Inputs
from proof.tree import Tree

MOLECULE = "platforms: [{name: a}]\n"
GPU = "platforms: [{name: a, gpus: [x]}]\n"
TEXTS = {
    "molecule/mig/molecule.yml": GPU,
    "molecule/mig/converge.yml": "- include_role: {name: gpufarm.cluster.mig}\n",
    "molecule/mig/tests/test_mig.py": "def test_a(host, bench): pass\n",
    "molecule/hub/molecule.yml": MOLECULE,
    "molecule/hub/converge.yml": "- import_playbook: gpufarm.cluster.site\n",
    "molecule/hub/tests/test_hub.py": "def test_a(host, visit): pass\n",
    "molecule/shared/fixtures/hub_fixtures.py": "def visit():\n    from lab import visitor\n",
    "playbooks/site.yml": (
        "- {hosts: hubs, roles: [gpufarm.cluster.jupyterhub]}\n"
        "- {hosts: gpus, roles: [gpufarm.cluster.mig]}\n"
    ),
    "roles/mig/tasks/main.yml": "- gpufarm.cluster.mig_partition: {}\n",
    "roles/jupyterhub/tasks/main.yml": "- debug:\n",
    "roles/jupyterhub/tasks/install.yml": "- debug:\n",
    "plugins/modules/mig_partition.py": "from ..module_utils import _mig\n",
    "plugins/module_utils/_mig.py": "",
    "lab/__init__.py": "",
    "lab/cli.py": "from lab import nvmlsim\n",
    "lab/nvmlsim/__init__.py": "",
    "lab/visitor.py": "",
    "ansible.cfg": "",
}


def inputs(**other: str) -> Inputs:
    return Inputs(Tree(TEXTS | other))


def test_what_is_named_by_way_of_others_is_an_input():
    assert {
        "roles/mig/tasks/main.yml",
        "plugins/modules/mig_partition.py",
        "plugins/module_utils/_mig.py",
        "ansible.cfg",
        "lab/cli.py",
    } <= inputs().jobs["molecule mig"].keys()
    assert inputs().way("molecule mig", "plugins/module_utils/_mig.py") == [
        "molecule/mig/converge.yml",
        "roles/mig/tasks/main.yml",
        "plugins/modules/mig_partition.py",
        "plugins/module_utils/_mig.py",
    ]


def test_the_simulated_gpu_is_an_input_where_hosts_have_one():
    found = inputs().jobs
    assert "lab/nvmlsim/__init__.py" in found["molecule mig"]
    assert "lab/nvmlsim/__init__.py" not in found["molecule hub"]


def test_what_a_fixture_imports_is_an_input_where_a_test_asks_for_it():
    found = inputs().jobs
    assert "lab/visitor.py" in found["molecule hub"]
    assert "lab/visitor.py" not in found["molecule mig"]
    assert "molecule/shared/fixtures/hub_fixtures.py" in found["molecule mig"]


def test_layers_that_a_program_gives_to_hosts_are_inputs():
    path = "lab/layers/gpu/layer.yml"
    layer = {path: "- hosts: all\n"}
    test = {"tests/integration/slurm/test_a.py": "HostSpec('a', layers=('gpu', *others))\n"}
    found = inputs(**layer, **test).jobs
    assert path in found["make integration-slurm"]
    assert path not in found["make integration"]
    broken = {"tests/integration/slurm/test_a.py": "HostSpec('a', layers=('gpu'"}
    assert path not in inputs(**layer, **broken).jobs["make integration-slurm"]


def test_a_broken_test_is_no_hindrance():
    assert inputs(**{"molecule/hub/tests/test_hub.py": "def test(:"}).jobs.keys() == inputs().jobs.keys()


def test_plays_for_groups_that_a_job_has_not_are_no_inputs():
    unused = "roles/jupyterhub/tasks/install.yml"
    assert unused not in inputs().jobs["molecule hub"]
    hub = TEXTS["molecule/hub/molecule.yml"].replace("name: a", "name: a, groups: [hubs]")
    found = inputs(**{"molecule/hub/molecule.yml": hub}).jobs["molecule hub"]
    assert unused in found and "plugins/modules/mig_partition.py" not in found


def test_jobs_are_affected_by_their_inputs_only():
    found = affected(inputs(), {"plugins/module_utils/_mig.py", "lab/visitor.py", "docs/new.md"})
    assert {job: [way[-1] for way in ways] for job, ways in found.items()} == {
        "molecule mig": ["plugins/module_utils/_mig.py"],
        "molecule hub": ["lab/visitor.py"],
    }
