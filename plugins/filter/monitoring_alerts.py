# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that makes the alert rules of Prometheus, from the same catalogue as the health checks."""

from __future__ import annotations

DOCUMENTATION = r"""
name: monitoring_alerts
short_description: Make the alert rules of Prometheus
version_added: 0.1.0
description:
  - Returns a rule for each check of the role C(gpu_health), and the rules of hub and machines.
positional: _input
options:
  _input:
    description: Names of alerts that are left out.
    type: list
    elements: str
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Write all alert rules but one
  ansible.builtin.copy:
    content: "{{ {'groups': [{'name': 'gpufarm', 'rules': rules}]} | to_nice_yaml }}"
    dest: /etc/prometheus/gpufarm.yml
    mode: "0644"
  vars:
    rules: "{{ ['GpuPersistence'] | gpufarm.cluster.monitoring_alerts }}"
"""

RETURN = r"""
_value:
  description: The rules as Prometheus reads them, each a dict.
  type: list
  elements: dict
"""

from collections.abc import Callable, Iterable
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._monitoring.alerts import rules


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Iterable[str]], list[dict[str, Any]]]]:
        """Return the filters by name."""
        return {"monitoring_alerts": rules}
