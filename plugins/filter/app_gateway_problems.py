# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Filter that tells what is wrong with the settings of the role app_gateway, before a machine is touched."""

from __future__ import annotations

DOCUMENTATION = r"""
name: app_gateway_problems
short_description: Tell what is wrong with the settings of the role app_gateway
version_added: 0.1.0
description:
  - Checks what an argument spec cannot, such as ports that collide and URLs.
positional: _input
options:
  _input:
    description: The variables of the role app_gateway, without C(app_gateway_) in their names.
    type: dict
    required: true
author:
  - gpufarm maintainers (@gpufarm)
"""

EXAMPLES = r"""
- name: Refuse settings that cannot work
  ansible.builtin.assert:
    that: settings | gpufarm.cluster.app_gateway_problems | length == 0
    fail_msg: "{{ settings | gpufarm.cluster.app_gateway_problems | join(' ') }}"
  vars:
    settings:
      marathon_urls: [https://master1.example.org:8443]
      marathon_user: gateway
      groups: [external]
      public_host: apps.example.org
      https_port: 443
      http_port: 80
      service_ports: 10000-20000
      max_connections: 4000
      certificate_type: self-signed
      certificate_file: ""
      certificate_key_file: ""
"""

RETURN = r"""
_value:
  description: Sentences that say what is wrong; empty when nothing is.
  type: list
  elements: str
"""

from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.gpufarm.cluster.plugins.module_utils._gateway.problems import problems


class FilterModule:
    """The filters of this file."""

    def filters(self) -> dict[str, Callable[[Mapping[str, Any]], list[str]]]:
        """Return the filters by name."""
        return {"app_gateway_problems": problems}
