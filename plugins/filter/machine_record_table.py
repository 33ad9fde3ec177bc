# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that makes a table of the records of several machines."""

from __future__ import annotations

DOCUMENTATION = r"""
name: machine_record_table
short_description: Make a table of the records of several machines
version_added: 0.1.0
description:
  - Returns the lines of a table with a row for each owner of each role on each machine, and what differs from
    the record.
options:
  _input:
    description: The C(records) of M(gpufarm.cluster.machine_record_info) by the name of the machine.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Show the records
  ansible.builtin.debug:
    msg: "{{ {inventory_hostname: found.records} | gpufarm.cluster.machine_record_table }}"
"""

RETURN = r"""
_value:
  description: The lines.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._record.table import lines, rows


def machine_record_table(machines: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the lines of the table."""
    return lines(rows(machines))


class FilterModule:
    """The filter of this file."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """Return the filter by its name."""
        return {"machine_record_table": machine_record_table}
