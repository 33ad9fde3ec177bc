# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of health checks, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: gpu_health_problems
short_description: Tell what is wrong with the settings of GPU health checks
version_added: 0.1.0
description:
  - Reads settings as the command C(gpufarm-health) does, on the controller and without a GPU.
positional: _input
options:
  _input:
    description: The settings, whose names are those of the options of M(gpufarm.cluster.gpu_health).
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse a threshold that does not exist
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.gpu_health_problems | length == 0
    fail_msg: "{{ settings | gpufarm.cluster.gpu_health_problems | join(' ') }}"
  vars:
    settings:
      thresholds:
        temperature_warning: 75
"""

RETURN = r"""
_value:
  description: Sentences that say what is wrong; empty when the settings can be read.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import problems
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import CHECKS


def gpu_health_problems(settings: Mapping[str, Any]) -> list[str]:
    """Return what is wrong with settings, one sentence each."""
    return problems(settings, CHECKS)


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], list[str]]]:
        """Return the filters by name."""
        return {"gpu_health_problems": gpu_health_problems}
