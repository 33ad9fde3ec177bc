# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that shows the problems of all hosts as one table."""

from __future__ import annotations

DOCUMENTATION = r"""
name: problem_table
short_description: Show what keeps roles from being applied, on all hosts, as one table
version_added: 0.1.0
description:
  - Used by the playbooks C(validate) and C(validate_mesos_cluster), and by the command C(gpufarm).
positional: _input
options:
  _input:
    description: The problems of each host, each with C(role) and C(message). Each line of a message is a row.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show the problems of a host
  ansible.builtin.debug:
    msg: "{{ {'gpu01': [{'role': 'mig', 'message': 'mig_gpus is empty.'}]} | gpufarm.cluster.problem_table }}"
"""

RETURN = r"""
_value:
  description: The table, below a line with the number of problems; empty when there is none.
  type: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._problems import table


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Any], str]]:
        """Return the filters by name."""
        return {"problem_table": table}
