# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that compares machines that ought to be equal."""

from __future__ import annotations

DOCUMENTATION = r"""
name: uniform_report
short_description: Compare machines that ought to be equal
version_added: 0.1.0
description:
  - Names for each property in which machines of a group differ what most of them have, and the odd ones.
  - Memory may differ from the median by two percent, and what benchmarks have measured by ten.
positional: _input, gpus, groups, links
options:
  _input:
    description: The C(properties) of M(gpufarm.cluster.machine_properties_info) by the name of the machine.
    type: dict
    required: true
  gpus:
    description: Results of M(gpufarm.cluster.gpu_info), also of a failure, by the name of the machine.
    type: dict
    required: true
  groups:
    description: Lists of the machines that ought to be equal, by a name.
    type: dict
    required: true
  links:
    description: The C(links) of M(gpufarm.cluster.machine_properties_info) by the name of the machine.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Print the differences
  ansible.builtin.debug:
    msg: "{{ (machines | gpufarm.cluster.uniform_report(gpus, {'nodes': groups.slurm_nodes}, links)).lines }}"
"""

RETURN = r"""
_value:
  description: >-
    C(differences), each with C(group), C(name), C(usual), which is what most have or null, and C(odd), the
    values of the other machines; C(rows) of a table; C(summary), a sentence for each group, and for each slow
    machine or link; both as C(lines)
    for people; the C(properties) of each machine; and C(page), in HTML, with plots of results of benchmarks.
  type: dict
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._uniform.report import report


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"uniform_report": report}
