# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of the role monitoring, before any machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: monitoring_problems
short_description: Tell what is wrong with the settings of the role monitoring
version_added: 0.1.0
description:
  - Checks what an argument spec cannot, such as ports that collide and names of alerts.
positional: _input
options:
  _input:
    description: The variables of the role monitoring, without C(monitoring_) in their names.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse settings that cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.monitoring_problems | length == 0
    fail_msg: "{{ settings | gpufarm.cluster.monitoring_problems | join(' ') }}"
  vars:
    settings:
      parts: [server, node]
      port: 9090
      node_port: 9100
      interval: 30
      retention_days: 30
      retention_size: 5GB
      alertmanager_url: ""
      muted_alerts: []
      readers: []
      targets: []
      hubs: []
"""

RETURN = r"""
_value:
  description: Sentences that say what is wrong; empty when nothing is.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.settings import problems


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], list[str]]]:
        """Return the filters by name."""
        return {"monitoring_problems": problems}
