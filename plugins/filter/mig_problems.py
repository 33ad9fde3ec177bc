# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with a MIG flavor, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: mig_problems
short_description: Tell what is wrong with a MIG flavor or layout
version_added: 0.1.0
description:
  - Reads a flavor or a layout as M(gpufarm.cluster.mig_partition) does, on the controller and without a GPU.
positional: _input
options:
  _input:
    description: The flavor, or the layout as a list.
    type: raw
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse a flavor that nobody can have
  ansible.builtin.assert:
    that: mig_partition_flavor | gpufarm.cluster.mig_problems | length == 0
    fail_msg: "{{ mig_partition_flavor | gpufarm.cluster.mig_problems | join(' ') }}"
"""

RETURN = r"""
_value:
  description: Sentences that say what is wrong; empty when the flavor or layout is valid.
  type: list
  elements: str
"""

from collections.abc import Callable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._mig.flavor import problems


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Any], list[str]]]:
        """Return the filters by name."""
        return {"mig_problems": problems}
