# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that checks the settings of a role and returns the files, units and options that they result in."""

from __future__ import annotations

DOCUMENTATION = r"""
name: plan
short_description: Check the settings of a role of this collection, and return what they result in
version_added: 0.1.0
description:
  - Checks settings as the role does, on the controller, before any host is changed.
  - Facts of the host are optional. Those that are given are compared with the settings.
positional: _input, role
options:
  _input:
    description:
      - The variables of the role without its name, as P(gpufarm.cluster.role_variables#lookup) returns them.
        The function C(plan) of the module of the role says what some roles add.
    type: dict
    required: true
  role:
    description: Role that the settings belong to.
    type: str
    choices:
      - app_gateway
      - benchmarks
      - chronos
      - compose_project
      - container_request
      - cvmfs_client
      - dcgm
      - environment_modules
      - fabric
      - gpu_health
      - gpu_settings
      - lustre_client
      - lustre_server
      - marathon
      - mesos_agent
      - mesos_master
      - mig
      - monitoring
      - mpi
      - network
      - notebook_environments
      - paas_service
      - scratch
      - shared_home
      - slurm_accounts
      - slurm_controller
      - slurm_job
      - slurm_login
      - slurm_node
      - slurm_rest
      - sssd
      - staging
      - user_accounts
      - zookeeper
    required: true
  certificates:
    description: For C(monitoring) the certificates of other machines, by name.
    type: dict
  files_of_hubs:
    description: For C(monitoring) files of hubs on other machines, as far as they could be read.
    type: list
    elements: dict
  found:
    description: >-
      For C(scratch) what M(gpufarm.cluster.path_info) found on the way to the areas, for C(monitoring) what
      the inventory knows of other machines.
    type: dict
  host:
    description: Name of the host in the inventory. The role C(lustre_server) requires it.
    type: str
  machine:
    description: >-
      For C(cvmfs_client) the result of M(gpufarm.cluster.cvmfs_info), for C(dcgm) C(driver) and
      C(packages), for C(environment_modules) that of M(gpufarm.cluster.environment_modules_info)
      and C(name), for C(fabric) that of M(gpufarm.cluster.fabric_info) and C(name),
      for C(lustre_client) and C(lustre_server) that of M(gpufarm.cluster.lustre_info),
      for C(mesos_agent) C(name), C(cgroup), C(glibc), C(kernel), C(gpus) and C(folders), for C(mpi) C(name),
      C(links) and C(rails),
      for C(network) the result of M(gpufarm.cluster.network_info) and C(name),
      for C(notebook_environments) that of M(gpufarm.cluster.notebook_environments_info).
    type: dict
  links:
    description: For C(benchmarks) what C(ip -json -4 address show) prints, by the name of the machine.
    type: dict
  adapters:
    description: For C(benchmarks) the adapters that M(gpufarm.cluster.fabric_info) returns, likewise.
    type: dict
  groups:
    description: For C(sssd) names of the machine's own groups.
    type: list
    elements: str
  mountinfo:
    description: For C(scratch) and C(staging) the content of C(/proc/self/mountinfo).
    type: str
  name:
    description: For C(benchmarks) and C(dcgm) the name of the host in the inventory.
    type: str
  names:
    description: >-
      For C(lustre_client) and C(lustre_server) the addresses of hosts from M(gpufarm.cluster.lustre_info);
      without them, names are not resolved.
    type: dict
  offered:
    description: >-
      For C(dcgm), C(fabric), C(lustre_client) and C(lustre_server) the packages that
      M(gpufarm.cluster.apt_source_info) returns, to choose those for the machine.
    type: dict
  others:
    description: For C(environment_modules) what the other machines of the play have as C(told), by name.
    type: dict
  elsewhere:
    description: For C(lustre_server) the targets that another server has mounted.
    type: list
    elements: str
  file_system:
    description: For C(shared_home) the type of the file system that is mounted; empty if none is.
    type: str
  cluster:
    description: For C(container_request) the result of M(gpufarm.cluster.mesos_info).
    type: dict
  apps:
    description: For C(container_request) the apps that M(gpufarm.cluster.marathon_info) returns.
    type: list
    elements: dict
  machines:
    description: >-
      For C(slurm_controller), C(slurm_login), C(slurm_node) and C(slurm_rest) the results of
      M(gpufarm.cluster.slurm_machine_info) by the names of the machines in the inventory.
    type: dict
  ucx:
    description: For C(fabric) what C(ucx_info -d) prints for a user.
    type: str
  current:
    description: >-
      For C(slurm_controller) the C(slurm.conf) that the role wrote before, for C(slurm_rest) that of the
      first controller; empty if there is none.
    type: str
  parsers:
    description: For C(slurm_rest) what C(slurmrestd -d list) prints.
    type: str
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse settings that cannot work
  ansible.builtin.assert:
    that: problems | length == 0
    fail_msg: "{{ problems | join(' ') }}"
  vars:
    settings: "{{ lookup('gpufarm.cluster.role_variables', 'monitoring') }}"
    problems: "{{ (settings | gpufarm.cluster.plan('monitoring')).problems }}"
"""

RETURN = r"""
_value:
  description: >-
    C(problems), a list of sentences; if it is empty, also what the role writes, starts and passes to modules.
    The function C(plan) of the role's module in C(module_utils) describes these keys.
  type: dict
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from ansible.errors import AnsibleFilterError

UTILITIES = "ansible_collections.gpufarm.cluster.plugins.module_utils"
# The module of each role, which has a function `plan`. It is imported when it is needed, so a role does not
# depend on the modules of others; scripts/proof reads this table.
MODULES = {
    "app_gateway": "_gateway.settings",
    "benchmarks": "_benchmarks.plan",
    "chronos": "_chronos.settings",
    "compose_project": "_compose.settings",
    "container_request": "_container_request",
    "cvmfs_client": "_cvmfs.client",
    "dcgm": "_dcgm.plan",
    "environment_modules": "_lmod.plan",
    "fabric": "_fabric.plan",
    "gpu_health": "_health.machine",
    "gpu_settings": "_settings.request",
    "lustre_client": "_lustre.client",
    "lustre_server": "_lustre.layout",
    "marathon": "_marathon.settings",
    "mesos_agent": "_mesos.agent",
    "mesos_master": "_mesos.master",
    "mig": "_mig.flavor",
    "monitoring": "_monitoring.settings",
    "mpi": "_mpi",
    "network": "_network.plan",
    "notebook_environments": "_environments.plan",
    "paas_service": "_paas",
    "scratch": "_scratch.plan",
    "shared_home": "_shared_home.settings",
    "slurm_accounts": "_slurm.accounts_plan",
    "slurm_controller": "_slurm.controller",
    "slurm_job": "_slurm.job",
    "slurm_login": "_slurm.login",
    "slurm_node": "_slurm.node",
    "slurm_rest": "_slurm.rest",
    "sssd": "_sssd.plan",
    "staging": "_staging.plan",
    "user_accounts": "_accounts.request",
    "zookeeper": "_zookeeper",
}


def plan(settings: Mapping[str, Any], role: str, **facts: Any) -> dict[str, Any]:
    """Return what settings of a role result in.

    Raises:
        AnsibleFilterError: the role has no plan.
    """
    if role not in MODULES:
        raise AnsibleFilterError(f"There is no plan for the role {role}; name one of {', '.join(MODULES)}.")
    planned: dict[str, Any] = importlib.import_module(f"{UTILITIES}.{MODULES[role]}").plan(settings, **facts)
    return planned


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., dict[str, Any]]]:
        """Return the filters by name."""
        return {"plan": plan}
