# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that adds the uses of several hosts up."""

from __future__ import annotations

DOCUMENTATION = r"""
name: usage_report
short_description: Hours of GPUs, slices, CPUs and memory by user, group, month and more
version_added: 0.1.0
description:
  - Adds up what the module M(gpufarm.cluster.usage_info) returned for any number of hosts. A use that several
    hosts told counts once.
  - Months are those of UTC, and a use that is in several is divided between them.
positional: _input, by
options:
  _input:
    description: The uses.
    type: list
    elements: dict
    required: true
  by:
    description: Fields of a row.
    type: list
    elements: str
    choices: [month, user, group, source, profile, machine, identity]
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Print the hours of each user
  ansible.builtin.debug:
    msg: "{{ (november.uses | gpufarm.cluster.usage_report(['month', 'user'])).table }}"
"""

RETURN = r"""
_value:
  description: >-
    C(rows) with the fields and C(slice_hours), C(gpu_hours) of whole GPUs, C(cpu_hours) and
    C(memory_gib_hours); the same as C(csv) and as C(table) for people; and C(records), each use with field
    names of the Open Grid Forum's Usage Record 2.0 (GFD.204).
  type: dict
"""

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.gpufarm.cluster.plugins.module_utils._usage.report import report


def usage_report(uses: Sequence[dict[str, Any]], by: Sequence[str]) -> dict[str, Any]:
    """Return all forms of a report.

    Raises:
        AnsibleFilterError: a field is unknown.
    """
    try:
        return report(uses, by)
    except ValueError as error:
        raise AnsibleFilterError(str(error)) from error


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filters by name."""
        return {"usage_report": usage_report}
