# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of health checks, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: health_settings_problem
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
    that: settings | gpufarm.cluster.health_settings_problem == ''
    fail_msg: "{{ settings | gpufarm.cluster.health_settings_problem }}"
  vars:
    settings:
      thresholds:
        temperature_warning: 75
"""

RETURN = r"""
_value:
  description: One sentence that says what is wrong; empty when the settings can be read.
  type: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._health.finding import (
    HealthError,
    parse_settings,
)
from ansible_collections.gpufarm.cluster.plugins.module_utils._health.machine import CHECKS


def health_settings_problem(settings: Mapping[str, Any]) -> str:
    """Return what is wrong with settings, an empty text when nothing is."""
    try:
        parse_settings(settings, CHECKS)
    except HealthError as error:
        return str(error)
    return ""


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], str]]:
        """Return the filters by name."""
        return {"health_settings_problem": health_settings_problem}
